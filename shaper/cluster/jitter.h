// Chance for periods, so that hosts do not ask all at once. Seeded: the same seed gives the same periods.
#pragma once

#include "shaper/core/units.h"

namespace shaper {

class Jitter {
 public:
  explicit Jitter(std::uint64_t seed) : state_(seed) {}

  /// `time`, longer or shorter by up to `percent`.
  [[nodiscard]] Nanos around(Nanos time, std::int64_t percent) {
    const std::int64_t spread = time.count() / 100 * percent;
    if (spread <= 0) return time;
    return time + Nanos{static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(2 * spread + 1)) - spread};
  }

 private:
  /// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  std::uint64_t state_;
};

}  // namespace shaper
