// What the kernel tells in folders and small files of /proc and of cgroup2.
#pragma once

#include <dirent.h>
#include <fcntl.h>

#include <memory>
#include <string>
#include <string_view>

#include "shaper/live/fd.h"

namespace shaper {

/// A folder under `at` (AT_FDCWD: the path is whole), to read; none: it is not there.
[[nodiscard]] inline Fd open_folder(int at, const char* path) {
  return Fd(::openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

/// Up to `most` bytes of a file; empty: it cannot be read.
[[nodiscard]] std::string read_text(int at, const char* path, std::size_t most = 4096);

/// Calls visit(entry) for each entry but "." and ".." while it returns true.
template <typename Visit>
void for_each_entry(Fd folder, Visit&& visit) {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(folder.get()), ::closedir);
  if (!stream) return;
  [[maybe_unused]] const int taken = folder.release();  // closed with the stream
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string_view name(entry->d_name);
    if (name != "." && name != ".." && !visit(*entry)) return;
  }
}

}  // namespace shaper
