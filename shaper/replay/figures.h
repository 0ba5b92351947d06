// What a core has to say at the end of a replay, as reports.
#pragma once

#include "shaper/core/shaper.h"
#include "shaper/model/report.h"

namespace shaper {

struct ReplayFigures {
  StatusReport status;
  FlowsReport flows;
};

[[nodiscard]] ReplayFigures replay_figures(const Shaper& shaper, const Policy& policy, const UserNames& users,
                                           Instant now);

}  // namespace shaper
