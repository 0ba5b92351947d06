// Chance for experiments: the same on every machine, and how many seeds a test tries.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>
#include <vector>

#include "shaper/core/units.h"

namespace shaper::sim {

using namespace std::chrono_literals;

/// A seeded source of chance with the same sequence on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_{seed} {}

  std::uint64_t below(std::uint64_t end) { return engine_() % end; }
  std::uint64_t between(std::uint64_t first, std::uint64_t last) { return first + below(last - first + 1); }
  bool chance(unsigned percent) { return below(100) < percent; }
  Nanos up_to(Nanos most) {
    return Nanos{static_cast<std::int64_t>(between(0, static_cast<std::uint64_t>(most.count())))};
  }

  /// Between `first` and `last`, all orders of magnitude alike.
  std::uint64_t log_between(std::uint64_t first, std::uint64_t last) {
    const double low = std::log(static_cast<double>(first));
    const double high = std::log(static_cast<double>(last));
    return static_cast<std::uint64_t>(std::exp(low + (high - low) * unit()));
  }

  /// A gap of a Poisson process.
  Nanos exponential(Nanos mean) {
    return Nanos{static_cast<std::int64_t>(-std::log(1.0 - unit()) * static_cast<double>(mean.count()))};
  }

 private:
  double unit() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }

  std::mt19937_64 engine_;
};

inline std::optional<std::uint64_t> number_in_environment(const char* name) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  return std::strtoull(text, nullptr, 10);
}

/// The seeds that a test tries: a few in every run. In the environment SHAPER_TEST_SEEDS=10000 asks for that many,
/// SHAPER_TEST_FIRST_SEED=4711 for that one alone, and both for those from the one to the other.
inline std::vector<std::uint64_t> seeds(std::uint64_t few) {
  const std::optional<std::uint64_t> first = number_in_environment("SHAPER_TEST_FIRST_SEED");
  const std::uint64_t last = number_in_environment("SHAPER_TEST_SEEDS").value_or(0);
  std::vector<std::uint64_t> seeds;
  for (std::uint64_t seed = first.value_or(1); seed <= std::max(last, first.value_or(few)); ++seed)
    seeds.push_back(seed);
  return seeds;
}

}  // namespace shaper::sim
