// The largest number of hosts that shared a bucket in the last minute of answers, at least: without answers nothing is
// forgotten.
#pragma once

#include <algorithm>

#include "shaper/core/units.h"

namespace shaper {

class MemberWatch {
 public:
  static constexpr Nanos kMemory = std::chrono::minutes{1};

  void saw(std::uint32_t members, Instant now) {
    if (now - begun_ >= kMemory) {
      before_ = current_;
      current_ = 0;
      begun_ = now;
    }
    current_ = std::max(current_, members);
  }

  /// 0: no answer yet.
  [[nodiscard]] std::uint32_t most() const { return std::max(before_, current_); }

 private:
  Instant begun_;
  std::uint32_t current_ = 0;
  std::uint32_t before_ = 0;  // in the minute before
};

}  // namespace shaper
