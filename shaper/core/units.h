// Quantities of the core: bytes, rates, durations and instants, each a type of its own.
//
// All are exact integers. A duration is in nanoseconds, a rate in bits per second, and the product of the two is a
// credit in nanobits (1 bit/s x 1 ns), so that metering never rounds. `Instant` belongs to a clock that has no now():
// whoever calls the core tells it the time, and core code that wants to read a clock does not compile.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>

namespace shaper {

__extension__ using Uint128 = unsigned __int128;

using Nanos = std::chrono::nanoseconds;

/// The clock of the core: monotonic, starts anywhere, cannot be read.
struct CoreClock {
  using duration = Nanos;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<CoreClock>;
  static constexpr bool is_steady = true;
};
using Instant = CoreClock::time_point;

/// A number of bytes.
struct ByteCount {
  std::uint64_t value = 0;

  friend constexpr auto operator<=>(ByteCount, ByteCount) = default;
  constexpr ByteCount& operator+=(ByteCount other) {
    value += other.value;
    return *this;
  }
  constexpr ByteCount& operator-=(ByteCount other) {
    value -= other.value;
    return *this;
  }
  friend constexpr ByteCount operator+(ByteCount a, ByteCount b) { return {a.value + b.value}; }
  friend constexpr ByteCount operator-(ByteCount a, ByteCount b) { return {a.value - b.value}; }
};

/// A rate in bits per second; 64 bits hold 18 Ebit/s.
struct DataRate {
  std::uint64_t bits_per_second = 0;

  friend constexpr auto operator<=>(DataRate, DataRate) = default;
};

/// The slowest and the fastest rate that a policy may name.
inline constexpr DataRate kSlowestRate{300};
inline constexpr DataRate kFastestRate{400'000'000'000};

inline constexpr std::uint64_t kNanobitsPerByte = 8'000'000'000;

/// The deepest bucket: its credit in nanobits still fits 63 bits.
inline constexpr ByteCount kDeepestBucket{std::uint64_t{1} << 30};

/// Whole bytes that `rate` carries in `time`, rounded down. `time` must not be negative.
constexpr ByteCount bytes_in(DataRate rate, Nanos time) {
  const Uint128 nanobits = static_cast<Uint128>(rate.bits_per_second) * static_cast<std::uint64_t>(time.count());
  return {static_cast<std::uint64_t>(nanobits / kNanobitsPerByte)};
}

/// The time that `bytes` take at `rate`, rounded up. `rate` must not be zero.
constexpr Nanos time_for(DataRate rate, ByteCount bytes) {
  const Uint128 nanobits = static_cast<Uint128>(bytes.value) * kNanobitsPerByte;
  return Nanos{static_cast<std::int64_t>((nanobits + rate.bits_per_second - 1) / rate.bits_per_second)};
}

}  // namespace shaper
