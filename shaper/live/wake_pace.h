// How often the timer may wake the daemon. Sleeping and waking costs 12 to 17 us of CPU, whatever it is for: a link
// of 1 Gbit/s sends 82,000 frames a second, and waking for each would take more than a core.
//
// Wake-ups may come on average once in a quantum. Those of a slow class come less often by nature, so they are on time
// to the microsecond; a few may also come in a row. The quantum is short against the bursts of the policy, so that
// being late by it costs no bucket its rate. Pure: the caller tells the time.
#pragma once

#include <algorithm>

#include "shaper/core/policy.h"
#include "shaper/core/units.h"

namespace shaper {

/// At most 4,000 wake-ups a second, 5 to 7 % of a core; and with it the most that a small packet waits for nothing but
/// a wake-up.
inline constexpr Nanos kLongestQuantum = std::chrono::microseconds{250};

/// At most 20,000 a second, 24 to 34 % of a core: a policy whose bursts are shorter than four times this may miss its
/// rate.
inline constexpr Nanos kShortestQuantum = std::chrono::microseconds{50};

/// A quarter of the shortest burst that packets may have to wait for, between the shortest and the longest quantum.
[[nodiscard]] Nanos wake_quantum(const Policy& policy);

/// Says when the timer may fire.
class WakePace {
 public:
  /// Wake-ups that may come in a row, after as many quanta with none.
  static constexpr int kSaved = 8;

  explicit WakePace(Nanos quantum = kLongestQuantum) : quantum_(quantum) {}

  void set_quantum(Nanos quantum) { quantum_ = quantum; }

  /// The earliest instant, not before `wanted`, that a wake-up may come at.
  [[nodiscard]] Instant earliest(Instant wanted) const { return std::max(wanted, paid_until_ - kSaved * quantum_); }

  /// The timer has woken the daemon.
  void woke(Instant now) { paid_until_ = std::max(paid_until_, now) + quantum_; }

 private:
  Nanos quantum_;
  Instant paid_until_;  // each wake-up pays for one quantum
};

}  // namespace shaper
