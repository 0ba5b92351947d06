#include "shaper/live/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

#include "shaper/live/fd.h"

namespace shaper {
namespace {

constexpr std::array<std::string_view, 4> kPath{"/usr/sbin", "/usr/bin", "/sbin", "/bin"};

void check(int error, const char* call) {
  if (error != 0) throw std::system_error(error, std::generic_category(), call);
}

Fd file_in_memory(std::string_view content) {
  Fd file{memfd_create("shaper", MFD_CLOEXEC)};
  if (!file) check(errno, "memfd_create");
  while (!content.empty()) {
    const ssize_t written = write(file.get(), content.data(), content.size());
    if (written < 0) check(errno, "write");
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  if (lseek(file.get(), 0, SEEK_SET) < 0) check(errno, "lseek");
  return file;
}

std::string content_of(const Fd& file) {
  struct stat status {};
  if (fstat(file.get(), &status) != 0) check(errno, "fstat");
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  const ssize_t got = pread(file.get(), text.data(), text.size(), 0);
  if (got < 0) check(errno, "pread");
  text.resize(static_cast<std::size_t>(got));
  return text;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> list;
  for (std::string& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  return list;
}

std::vector<std::string> environment_of(const Command& command) {
  std::string path = "PATH=";
  for (const std::string_view folder : kPath) path += std::string{folder} + (folder == kPath.back() ? "" : ":");
  std::vector<std::string> list{path, "LC_ALL=C"};
  for (const auto& [name, value] : command.environment) list.push_back(name + '=' + value);
  return list;
}

/// The child leads a process group of its own (so that its children can be ended with it), with default signals.
class SpawnSettings {
 public:
  SpawnSettings(const Fd& in, const Fd& out, const Fd& err) {
    check(posix_spawn_file_actions_init(&actions_), "posix_spawn_file_actions_init");
    check(posix_spawnattr_init(&attributes_), "posix_spawnattr_init");
    const std::array<int, 3> files{in.get(), out.get(), err.get()};
    for (int i = 0; i < 3; ++i) {
      check(posix_spawn_file_actions_adddup2(&actions_, files.at(static_cast<std::size_t>(i)), i), "adddup2");
    }
    check(posix_spawn_file_actions_addclosefrom_np(&actions_, 3), "addclosefrom_np");
    sigset_t signals;
    sigemptyset(&signals);
    check(posix_spawnattr_setsigmask(&attributes_, &signals), "posix_spawnattr_setsigmask");
    sigfillset(&signals);
    check(posix_spawnattr_setsigdefault(&attributes_, &signals), "posix_spawnattr_setsigdefault");
    const int flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    check(posix_spawnattr_setflags(&attributes_, static_cast<short>(flags)), "posix_spawnattr_setflags");
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  [[nodiscard]] pid_t spawn(const std::string& program, const Command& command) const {
    std::vector<std::string> arguments = command.arguments;
    std::vector<std::string> environment = environment_of(command);
    pid_t child = 0;
    check(posix_spawn(&child, program.c_str(), &actions_, &attributes_, pointers(arguments).data(),
                      pointers(environment).data()),
          program.c_str());
    return child;
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

/// Waits for the child's end; false: it took longer than `limit`.
bool wait_for(pid_t child, std::chrono::milliseconds limit) {
  const Fd handle{static_cast<int>(syscall(SYS_pidfd_open, child, 0))};
  if (!handle) check(errno, "pidfd_open");
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waiting{handle.get(), POLLIN, 0};
    const int ready = poll(&waiting, 1, static_cast<int>(std::max<std::chrono::milliseconds::rep>(left.count(), 0)));
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) check(errno, "poll");
  }
}

}  // namespace

std::string Command::text() const {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+@%";
  std::string line;
  for (const auto& [name, value] : environment) line += (line.empty() ? "" : " ") + name + '=' + value;
  for (const std::string& word : arguments) {
    if (!line.empty()) line += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char c : word) line += c == '\'' ? std::string{"'\\''"} : std::string{c};
    line += '\'';
  }
  return line;
}

std::optional<std::string> find_program(std::string_view name) {
  const auto runs = [](const std::string& path) { return access(path.c_str(), X_OK) == 0; };
  const std::string word{name};
  if (word.find('/') != std::string::npos) return runs(word) ? std::optional{word} : std::nullopt;
  for (const std::string_view folder : kPath) {
    std::string path = std::string{folder} + '/' + word;
    if (runs(path)) return path;
  }
  return std::nullopt;
}

Outcome run(const Command& command, std::chrono::milliseconds limit) {
  const auto program = find_program(command.arguments.at(0));
  if (!program)
    return {127, false, "", command.arguments[0] + ": no such program (in /usr/sbin, /usr/bin, /sbin, /bin)"};
  const Fd input = file_in_memory(command.input);
  const Fd output = file_in_memory("");
  const Fd errors = file_in_memory("");
  const pid_t child = SpawnSettings{input, output, errors}.spawn(*program, command);

  const bool in_time = wait_for(child, limit);
  if (!in_time) kill(-child, SIGKILL);
  int ended = 0;
  while (waitpid(child, &ended, 0) < 0) {
    if (errno != EINTR) check(errno, "waitpid");
  }
  return {WIFSIGNALED(ended) ? 128 + WTERMSIG(ended) : WEXITSTATUS(ended), !in_time, content_of(output),
          content_of(errors)};
}

}  // namespace shaper
