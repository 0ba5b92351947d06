#include "shaper/replay/figures.h"

namespace shaper {

ReplayFigures replay_figures(const Shaper& shaper, const Policy& policy, const UserNames& users, Instant now) {
  constexpr std::size_t kEverything = 1 << 20;
  const CoreSnapshot snapshot = shaper.snapshot(now);
  ReplayFigures figures{status_report(policy, snapshot), {}};
  std::vector<FlowSnapshot> flows;
  for (FlowCursor cursor; !cursor.done;) shaper.flows(cursor, kEverything, now, flows);
  for (const FlowSnapshot& flow : flows) figures.flows.flows.push_back(flow_report(policy, flow, users, Nanos{0}));
  figures.flows.total_flows = snapshot.flows;
  figures.flows.evicted_flows = snapshot.evicted_flows;
  return figures;
}

}  // namespace shaper
