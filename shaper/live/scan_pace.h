// Keeps a kind of search, however often it is asked for, to a quarter of one processor.
#pragma once

#include <optional>

#include "shaper/live/clock.h"

namespace shaper {

class ScanPace {
 public:
  static constexpr int kRest = 3;  ///< times what the latest search took

  [[nodiscard]] bool ready(Instant now) const { return now >= next_; }
  /// When the next search may begin.
  [[nodiscard]] Instant next() const { return next_; }
  /// A search that took so long is over.
  void over(Instant now, Nanos cost) { next_ = now + kRest * cost; }

 private:
  Instant next_{};
};

}  // namespace shaper
