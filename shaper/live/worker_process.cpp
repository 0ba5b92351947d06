#include "shaper/live/worker_process.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "shaper/live/handed_over.h"
#include "shaper/live/system_call.h"
#include "shaper/model/plain_text.h"

namespace shaper {
namespace {

/// In the child: the descriptors of the task stay open behind exec, all others do not.
[[noreturn]] void become_worker(const std::string& program, const char* role, const WorkerTask& task) {
  keep_open({task.channel, task.queues, task.listener, task.image, task.inherited});
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  std::string name = "shaperd";
  std::string option = role;
  std::string text = task.text();
  std::array<char*, 4> arguments{name.data(), option.data(), text.data(), nullptr};
  ::execv(program.c_str(), arguments.data());
  std::fputs(fmt::format("shaperd: {}: {}\n", program, std::strerror(errno)).c_str(), stderr);
  ::_exit(127);
}

std::string word_on(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was ended by signal {}", WTERMSIG(status));
  if (WEXITSTATUS(status) == 0) return "";
  return fmt::format("ended with exit status {}", WEXITSTATUS(status));
}

}  // namespace

std::string WorkerTask::text() const {
  return fmt::format("{} {} {} {} {} {} {} {}", channel, queues, listener, owner, credit == StartCredit::empty ? 1 : 0,
                     foreground ? 1 : 0, image, inherited);
}

std::optional<WorkerTask> WorkerTask::parse(std::string_view text) {
  std::array<std::int64_t, 8> numbers{};
  for (std::int64_t& number : numbers) {
    const auto word = parse_number<std::int64_t>(take_word(text));
    if (!word) return std::nullopt;
    number = *word;
  }
  return WorkerTask{static_cast<int>(numbers[0]),
                    static_cast<int>(numbers[1]),
                    static_cast<int>(numbers[2]),
                    static_cast<uid_t>(numbers[3]),
                    numbers[4] == 0 ? StartCredit::full : StartCredit::empty,
                    numbers[5] != 0,
                    static_cast<int>(numbers[6]),
                    static_cast<int>(numbers[7])};
}

WorkerProcess::WorkerProcess(EventLoop& loop, const std::string& program, const char* role, WorkerTask task,
                             Handlers handlers)
    : loop_(loop), handlers_(std::move(handlers)), image_(make_image_file()) {
  auto [ours, its] = Channel::make_ends();
  task.channel = its.get();
  task.image = image_.get();
  process_ = require(::fork(), "fork");
  if (process_ == 0) become_worker(program, role, task);
  watch(std::move(ours));
}

WorkerProcess::WorkerProcess(EventLoop& loop, const Running& running, Handlers handlers)
    : loop_(loop), handlers_(std::move(handlers)), process_(running.process), image_(running.image) {
  keep_open({running.channel, running.image}, false);
  watch(Fd(running.channel));
}

void WorkerProcess::watch(Fd channel) {
  handle_ = Fd(require(static_cast<int>(::syscall(SYS_pidfd_open, process_, 0)), "pidfd_open"));
  channel_ = std::make_unique<Channel>(
      loop_, std::move(channel), [this](const Request& message) { handlers_.on_message(*this, message); }, [] {});
  loop_.add(handle_.get(), EPOLLIN, [this](std::uint32_t) { on_exit(); });
}

WorkerProcess::~WorkerProcess() {
  loop_.remove(handle_.get());
}

void WorkerProcess::kill() const {
  ::kill(process_, SIGKILL);
}

void WorkerProcess::on_exit() {
  channel_->receive();  // its last words
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  const auto on_end = std::move(handlers_.on_end);  // it may destroy us
  on_end(*this, word_on(status));
}

}  // namespace shaper
