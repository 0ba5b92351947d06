// What readers are told: which class a packet gets, counters in pieces, flows, and why one of them is no faster.
#include "shaper/core/shaper_state.h"

namespace shaper {
namespace {

FlowActivity activity_of(const Flow& flow, Instant now) {
  constexpr std::chrono::seconds kPause{1};
  if (flow.state == FlowState::asleep) return FlowActivity::limited;
  if (!flow.idle()) return flow.fresh ? FlowActivity::fresh : FlowActivity::bulk;
  return now - flow.last_seen > kPause ? FlowActivity::idle : FlowActivity::passing;
}

}  // namespace

Shaper::Explanation Shaper::State::explain(const Packet& packet) const {
  const Classifier::Result result = classifier_.classify(packet);
  return {result.class_index, result.match, classifier_.guard_of(key_of(packet))};
}

CoreSnapshot Shaper::State::without_classes(Instant now) const {
  CoreSnapshot snapshot;
  for (std::size_t i = 0; i < scheduler_->links().size(); ++i) {
    snapshot.links.push_back(scheduler_->links()[i]->snapshot(static_cast<LinkIndex>(i), now));
  }
  for (std::size_t i = 0; i < scheduler_->limits().size(); ++i) {
    snapshot.limits.push_back(scheduler_->limits()[i]->snapshot(static_cast<LimitIndex>(i), now));
  }
  snapshot.flows = flows_.size();
  snapshot.evicted_flows = flows_.evicted();
  snapshot.owners = owner_counters_;
  snapshot.owner_totals = owners_.totals();
  return snapshot;
}

CoreSnapshot Shaper::State::with_class(ClassIndex index, Instant now) const {
  CoreSnapshot snapshot = without_classes(now);
  snapshot.classes.push_back(scheduler_->snapshot(*scheduler_->classes().at(index), now));
  return snapshot;
}

void Shaper::State::snapshot(ClassCursor& cursor, std::size_t budget, Instant now, CoreSnapshot& snapshot) const {
  const auto& classes = scheduler_->classes();
  if (cursor.next == 0) {
    snapshot = without_classes(now);
    snapshot.classes.reserve(classes.size());  // to move them all would take longer than a slice may
  }
  for (; budget > 0 && cursor.next < classes.size(); --budget, ++cursor.next) {
    snapshot.classes.push_back(scheduler_->snapshot(*classes[cursor.next], now));
  }
  cursor.done = cursor.next >= classes.size();
}

void Shaper::State::flows(FlowCursor& cursor, std::size_t budget, Instant now, std::vector<FlowSnapshot>& flows) const {
  const auto position = flows_.visit(cursor.position, budget, [&](const Flow& flow) {
    if (flow.idle() && now - flow.last_seen > FlowTable::kMemory) return;
    flows.push_back(snapshot_of(flow, now));
  });
  cursor.position = position.value_or(0);
  cursor.done = !position;
}

FlowSnapshot Shaper::State::snapshot_of(const Flow& flow, Instant now) const {
  FlowSnapshot snapshot;
  snapshot.class_index = flow.owner->index();
  snapshot.link = flow.key.link;
  snapshot.headers = packet_like(flow, flow.key.link).headers;
  snapshot.user = flow.user;
  if (const Owner* owner = flow.who.get()) snapshot.owner = *owner;
  snapshot.traffic = flow.traffic;
  snapshot.rate = flow.meter.rate(now);
  snapshot.backlog_packets = flow.backlog_packets;
  snapshot.backlog_bytes = flow.backlog;
  if (flow.delays) snapshot.delay = flow.delays->summary(flow.traffic.sent_packets);
  snapshot.first_seen = flow.first_seen;
  snapshot.last_seen = flow.last_seen;
  snapshot.activity = activity_of(flow, now);
  snapshot.held_by = scheduler_->held_by(flow);
  return snapshot;
}

std::optional<HoldSnapshot> Shaper::State::hold(const Packet& packet, Instant now) const {
  const Flow* flow = flows_.find(key_of(packet));
  if (flow == nullptr || (flow->idle() && now - flow->last_seen > FlowTable::kMemory)) return std::nullopt;
  HoldSnapshot hold;
  hold.flow = snapshot_of(*flow, now);
  scheduler_->describe_holder(*flow, now, hold);
  if (!flow->holds) return hold;
  HoldMeter holds = *flow->holds;  // with the wait that is not over
  if (flow->sleeps != nullptr) {
    holds.end_asleep(flow->owner->holder_of(*flow->sleeps), now);
  } else if (!flow->idle()) {
    holds.end_awake(flow->owner->standing, now);
  }
  hold.minute = holds.minute(now);
  return hold;
}

}  // namespace shaper
