// shaperd: makes the objects and wires them. One program, two processes: the supervisor, which is what is started, and
// the worker, which it starts; where the policy needs it a third that talks to Redis, and one that finds owners.
#include <fmt/format.h>
#include <sys/signalfd.h>
#include <syslog.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shaper/live/confinement.h"
#include "shaper/live/control_server.h"
#include "shaper/live/daemon.h"
#include "shaper/live/event_loop.h"
#include "shaper/live/fd.h"
#include "shaper/live/handed_over.h"
#include "shaper/live/nfqueue.h"
#include "shaper/live/owner_abilities.h"
#include "shaper/live/owner_helper.h"
#include "shaper/live/realtime.h"
#include "shaper/live/redis_helper.h"
#include "shaper/live/runtime_folder.h"
#include "shaper/live/service.h"
#include "shaper/live/supervisor.h"
#include "shaper/live/system_call.h"
#include "shaper/version.h"

namespace {

constexpr const char* kUsage =
    "usage: shaperd [--foreground] [--empty-buckets]\n"
    "Shapes the packets of this network namespace. Started, told its policy and stopped by 'shaper'.\n"
    "  --foreground     stay in the foreground, log to stderr\n"
    "  --empty-buckets  begin without credit, as after a crash\n"
    "  --version        print the version\n"
    "  --help           print this\n";

struct Options {
  bool foreground = false;
  int resume = -1;  // the image of the supervisor whose place this one takes
  shaper::StartCredit credit = shaper::StartCredit::full;
};

void open_log(bool foreground) {
  ::openlog("shaperd", LOG_PID | LOG_NDELAY | (foreground ? LOG_PERROR : 0), LOG_DAEMON);
}

/// Calls `handler` when a signal asks us to end.
class EndingSignals {
 public:
  EndingSignals(shaper::EventLoop& loop, std::function<void()> handler) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    shaper::require(::sigprocmask(SIG_BLOCK, &signals, nullptr), "sigprocmask");
    fd_ = shaper::Fd(shaper::require(::signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC), "signalfd"));
    loop.add(fd_.get(), EPOLLIN, [this, end = std::move(handler)](std::uint32_t) {
      signalfd_siginfo info{};
      if (::read(fd_.get(), &info, sizeof info) == sizeof info) end();
    });
  }

 private:
  shaper::Fd fd_;
};

int work(const shaper::WorkerTask& task) {
  shaper::sharpen_timers();
  open_log(task.foreground);
  shaper::NfqueueSocket queues{shaper::Fd(task.queues)};
  shaper::drop_privileges(shaper::Confined::worker);
  shaper::EventLoop loop;
  shaper::Service service(loop, task, std::move(queues));
  const EndingSignals signals(loop, [&] { service.shut_down(); });
  shaper::filter_system_calls(shaper::Confined::worker);
  loop.run();
  return 0;
}

int talk_to_redis(const shaper::WorkerTask& task) {
  open_log(task.foreground);
  shaper::drop_privileges(shaper::Confined::redis);
  shaper::EventLoop loop;
  const shaper::RedisHelper helper(loop, shaper::Fd(task.channel));
  const EndingSignals signals(loop, [] {});  // it ends when the supervisor does
  shaper::filter_system_calls(shaper::Confined::redis);
  loop.run();
  return 0;
}

int find_owners(const shaper::WorkerTask& task) {
  open_log(task.foreground);
  shaper::drop_privileges(shaper::Confined::owners);
  const std::vector<std::string> lacks = shaper::owner_limits();
  shaper::EventLoop loop;
  const shaper::OwnerHelper helper(loop, shaper::Fd(task.channel), lacks);
  const EndingSignals signals(loop, [] {});  // it ends when the supervisor does
  shaper::filter_system_calls(shaper::Confined::owners);
  loop.run();
  return 0;
}

std::string own_path() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

