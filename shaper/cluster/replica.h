// A host's copy of the bucket in Redis: what that would hold now if nobody but those heard of had spent anything since.
// It earns the whole rate, as the bucket itself does, and may be below zero.
//
// What others spent was settled at a time of Redis, and so was each answer: so nothing counts twice, in whatever order
// they come.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "shaper/cluster/lease_exchange.h"

namespace shaper {

class Replica {
 public:
  /// The bucket as Redis answered at about `at`. `unsettled`: spent here, and not in that.
  void calibrate(const LeaseAnswer& answer, DataRate rate, ByteCount unsettled, Instant at) {
    rate_ = rate;
    burst_ = static_cast<std::int64_t>(answer.burst.value);
    at_ = at;
    settled_us_ = answer.redis_time_us;
    std::erase_if(elsewhere_, [this](const Spent& spent) { return spent.redis_time_us <= settled_us_; });
    level_ = answer.tokens;
    for (const Spent& spent : elsewhere_) spend(spent.bytes);
    spend(unsettled);
  }

  /// The clock of Redis was set: times from before say nothing.
  void forget_others() { elsewhere_.clear(); }

  void spend(ByteCount bytes) {
    if (level_) *level_ -= static_cast<std::int64_t>(bytes.value);
  }

  void spent_elsewhere(ByteCount bytes, std::uint64_t redis_time_us) {
    if (redis_time_us <= settled_us_) return;
    elsewhere_.push_back({bytes, redis_time_us});
    spend(bytes);
  }

  void pass(Instant now) {
    const ByteCount earned = now > at_ ? bytes_in(rate_, now - at_) : ByteCount{};
    if (!level_ || earned == ByteCount{}) return;  // its time is not lost
    level_ = std::min(*level_ + static_cast<std::int64_t>(earned.value), burst_);
    at_ = std::min(now, at_ + time_for(rate_, earned));
  }

  /// As of the last pass(); nothing before the first answer.
  [[nodiscard]] std::optional<std::int64_t> level() const { return level_; }

 private:
  struct Spent {
    ByteCount bytes;
    std::uint64_t redis_time_us;
  };

  DataRate rate_;
  std::int64_t burst_ = 0;
  std::optional<std::int64_t> level_;
  Instant at_;
  std::uint64_t settled_us_ = 0;
  std::vector<Spent> elsewhere_;  // since the latest answer
};

}  // namespace shaper
