#include "shaper/live/realtime.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace shaper {
namespace {

constexpr int kPriority = 1;

// A signal handler can reach nothing else.
volatile std::sig_atomic_t runaways = 0;

int set_scheduler(int policy, int priority) {
  sched_param parameter{};
  parameter.sched_priority = priority;
  return ::sched_setscheduler(0, policy, &parameter);  // a bare system call in glibc, so a signal handler may
}

extern "C" void end_runaway(int) {
  const int error = errno;
  set_scheduler(SCHED_OTHER, 0);
  runaways = runaways + 1;
  errno = error;
}

bool set_guard(Nanos longest_run) {
  struct sigaction action {};
  action.sa_handler = end_runaway;
  action.sa_flags = SA_RESTART;
  rlimit limit{};
  if (::sigaction(SIGXCPU, &action, nullptr) != 0 || ::getrlimit(RLIMIT_RTTIME, &limit) != 0) return false;
  // The kernel moves the soft limit up at each signal, so it is set anew each time; at the hard limit it would kill.
  limit.rlim_cur = static_cast<rlim_t>(longest_run / std::chrono::microseconds{1});
  if (limit.rlim_max <= limit.rlim_cur) limit.rlim_cur = limit.rlim_max / 2;
  return ::setrlimit(RLIMIT_RTTIME, &limit) == 0;
}

}  // namespace

tl::expected<void, std::string> begin_realtime(Nanos longest_run) {
  if (!set_guard(longest_run)) {
    return tl::unexpected(fmt::format("realtime: no limit can be set for it: {}", std::strerror(errno)));
  }
  if (set_scheduler(SCHED_FIFO | SCHED_RESET_ON_FORK, kPriority) == 0) return {};
  const char* const missing = errno == EPERM ? "CAP_SYS_NICE is missing" : std::strerror(errno);
  return tl::unexpected(fmt::format("realtime: {}; wake-ups may come late on a busy machine", missing));
}

void end_realtime() {
  // With the flag, if it is set: taking it away needs CAP_SYS_NICE.
  const int now = ::sched_getscheduler(0);
  if (now >= 0 && (now & ~SCHED_RESET_ON_FORK) == SCHED_FIFO)
    set_scheduler(SCHED_OTHER | (now & SCHED_RESET_ON_FORK), 0);
}

int realtime_runaways() {
  return runaways;
}

void sharpen_timers() {
  ::prctl(PR_SET_TIMERSLACK, 1UL);
}

}  // namespace shaper
