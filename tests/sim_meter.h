// One bucket, seen from outside.
//
// A bucket of depth d and rate r lets at most d + r t pass in any window of t seconds. Let f be what has passed minus
// r t, in nanobits. The law says that f never rises by more than d; so it is enough to remember the lowest f so far and
// to compare at each departure. Exact integers, no allowance.
//
// The depth is one full frame plus the burst; the frame part grows to the largest packet that was seen.
#pragma once

#include <algorithm>
#include <optional>

#include "shaper/core/policy.h"

namespace shaper::sim {

__extension__ using Int128 = __int128;

class Meter {
 public:
  /// A bucket that is full now, or that has earned credit since `empty_since` only.
  Meter(DataRate rate, ByteCount frame, const Burst& burst, std::optional<Instant> empty_since, Instant now)
      : rate_{rate.bits_per_second},
        burst_{burst_bytes(burst, rate).value},
        depth_{frame.value + burst_},
        sure_depth_{depth_},
        credit_{empty_since ? 0 : nanobits(depth_)},
        last_{empty_since.value_or(now)} {}

  /// A packet has arrived that this bucket will be charged for, or the link's frames have become larger.
  void seen(ByteCount packet, Instant now) {
    credit_ = credit(now);
    last_ = std::max(last_, now);
    sure_depth_ = std::max(sure_depth_, packet.value + burst_);
    may_have_seen(packet);
  }

  /// It may be this deep: that depends on what happened under an earlier policy.
  void may_have_seen(ByteCount packet) { depth_ = std::max(depth_, packet.value + burst_); }

  /// A packet departs. False if some window that ends now holds more than it may.
  [[nodiscard]] bool charge(Instant when, ByteCount bytes) {
    credit_ = credit(when) - nanobits(bytes.value);
    last_ = when;
    const Int128 accrued = Int128{rate_} * when.time_since_epoch().count();
    lowest_ = lowest_ ? std::min(*lowest_, passed_ - accrued) : passed_ - accrued;
    passed_ += nanobits(bytes.value);
    excess_ = std::max(excess_, passed_ - accrued - *lowest_);
    return passed_ - accrued - *lowest_ <= nanobits(depth_);
  }

  /// Whether it surely could let this pass: what it must have saved by now, whatever its state was at the start.
  [[nodiscard]] bool covers(ByteCount bytes, Instant now) const { return credit(now) >= nanobits(bytes.value); }

  /// Whole bytes that it must have saved by now.
  [[nodiscard]] ByteCount saved(Instant now) const {
    return {static_cast<std::uint64_t>(std::max<Int128>(credit(now), 0) / kNanobitsPerByte)};
  }

  [[nodiscard]] ByteCount depth() const { return {depth_}; }

  /// The most that any window held above rate x time, rounded up: the depth that was really used.
  [[nodiscard]] ByteCount excess() const {
    return {static_cast<std::uint64_t>((excess_ + kNanobitsPerByte - 1) / kNanobitsPerByte)};
  }

 private:
  static Int128 nanobits(std::uint64_t bytes) { return Int128{bytes} * kNanobitsPerByte; }

  [[nodiscard]] Int128 credit(Instant now) const {
    if (now <= last_) return credit_;
    return std::min(nanobits(sure_depth_), credit_ + Int128{rate_} * (now - last_).count());
  }

  std::uint64_t rate_;
  std::uint64_t burst_;
  std::uint64_t depth_;       // the most that it can be
  std::uint64_t sure_depth_;  // the least
  Int128 credit_;             // the least that it can have
  Instant last_;
  Int128 passed_ = 0;
  Int128 excess_ = 0;
  std::optional<Int128> lowest_;
};

/// A bucket of a cluster limit, seen from outside: what was granted, and what of it is left. A packet may be larger
/// than all grants: it passes when there is something, and what it lacks is owed to later grants.
class Wallet {
 public:
  void grant(ByteCount bytes, Instant valid_until, Instant now) {
    left_ = left(now) + Int128{bytes.value};
    valid_until_ = valid_until;
  }

  void take_back(ByteCount bytes, Instant now) { left_ = left(now) - Int128{bytes.value}; }

  /// A packet departs. False if nothing of it was paid for.
  [[nodiscard]] bool charge(Instant when, ByteCount bytes) {
    const Int128 before = left(when);
    left_ = before - Int128{bytes.value};
    return before > 0;
  }

  /// What was owed may be forgotten with a bucket that nobody uses.
  void forget_debt() { left_ = std::max<Int128>(left_, 0); }

  /// Bytes that may still be spent, by now; below zero: owed.
  [[nodiscard]] Int128 left(Instant now) const { return now < valid_until_ ? left_ : std::min<Int128>(left_, 0); }

 private:
  Int128 left_ = 0;
  Instant valid_until_;
};

}  // namespace shaper::sim
