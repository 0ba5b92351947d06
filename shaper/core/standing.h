// What held packets wait for, and for how long: the answer to "why is this flow slow?". Nothing is decided by it.
//
// A packet may wait for several buckets, one after the other. What lacks credit at the same time is found at the first,
// so the shares are of where it waited, and the largest one is what holds a flow up.
#pragma once

#include <cstddef>
#include <optional>

#include "shaper/core/snapshot.h"
#include "shaper/core/statistics.h"
#include "shaper/core/units.h"

namespace shaper {

/// Where a class waits, and for how long it did at each kind of bucket since it exists.
class Standing {
 public:
  void move_to(std::optional<Holder> holder, Instant now) {
    times_ = times(now);
    holder_ = holder;
    since_ = now;
  }
  [[nodiscard]] std::optional<Holder> holder() const { return holder_; }
  [[nodiscard]] HoldTimes times(Instant now) const {
    HoldTimes times = times_;
    if (holder_) times[static_cast<std::size_t>(*holder_)] += now - since_;
    return times;
  }

 private:
  HoldTimes times_{};
  std::optional<Holder> holder_;
  Instant since_;
};

/// For how long a flow waited at each kind of bucket, over a sliding minute: asleep at one of its own key, awake where
/// its class stands.
class HoldMeter {
 public:
  /// The flow takes a place.
  void begin(const Standing& cls, Instant now) {
    class_then_ = cls.times(now);
    since_ = now;
  }
  /// It leaves the place.
  void end_asleep(Holder at, Instant now) { add(at, now - since_, now); }
  void end_awake(const Standing& cls, Instant now) {
    if (now == since_) return;
    const HoldTimes times = cls.times(now);
    for (std::size_t i = 0; i < kHolders; ++i) add(static_cast<Holder>(i), times[i] - class_then_[i], now);
  }

  [[nodiscard]] HoldTimes minute(Instant now) const {
    const auto sums = sums_.sums(now);
    HoldTimes times{};
    for (std::size_t i = 0; i < kHolders; ++i) times[i] = Nanos{sums[i]};
    return times;
  }

 private:
  void add(Holder holder, Nanos time, Instant now) {
    if (time > Nanos{0}) sums_.add(static_cast<std::size_t>(holder), static_cast<std::uint64_t>(time.count()), now);
  }

  SlidingSums<60, kHolders> sums_;
  HoldTimes class_then_{};
  Instant since_;
};

}  // namespace shaper
