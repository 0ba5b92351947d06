// What an operator could change so that fewer packets are dropped.
#pragma once

#include <string>
#include <vector>

#include "shaper/core/policy.h"
#include "shaper/core/snapshot.h"

namespace shaper {

/// A line for each class that dropped more than 5 % of its packets in the last minute, the worst ones first, ten at
/// most. CoDel's drops count like all others: beyond a few percent there are more flows than the rate has room for.
[[nodiscard]] std::vector<std::string> drop_advice(const Policy& policy, const CoreSnapshot& snapshot);

}  // namespace shaper
