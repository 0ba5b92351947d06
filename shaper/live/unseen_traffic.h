// What goes over a link's interface and never comes to our rules, so that nobody takes it for shaped.
#pragma once

#include <string>
#include <vector>

#include "shaper/core/policy.h"
#include "shaper/live/links.h"

namespace shaper {

/// One line for each reason: bridged frames, a bridge's port, flowtables.
[[nodiscard]] std::vector<std::string> unseen_traffic(const Policy& policy, const LinkWatch& links);

}  // namespace shaper