shaper::Supervisor::Settings settings_of(const Options& options, const shaper::RuntimeFolder& folder, int lock) {
  return {.program = own_path(),
          .command_line = shaper::sibling_program("shaper"),
          .trouble_file = folder.trouble(),
          .fallback_file = folder.fallback(),
          .control_socket = folder.control_socket(),
          .credit = options.credit,
          .foreground = options.foreground,
          .lock = lock};
}

int run_until_end(shaper::EventLoop& loop, shaper::Supervisor& supervisor) {
  const EndingSignals signals(loop, [&] { supervisor.shut_down(); });
  loop.run();
  return supervisor.exit_status();
}

/// In the place of another supervisor, whose process this is.
int resume(const Options& options, const shaper::RuntimeFolder& folder) {
  open_log(options.foreground);
  const shaper::Fd file(options.resume);
  const std::string bytes = shaper::read_image(file.get());
  shaper::ImageReader image(bytes);
  shaper::Supervisor::Opened opened;
  image(opened);
  shaper::keep_open({file.get(), opened.lock, opened.queues, opened.listener}, false);
  const shaper::Fd lock(opened.lock);
  shaper::EventLoop loop;
  shaper::Supervisor supervisor(loop, shaper::NfqueueSocket{shaper::Fd(opened.queues)}, shaper::Fd(opened.listener),
                                settings_of(options, folder, lock.get()));
  supervisor.resume(opened.worker, image);
  return run_until_end(loop, supervisor);
}

int run(const Options& options) {
  if (!shaper::probe_permission()) {
    std::fputs("shaperd: no permission to bind a packet queue: CAP_NET_ADMIN is missing (run as root)\n", stderr);
    return 4;
  }
  const auto folder = shaper::make_runtime_folder();
  if (!folder) {
    std::fputs(fmt::format("shaperd: {}\n", folder.error()).c_str(), stderr);
    return 1;
  }
  if (options.resume >= 0) return resume(options, *folder);
  const shaper::Fd lock = shaper::lock_instance(folder->path);
  if (!lock) {
    std::fputs("shaperd: a daemon already runs in this network namespace\n", stderr);
    return 1;
  }
  shaper::Readiness readiness;
  if (!options.foreground && !readiness.go_to_background()) return readiness.wait_for_child();
  open_log(options.foreground);
  shaper::EventLoop loop;
  shaper::Supervisor supervisor(loop, shaper::NfqueueSocket(), shaper::listen_at(folder->control_socket()),
                                settings_of(options, *folder, lock.get()));
  supervisor.start([&] { readiness.tell(); });
  return run_until_end(loop, supervisor);
}

int run_with_arguments(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--foreground") {
      options.foreground = true;
    } else if (argument == "--empty-buckets") {
      options.credit = shaper::StartCredit::empty;
    } else if (argument == "--worker" && i + 1 < count) {  // by the supervisor
      const auto task = shaper::WorkerTask::parse(arguments[i + 1]);
      if (task) return work(*task);
    } else if (argument == "--redis" && i + 1 < count) {
      const auto task = shaper::WorkerTask::parse(arguments[i + 1]);
      if (task) return talk_to_redis(*task);
    } else if (argument == "--owners" && i + 1 < count) {
      const auto task = shaper::WorkerTask::parse(arguments[i + 1]);
      if (task) return find_owners(*task);
    } else if (argument == "--resume" && i + 1 < count) {  // by a supervisor that gives way to a newer program
      options.resume = std::atoi(arguments[++i]);
    } else if (argument == "--version") {
      std::puts(fmt::format("shaperd {}", shaper::kVersion).c_str());
      return 0;
    } else if (argument == "--help") {
      std::fputs(kUsage, stdout);
      return 0;
    } else {
      std::fputs(fmt::format("shaperd: unknown argument '{}'\n{}", argument, kUsage).c_str(), stderr);
      return 2;
    }
  }
  return run(options);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run_with_arguments(count, arguments);
  } catch (const std::exception& error) {
    std::fputs(fmt::format("shaperd: {}\n", error.what()).c_str(), stderr);
    return 1;
  }
}
