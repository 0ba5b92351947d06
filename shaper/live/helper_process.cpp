#include "shaper/live/helper_process.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include "shaper/live/system_call.h"

namespace shaper {
namespace {

constexpr std::size_t kMostOutput = 65'536;

[[noreturn]] void become(std::vector<std::string>& arguments, int output) {
  const int null = ::open("/dev/null", O_RDWR);
  ::dup2(null, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  ::execv(pointers.front(), pointers.data());
  ::_exit(127);
}

}  // namespace

HelperProcess::HelperProcess(EventLoop& loop, std::vector<std::string> arguments, Done done)
    : loop_(loop), done_(std::move(done)) {
  std::array<int, 2> ends{};
  require(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), "pipe2");
  pipe_ = Fd(ends[0]);
  const Fd its(ends[1]);
  process_ = require(::fork(), "fork");
  if (process_ == 0) become(arguments, its.get());
  handle_ = Fd(require(static_cast<int>(::syscall(SYS_pidfd_open, process_, 0)), "pidfd_open"));
  loop_.add(pipe_.get(), EPOLLIN, [this](std::uint32_t) { on_output(); });
  loop_.add(handle_.get(), EPOLLIN, [this](std::uint32_t) { on_exit(); });
}

HelperProcess::~HelperProcess() {
  if (pipe_) loop_.remove(pipe_.get());
  if (!ended_) loop_.remove(handle_.get());
}

void HelperProcess::on_output() {
  std::array<char, 4096> bytes;
  ssize_t count = 0;
  while (pipe_ && (count = ::read(pipe_.get(), bytes.data(), bytes.size())) > 0) {
    const std::size_t room = kMostOutput - output_.size();
    output_.append(bytes.data(), std::min(static_cast<std::size_t>(count), room));
  }
  if (count == 0 && pipe_) {
    loop_.remove(pipe_.get());
    pipe_.close();
  }
}

void HelperProcess::on_exit() {
  on_output();
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  ended_ = true;
  loop_.remove(handle_.get());
  const auto done = std::move(done_);
  const std::string output = std::move(output_);
  done(WIFEXITED(status) && WEXITSTATUS(status) == 0, output);
}

}  // namespace shaper
