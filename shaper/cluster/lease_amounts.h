// Numbers of the lease that more than one of its parts needs.
#pragma once

#include <algorithm>

#include "shaper/core/units.h"

namespace shaper {

/// More than any link carries while nobody counts.
inline constexpr ByteCount kPlenty{std::uint64_t{1} << 40};

/// Between two asks, also of a host whose wallet is empty.
inline constexpr Nanos kShortestGap = std::chrono::milliseconds{10};

/// What a pace carries in so much time leaves at once.
inline constexpr Nanos kAtOnce = std::chrono::milliseconds{1};

/// Valid for so many periods is a grant, and a host that says nothing is a member.
inline constexpr int kLeasePeriods = 3;

/// The rate at which `bytes` take `time`, at least the slowest and at most the fastest that a policy may name.
constexpr DataRate rate_of(ByteCount bytes, Nanos time) {
  const Uint128 rate = static_cast<Uint128>(bytes.value) * kNanobitsPerByte / static_cast<std::uint64_t>(time.count());
  const Uint128 most = kFastestRate.bits_per_second;
  return std::max(kSlowestRate, DataRate{static_cast<std::uint64_t>(std::min(rate, most))});
}

}  // namespace shaper
