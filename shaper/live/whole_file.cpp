#include "shaper/live/whole_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "shaper/live/fd.h"

namespace shaper {
namespace {

std::string trouble(std::string_view verb, const std::string& path) {
  return fmt::format("cannot {} {}: {}", verb, path, std::strerror(errno));
}

bool write_all(const Fd& file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file.get(), text.data(), text.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  return fsync(file.get()) == 0;
}

}  // namespace

tl::expected<void, std::string> write_whole_file(const std::string& path, std::string_view text) {
  const std::string draft = path + ".new";
  unlink(draft.c_str());  // of a crash in the middle of this function
  const Fd file{open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)};
  if (!file) return tl::unexpected(trouble("make", draft));
  if (!write_all(file, text)) return tl::unexpected(trouble("write", draft));
  if (rename(draft.c_str(), path.c_str()) != 0) return tl::unexpected(trouble("replace", path));
  const Fd folder{open(path.substr(0, path.rfind('/')).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (folder) (void)fsync(folder.get());  // best effort: on tmpfs, where it lives, there is nothing to do
  return {};
}

tl::expected<std::optional<std::string>, std::string> read_own_file(const std::string& path, std::size_t most) {
  const Fd file{open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
  if (!file && errno == ENOENT) return std::nullopt;
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0) return tl::unexpected(trouble("read", path));
  if (!S_ISREG(status.st_mode) || status.st_uid != geteuid()) {
    return tl::unexpected(fmt::format("refusing {}: not a file of our own; remove it", path));
  }
  std::string text(most, '\0');
  const ssize_t got = pread(file.get(), text.data(), text.size(), 0);
  if (got < 0) return tl::unexpected(trouble("read", path));
  text.resize(static_cast<std::size_t>(got));
  return std::optional{std::move(text)};
}

}  // namespace shaper
