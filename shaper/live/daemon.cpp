#include "shaper/live/daemon.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "shaper/live/child_process.h"
#include "shaper/live/system_call.h"

namespace shaper {

Fd lock_instance(const std::string& folder) {
  const std::string path = folder + "/lock";
  Fd file(require(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600), "open " + path));
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return file;
  if (errno == EWOULDBLOCK) return Fd{};
  throw std::system_error(errno, std::system_category(), "flock " + path);
}

std::string sibling_program(const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const char* const folder : {".", "../shaper", "../cli", "../sbin", "../bin"}) {
    const fs::path path = (here / folder / name).lexically_normal();
    if (!here.empty() && fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0) return path.string();
  }
  return find_program(name).value_or("");
}

bool Readiness::go_to_background() {
  std::array<int, 2> ends{};
  require(::pipe2(ends.data(), O_CLOEXEC), "pipe2");
  read_end_ = Fd(ends[0]);
  write_end_ = Fd(ends[1]);
  if (require(::fork(), "fork") != 0) {
    write_end_.close();
    return false;
  }
  read_end_.close();
  require(::setsid(), "setsid");
  require(::chdir("/"), "chdir");
  return true;
}

int Readiness::wait_for_child() {
  char ready = 0;
  return ::read(read_end_.get(), &ready, 1) == 1 ? 0 : 1;
}

void Readiness::tell() {
  if (!write_end_) return;
  const char ready = 1;
  require(static_cast<int>(::write(write_end_.get(), &ready, 1)), "write");
  write_end_.close();
  // The terminal belongs to whoever started us.
  const Fd null(require(::open("/dev/null", O_RDWR | O_CLOEXEC), "open /dev/null"));
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null.get(), standard);
}

}  // namespace shaper
