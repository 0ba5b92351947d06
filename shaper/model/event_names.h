// The names that a policy uses, written down with their numbers, so that its event log can be replayed where these
// users do not exist.
#pragma once

#include <vector>

#include "shaper/model/config.h"
#include "shaper/model/event_log.h"

namespace shaper {

/// `names`, but every answer is also appended to `recorded`, which must outlive the result.
[[nodiscard]] NameLookup recording_lookup(NameLookup names, std::vector<event::Name>& recorded);

/// Knows exactly what was recorded; the last record of a name counts.
[[nodiscard]] NameLookup recorded_lookup(const std::vector<event::Name>& recorded);

}  // namespace shaper
