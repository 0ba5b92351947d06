// Keeps a kind of search, however often it is asked for, to a quarter of one processor. What was not used is saved for
// a while, so that a few in a row need not wait.
#pragma once

#include <algorithm>

#include "shaper/live/clock.h"

namespace shaper {

class ScanPace {
 public:
  static constexpr int kShare = 4;
  static constexpr std::chrono::milliseconds kSaved{100};  ///< 25 ms of searching

  [[nodiscard]] bool ready(Instant now) const { return now >= next(); }
  /// When the next search may begin.
  [[nodiscard]] Instant next() const { return paid_ - kSaved; }
  /// A search is over that took so long.
  void over(Instant now, Nanos cost) { paid_ = std::max(paid_, now - cost) + kShare * cost; }

 private:
  Instant paid_{};  // for all searches until now
};

}  // namespace shaper
