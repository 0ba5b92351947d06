// Which facts of core/owner.h a policy asks for: they cost a process that finds them out.
#pragma once

#include <cstdint>
#include <vector>

#include "shaper/core/policy.h"

namespace shaper {

/// Whether a cgroup, unit, process, pid or container is asked for, in `not` too. Users and groups come with packets.
[[nodiscard]] bool asks_owner(const Match& match);

/// Whether such a key is in one of its matches or live limits, in a `by`, or `owners = true`.
[[nodiscard]] bool needs_owners(const Policy& policy);

/// What all `pid` keys of its matches and live limits name: sorted, none twice.
[[nodiscard]] std::vector<std::uint32_t> watched_pids(const Policy& policy);

}  // namespace shaper
