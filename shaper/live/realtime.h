// SCHED_FIFO for the packet loop, and what keeps a loop that never sleeps from taking its processor for ever.
//
// On a busy machine only a real-time task is woken in time (p99.9 of a wake-up 44 us instead of 4 ms). Priority 1 is
// above every normal task and below everything else that is real-time. Children do not inherit it. The guard is
// RLIMIT_RTTIME (setrlimit(2), checked at the scheduler's tick): a real-time task that did not sleep for so long gets
// SIGXCPU, and the handler makes it a normal one again. It stays one until it is asked to be real-time anew. The limit
// and the handler are the process's: one thread, the one that calls, is meant.
#pragma once

#include <string>
#include <tl/expected.hpp>

#include "shaper/core/units.h"

namespace shaper {

/// Two seconds without sleep are no batch of packets any more.
inline constexpr Nanos kLongestRealtimeRun = std::chrono::seconds{2};

/// Enters real-time scheduling. The error is one line that says what is missing; then all is as before.
[[nodiscard]] tl::expected<void, std::string> begin_realtime(Nanos longest_run = kLongestRealtimeRun);

/// Back to normal scheduling; without effect where that is what there is.
void end_realtime();

/// How often the guard has ended real-time scheduling.
[[nodiscard]] int realtime_runaways();

/// Sleeps end within a microsecond of their time and not within 50, for normal tasks too (prctl(2),
/// PR_SET_TIMERSLACK).
void sharpen_timers();

}  // namespace shaper
