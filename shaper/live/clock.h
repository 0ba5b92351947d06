// The only place where time is read. The core is told the result.
#pragma once

#include <ctime>

#include "shaper/core/units.h"

namespace shaper {

[[nodiscard]] inline Nanos read_clock(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return std::chrono::seconds{time.tv_sec} + Nanos{time.tv_nsec};
}

/// CLOCK_MONOTONIC: no step of the wall clock empties or floods a bucket.
[[nodiscard]] inline Instant monotonic_now() {
  return Instant{read_clock(CLOCK_MONOTONIC)};
}

/// What added to an Instant gives the time since the Unix epoch, as of now.
[[nodiscard]] inline Nanos offset_to_utc() {
  return read_clock(CLOCK_REALTIME) - monotonic_now().time_since_epoch();
}

}  // namespace shaper
