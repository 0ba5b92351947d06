// Why a class or a flow is no faster, in words.
#pragma once

#include <string>

#include "shaper/core/policy.h"
#include "shaper/core/snapshot.h"

namespace shaper {

/// What waits in the only class of `snapshot`, and the credit of the buckets on its way. A part of a sentence.
[[nodiscard]] std::string describe_waiting(const Policy& policy, const CoreSnapshot& snapshot);

/// What a flow does, which bucket it waits for, when that lets it go on, and for how much of the last minute it was
/// held by what. Indented lines.
[[nodiscard]] std::string describe_hold(const Policy& policy, const HoldSnapshot& hold, Instant now);

}  // namespace shaper
