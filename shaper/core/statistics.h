// Measured values: a rate over the last second, and percentiles of delay. Nothing is decided by them.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "shaper/core/snapshot.h"
#include "shaper/core/units.h"

namespace shaper {

/// Sums over a sliding time of `kSeconds`, each from two counters: of the period that runs, and of the one before it,
/// of which that share counts that the sliding time still covers.
template <std::int64_t kSeconds, std::size_t kSums>
class SlidingSums {
 public:
  using Sums = std::array<std::uint64_t, kSums>;

  void add(std::size_t sum, std::uint64_t amount, Instant now) {
    advance(now);
    current_[sum] += amount;
  }

  [[nodiscard]] Sums sums(Instant now) const {
    SlidingSums at = *this;
    at.advance(now);
    const auto covered = static_cast<std::uint64_t>((kPeriod - (now - at.start_)).count());
    Sums sums = at.current_;
    for (std::size_t i = 0; i < kSums; ++i) {
      const Uint128 share = static_cast<Uint128>(at.previous_[i]) * covered / static_cast<Uint128>(kPeriod.count());
      sums[i] += static_cast<std::uint64_t>(share);
    }
    return sums;
  }

 private:
  static constexpr Nanos kPeriod = std::chrono::seconds{kSeconds};

  void advance(Instant now) {
    const Nanos elapsed = now - start_;
    if (elapsed < kPeriod) return;
    const bool next = elapsed < 2 * kPeriod;
    previous_ = next ? current_ : Sums{};
    start_ = next ? start_ + kPeriod : now;
    current_ = {};
  }

  Instant start_;
  Sums current_{};
  Sums previous_{};
};

/// The rate over a sliding second.
class RateMeter {
 public:
  void add(ByteCount bytes, Instant now) {
    bytes_.add(0, bytes.value, now);
    total_ += bytes;
  }

  /// All that was ever added.
  [[nodiscard]] ByteCount total() const { return total_; }
  [[nodiscard]] DataRate rate(Instant now) const { return {8 * bytes_.sums(now)[0]}; }

 private:
  SlidingSums<1, 1> bytes_;
  ByteCount total_;
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

  /// Calls `told` with the longest delay and the packets of each bucket that has some, in order.
  void each(auto&& told) const {
    for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
      if (counts_[bucket] > 0) told(std::min(upper_bound(bucket), max_), counts_[bucket]);
    }
  }

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
