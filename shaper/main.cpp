// shaperd: makes the objects and wires them.
#include <fmt/format.h>
#include <sys/signalfd.h>
#include <syslog.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "shaper/live/daemon.h"
#include "shaper/live/event_loop.h"
#include "shaper/live/fd.h"
#include "shaper/live/nfqueue.h"
#include "shaper/live/realtime.h"
#include "shaper/live/runtime_folder.h"
#include "shaper/live/service.h"
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
  shaper::StartCredit credit = shaper::StartCredit::full;
};

/// The signals that end the daemon, as a descriptor.
shaper::Fd ending_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  shaper::require(::sigprocmask(SIG_BLOCK, &signals, nullptr), "sigprocmask");
  return shaper::Fd(shaper::require(::signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC), "signalfd"));
}

int serve(const Options& options, const shaper::RuntimeFolder& folder, shaper::Readiness& readiness) {
  shaper::sharpen_timers();
  ::openlog("shaperd", LOG_PID | (options.foreground ? LOG_PERROR : 0), LOG_DAEMON);
  shaper::EventLoop loop;
  shaper::Service service(loop, folder.control_socket(), options.credit);
  const shaper::Fd signals = ending_signals();
  loop.add(signals.get(), EPOLLIN, [&](std::uint32_t) {
    signalfd_siginfo info{};
    if (::read(signals.get(), &info, sizeof info) == sizeof info) service.shut_down();
  });
  readiness.tell();
  loop.run();
  return 0;
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
  const shaper::Fd lock = shaper::lock_instance(folder->path);
  if (!lock) {
    std::fputs("shaperd: a daemon already runs in this network namespace\n", stderr);
    return 1;
  }
  shaper::Readiness readiness;
  if (!options.foreground && !readiness.go_to_background()) return readiness.wait_for_child();
  return serve(options, *folder, readiness);
}

}  // namespace

int main(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--foreground") {
      options.foreground = true;
    } else if (argument == "--empty-buckets") {
      options.credit = shaper::StartCredit::empty;
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
  try {
    return run(options);
  } catch (const std::exception& error) {
    std::fputs(fmt::format("shaperd: {}\n", error.what()).c_str(), stderr);
    return 1;
  }
}
