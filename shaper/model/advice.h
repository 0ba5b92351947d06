// What an operator could change so that fewer packets are dropped.
#pragma once

#include <string>
#include <vector>

#include "shaper/core/policy.h"
#include "shaper/core/snapshot.h"
#include "shaper/core/units.h"

namespace shaper {

/// What a policer should save up at least: a TCP sends so much in a row.
inline constexpr Nanos kAdvisedPolicerBurst = std::chrono::milliseconds{50};

/// A line for each class that dropped more than 5 % of its packets in the last minute, the worst ones first, ten at
/// most. CoDel's drops count like all others: beyond a few percent there are more flows than the rate has room for.
[[nodiscard]] std::vector<std::string> drop_advice(const Policy& policy, const CoreSnapshot& snapshot);

}  // namespace shaper
