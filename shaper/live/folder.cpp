#include "shaper/live/folder.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace shaper {

std::string read_text(int at, const char* path, std::size_t most) {
  const Fd file(::openat(at, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::string text;
  std::array<char, 4096> bytes;
  while (file && text.size() < most) {
    const ssize_t count = ::read(file.get(), bytes.data(), std::min(bytes.size(), most - text.size()));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return "";
    if (count == 0) break;
    text.append(bytes.data(), static_cast<std::size_t>(count));
  }
  return text;
}

}  // namespace shaper
