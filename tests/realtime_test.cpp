// Real-time scheduling needs CAP_SYS_NICE: without it only the refusal is tested here. netns-scripts/realtime runs this
// program as root, where a skipped test counts as a failure.
#include "shaper/live/realtime.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>

namespace shaper {
namespace {

/// In a process of its own; true if `experiment` says so.
bool in_a_child(const std::function<bool()>& experiment) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(experiment() ? 0 : 1);
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool may_be_realtime() {
  return in_a_child([] { return begin_realtime().has_value(); });
}

int policy_of(pid_t process) {
  return ::sched_getscheduler(process) & ~SCHED_RESET_ON_FORK;
}

TEST(Realtime, WithoutThePrivilegeItNamesTheCapabilityAndChangesNothing) {
  EXPECT_TRUE(in_a_child([] {
    constexpr uid_t kNobody = 65534;
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) return false;
    const auto begun = begin_realtime();
    if (begun) return policy_of(0) == SCHED_FIFO;  // RLIMIT_RTPRIO allows it to everybody here
    return begun.error().find("CAP_SYS_NICE") != std::string::npos && policy_of(0) == SCHED_OTHER;
  }));
}

TEST(Realtime, IsBegunAndEndedAndNotInherited) {
  if (!may_be_realtime()) GTEST_SKIP() << "needs CAP_SYS_NICE";
  EXPECT_TRUE(in_a_child([] {
    if (!begin_realtime() || policy_of(0) != SCHED_FIFO) return false;
    if (!in_a_child([] { return policy_of(0) == SCHED_OTHER; })) return false;
    end_realtime();
    return policy_of(0) == SCHED_OTHER && realtime_runaways() == 0;
  }));
}

/// Spins until the guard has struck so often, or three seconds are over.
bool spin_until(int runaways) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{3};
  while (realtime_runaways() < runaways) {
    if (std::chrono::steady_clock::now() > deadline) return false;
  }
  return true;
}

TEST(Realtime, ALoopThatNeverSleepsBecomesNormalAgain) {
  if (!may_be_realtime()) GTEST_SKIP() << "needs CAP_SYS_NICE";
  EXPECT_TRUE(in_a_child([] {
    constexpr Nanos kRun = std::chrono::milliseconds{100};
    if (!begin_realtime(kRun)) return false;
    if (!spin_until(1) || policy_of(0) != SCHED_OTHER) return false;
    // And once more: the kernel has moved the limit.
    if (!begin_realtime(kRun) || policy_of(0) != SCHED_FIFO) return false;
    return spin_until(2) && policy_of(0) == SCHED_OTHER;
  }));
}

TEST(Realtime, ALoopThatSleepsIsLeftAlone) {
  if (!may_be_realtime()) GTEST_SKIP() << "needs CAP_SYS_NICE";
  EXPECT_TRUE(in_a_child([] {
    if (!begin_realtime(std::chrono::milliseconds{100})) return false;
    for (int i = 0; i < 20; ++i) {
      const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds{20};
      while (std::chrono::steady_clock::now() < until) {
      }
      ::usleep(100);
    }
    return realtime_runaways() == 0 && policy_of(0) == SCHED_FIFO;
  }));
}

TEST(Timers, AreSharpened) {
  EXPECT_TRUE(in_a_child([] {
    sharpen_timers();
    return ::prctl(PR_GET_TIMERSLACK) == 1;
  }));
}

}  // namespace
}  // namespace shaper
