// A match as people read it, for `check`, `explain` and reports.
#pragma once

#include <string>

#include "shaper/core/policy.h"

namespace shaper {

/// "protocol tcp, remote_port 873 or 8000-8010, not (user 0)"; "everything" if no key is asked. The keys are those of
/// the policy; users and groups are numbers.
[[nodiscard]] std::string describe_match(const Match& match);

}  // namespace shaper
