// Measured values: a rate over the last second, and percentiles of delay. Nothing is decided by them.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "shaper/core/snapshot.h"
#include "shaper/core/units.h"

namespace shaper {

/// Bytes per second over a sliding second, from two counters: the second that runs, and the share of the one before it
/// that the sliding second still covers.
class RateMeter {
 public:
  void add(ByteCount bytes, Instant now) {
    advance(now);
    current_ += bytes;
  }

  [[nodiscard]] DataRate rate(Instant now) const {
    RateMeter meter = *this;
    meter.advance(now);
    const auto covered = static_cast<std::uint64_t>((kSecond - (now - meter.start_)).count());
    const Uint128 share = static_cast<Uint128>(meter.previous_.value) * covered / std::nano::den;
    return {8 * (meter.current_.value + static_cast<std::uint64_t>(share))};
  }

 private:
  static constexpr Nanos kSecond{std::nano::den};

  void advance(Instant now) {
    const Nanos elapsed = now - start_;
    if (elapsed < kSecond) return;
    const bool next_second = elapsed < 2 * kSecond;
    previous_ = next_second ? current_ : ByteCount{};
    start_ = next_second ? start_ + kSecond : now;
    current_ = {};
  }

  Instant start_;
  ByteCount current_;
  ByteCount previous_;
};

/// Delays in buckets of whole microseconds that widen with the delay, eight to an octave: a percentile is at most 12.5
/// % too large. Delays above 67 s count as 67 s; a bucket that is full (2^32 - 1) stays full.
class DelayHistogram {
 public:
  void add(Nanos delay, std::uint32_t packets) {
    const std::size_t bucket = bucket_of(delay);
    const std::uint32_t room = ~std::uint32_t{0} - counts_[bucket];
    counts_[bucket] += packets < room ? packets : room;
    if (delay > max_) max_ = delay;
  }

  /// Percentiles when of `packets` in all those that are not in the histogram did not wait.
  [[nodiscard]] DelaySummary summary(std::uint64_t packets) const;

 private:
  static constexpr unsigned kSubBits = 3;  // 2^3 buckets to an octave
  static constexpr unsigned kOctaves = 26;
  static constexpr std::size_t kBuckets = (kOctaves - kSubBits + 1) << kSubBits;

  static std::size_t bucket_of(Nanos delay) {
    constexpr std::uint64_t kLongest = (std::uint64_t{1} << kOctaves) - 1;
    const auto whole = static_cast<std::uint64_t>(delay.count()) / 1000;
    const std::uint64_t microseconds = whole < kLongest ? whole : kLongest;
    if (microseconds < (1U << kSubBits)) return microseconds;
    const unsigned shift = static_cast<unsigned>(std::bit_width(microseconds)) - 1 - kSubBits;
    return (static_cast<std::size_t>(shift) << kSubBits) + (microseconds >> shift);
  }
  static Nanos upper_bound(std::size_t bucket);

  std::array<std::uint32_t, kBuckets> counts_{};
  Nanos max_{0};
};

}  // namespace shaper
