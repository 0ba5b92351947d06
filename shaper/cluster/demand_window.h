// What came for a limit in the last period, and whether the limit held some of it up.
#pragma once

#include <algorithm>
#include <vector>

#include "shaper/core/units.h"

namespace shaper {

class DemandWindow {
 public:
  /// `arrived` bytes since the bucket exists; `held_up`: some of them wait for credit, or were refused for want of it.
  void look(ByteCount arrived, bool held_up, Nanos interval, Instant now) {
    if (!looks_.empty() && arrived < looks_.back().arrived) looks_.clear();  // another bucket of the same name
    // Looks that are close together are one, so that a few cover the period.
    const bool close = looks_.size() > 1 && now - looks_[looks_.size() - 2].at < interval / 8;
    const bool before = close && looks_.back().held_up;
    if (close) looks_.pop_back();
    looks_.push_back({now, arrived, held_up || before});
    while (looks_.size() > 2 && looks_[1].at <= now - interval) looks_.erase(looks_.begin());
  }

  /// Bytes in the last `interval`. What is known of a shorter time only is not scaled up; what came after a longer time
  /// in which nobody needed to look came lately.
  [[nodiscard]] ByteCount arrived(Nanos interval) const {
    if (looks_.empty()) return {};
    const ByteCount bytes = looks_.back().arrived - looks_.front().arrived;
    const Nanos time = looks_.back().at - looks_.front().at;
    if (time <= interval || time > 2 * interval) return bytes;
    const Uint128 product = static_cast<Uint128>(bytes.value) * static_cast<std::uint64_t>(interval.count());
    return {static_cast<std::uint64_t>(product / static_cast<std::uint64_t>(time.count()))};
  }

  [[nodiscard]] bool held_up() const {
    // The first tells of the time before, unless it is the only one.
    const auto first = looks_.size() > 1 ? looks_.begin() + 1 : looks_.begin();
    return std::any_of(first, looks_.end(), [](const Look& look) { return look.held_up; });
  }

 private:
  struct Look {
    Instant at;
    ByteCount arrived;
    bool held_up;
  };
  std::vector<Look> looks_;  // the first is as old as the period, if anything is
};

}  // namespace shaper
