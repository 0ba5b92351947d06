// A byte token bucket that rounds nothing.
//
// The rate law: a packet conforms when the credit covers it; credit accrues with real time and is capped at the depth.
// So in any window of t seconds at most depth + rate x t departs, however late the caller wakes up. The depth is one
// full frame plus the burst: with the larger of the two instead of the sum, every late wake-up costs a slow bucket part
// of its rate. The law speaks of departures, not of decisions: departed() tells of a decision that was carried out
// late. A packet larger than a full frame makes the frame part grow to its size, so that it passes, and no more than
// the burst is needed for late wake-ups.
//
// Credit is in nanobits (1 bit/s x 1 ns): at most (1 GiB + one packet) x 8e9 = 8.6e18, which fits 64 bits. What many
// buckets have in common stands apart in BucketSpec: the state of one bucket is 16 bytes.
#pragma once

#include <algorithm>
#include <cassert>

#include "shaper/core/units.h"

namespace shaper {

/// Rate and depth of a bucket, or of all buckets of one kind.
struct BucketSpec {
  DataRate rate;
  ByteCount frame;  ///< one full frame, or the largest that there was, or the largest packet that was seen
  ByteCount burst;

  [[nodiscard]] ByteCount depth() const { return frame + burst; }

  /// Makes the bucket deep enough for packets of `length` wire bytes to be late by the burst without loss of rate.
  void admit(ByteCount length) { frame = std::max(frame, length); }
};

class TokenBucket {
 public:
  static TokenBucket full(const BucketSpec& spec, Instant now) { return {nanobits(spec.depth()), now}; }
  static TokenBucket empty(Instant now) { return {0, now}; }
  static TokenBucket with_credit(std::uint64_t nanobits, Instant now) { return {nanobits, now}; }

  /// Brings the credit up to `now`. Returns the nanobits that did not fit.
  std::uint64_t accrue(const BucketSpec& spec, Instant now) {
    if (now <= last_) return 0;
    const auto elapsed = static_cast<std::uint64_t>((now - last_).count());
    last_ = now;
    const std::uint64_t room = nanobits(spec.depth()) - std::min(credit_, nanobits(spec.depth()));
    const Uint128 earned = static_cast<Uint128>(elapsed) * spec.rate.bits_per_second;
    if (earned <= room) {
      credit_ += static_cast<std::uint64_t>(earned);
      return 0;
    }
    credit_ += room;
    constexpr Uint128 kMost = ~std::uint64_t{0};
    return static_cast<std::uint64_t>(std::min<Uint128>(earned - room, kMost));
  }

  /// Whether the credit, as of the last accrue(), covers `length` wire bytes.
  [[nodiscard]] bool covers(ByteCount length) const { return credit_ >= nanobits(length); }

  /// What was charged since the last accrue(), `spent` in all, really left at `at` or before. Until then it was still
  /// here, and took part in the cap: else a full bucket whose packets leave late would fill up behind them too early.
  /// Returns the nanobits that did not fit.
  std::uint64_t departed(const BucketSpec& spec, ByteCount spent, Instant at) {
    credit_ += nanobits(spent);
    const std::uint64_t lost = accrue(spec, at);
    credit_ -= nanobits(spent);
    return lost;
  }

  /// Takes `length` from a credit that covers it.
  void charge(ByteCount length) {
    assert(covers(length));
    credit_ -= nanobits(length);
  }

  /// Takes `length`, also where the credit does not cover it: then nothing is earned until the rest is paid.
  void owe(const BucketSpec& spec, ByteCount length) {
    if (covers(length)) return charge(length);
    last_ = covered_at(spec, length);
    credit_ = 0;
  }

  /// The first instant at which the credit covers `length`, which the depth must admit.
  [[nodiscard]] Instant covered_at(const BucketSpec& spec, ByteCount length) const {
    if (covers(length)) return last_;
    const std::uint64_t missing = nanobits(length) - credit_;
    const std::uint64_t rate = spec.rate.bits_per_second;
    return last_ + Nanos{static_cast<std::int64_t>(missing / rate + (missing % rate != 0 ? 1 : 0))};
  }

  /// Whether the bucket is full at `now`: forgetting it then and starting a full one later is the same.
  [[nodiscard]] bool full_at(const BucketSpec& spec, Instant now) const {
    TokenBucket later = *this;
    later.accrue(spec, now);
    return later.credit_ >= nanobits(spec.depth());
  }

  /// As of the last accrue().
  [[nodiscard]] std::uint64_t credit_nanobits() const { return credit_; }
  /// Whole bytes of credit as of the last accrue().
  [[nodiscard]] ByteCount credit() const { return {credit_ / kNanobitsPerByte}; }

  /// Another spec from now on: credit earned so far stays, up to the new depth.
  void change(const BucketSpec& before, const BucketSpec& after, Instant now) {
    accrue(before, now);
    credit_ = std::min(credit_, nanobits(after.depth()));
  }

 private:
  TokenBucket(std::uint64_t credit, Instant now) : credit_(credit), last_(now) {}
  static constexpr std::uint64_t nanobits(ByteCount bytes) { return bytes.value * kNanobitsPerByte; }

  std::uint64_t credit_;  // nanobits
  Instant last_;
};

}  // namespace shaper
