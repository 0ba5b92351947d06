#include "shaper/core/flow_table.h"

#include <utility>

#include "shaper/core/class_queue.h"

namespace shaper {

FlowTable::FlowTable(std::uint32_t max_flows, HashKey key) : flows_(0, FlowKeyHash{key}) {
  set_max_flows(max_flows);
}

void FlowTable::set_max_flows(std::uint32_t max_flows) {
  max_flows_ = max_flows;
  // Room for all from the start: the table never grows on its way, so no packet waits for that.
  flows_.reserve(std::size_t{max_flows} + kReserve);
}

bool FlowTable::rename(Flow& flow, const FlowKey& key) {
  if (flow.key == key) return true;
  if (flows_.contains(key)) return false;
  auto node = flows_.extract(flow.key);
  node.key() = key;
  flow.key = key;
  flows_.insert(std::move(node));
  return true;
}

Flow* FlowTable::find(const FlowKey& key) {
  const auto found = flows_.find(key);
  return found == flows_.end() ? nullptr : &found->second;
}

const Flow* FlowTable::find(const FlowKey& key) const {
  const auto found = flows_.find(key);
  return found == flows_.end() ? nullptr : &found->second;
}

Flow& FlowTable::insert(const FlowKey& key, Instant now) {
  Flow& flow = flows_.try_emplace(key, key, now).first->second;
  by_age_.push_back(flow);
  return flow;
}

void FlowTable::erase(Flow& flow) {
  by_age_.remove(flow);
  if (flow.in_reserve) --in_reserve_;
  if (flow.owner != nullptr) flow.owner->detach(flow);
  const FlowKey key = flow.key;
  flows_.erase(key);
}

bool FlowTable::forget(Flow& flow, Instant now, std::uint32_t epoch) {
  if (!flow.idle() || flow.on_detour(epoch) || (flow.owner != nullptr && !flow.owner->may_forget(flow, now))) {
    // Look at another one next time.
    by_age_.remove(flow);
    by_age_.push_back(flow);
    return false;
  }
  erase(flow);
  return true;
}

bool FlowTable::make_room(Instant now, std::uint32_t epoch) {
  // Two for one: silent flows go faster than new ones come.
  for (int i = 0; i < 2 && !by_age_.empty() && now - by_age_.front()->last_seen > kMemory; ++i) {
    forget(*by_age_.front(), now, epoch);
  }
  constexpr int kTries = 8;
  for (int i = 0; i < kTries && size() >= max_flows_; ++i) {
    if (forget(*by_age_.front(), now, epoch)) ++evicted_;
  }
  return size() < max_flows_;
}

std::vector<Flow*> FlowTable::all() const {
  std::vector<Flow*> flows;
  flows.reserve(size());
  for (Flow* flow = by_age_.front(); flow != nullptr; flow = ByAge::next(*flow)) flows.push_back(flow);
  return flows;
}

}  // namespace shaper
