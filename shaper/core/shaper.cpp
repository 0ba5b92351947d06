#include "shaper/core/shaper.h"

#include <algorithm>
#include <array>
#include <utility>

#include "shaper/core/shaper_state.h"

namespace shaper {
namespace {

/// So many of them for each class.
constexpr std::uint64_t kSharedFlowsPerClass = 64;

/// Half of what one kernel queue can hold (65,536 since its packet map is hashed); over it, so many go at once.
constexpr std::size_t kMostHeld = 32'768;
constexpr std::size_t kDroppedAtOnce = 64;

}  // namespace

Framing Shaper::State::framing_of(const LinkPolicy& link, std::uint32_t mtu) {
  return {mtu, link.overhead, link.smallest_frame};
}

Shaper::State::State(const Policy& policy, StartCredit credit, HashKey key, Instant now)
    : policy_(policy), classifier_(policy), key_(key), flows_(policy.max_flows, key), latest_(now) {
  for (const LinkPolicy& link : policy.links) links_.push_back({framing_of(link, kUsualMtu), 0});
  classes_ = make_classes(policy, credit == StartCredit::full ? std::nullopt : std::optional(now), now);
}

Shaper::State::Classes Shaper::State::make_classes(const Policy& policy, std::optional<Instant> empty_since,
                                                   Instant now) {
  Classes classes;
  for (const ClassPolicy& cls : policy.classes) {
    const auto index = static_cast<ClassIndex>(classes.size());
    classes.push_back(std::unique_ptr<ScheduledClass>(new ScheduledClass{
        {cls, index, policy.links[cls.link].direction, links_[cls.link].framing, held_, key_, empty_since, now}, now}));
  }
  return classes;
}

/// Whoever does not say when packets left, lets them leave when they are told to.
void Shaper::State::begin(Instant now) {
  if (now > latest_) on_departed(latest_);
  latest_ = now;
}

void Shaper::State::on_departed(Instant at) {
  for (ScheduledClass* scheduled : spent_) {
    scheduled->queue.departed(at);
    scheduled->spent = false;
  }
  spent_.clear();
  latest_ = at;
}

void Shaper::State::schedule(ScheduledClass& scheduled) {
  if (scheduled.queue.has_spent() && !std::exchange(scheduled.spent, true)) spent_.push_back(&scheduled);
  if (const auto wake = scheduled.queue.next_departure()) {
    scheduled.wake = *wake;
    wake_order_.update(scheduled);
  } else {
    wake_order_.remove(scheduled);
  }
}

// --- The three calls -------------------------------------------------------------------------------------------------

void Shaper::State::on_packet(const Packet& packet, Instant now, Verdicts& out) {
  begin(now);
  Flow& flow = flow_of(packet, now);
  follow_owner(flow, packet, now);
  if (takes_detour(flow, packet)) {
    flow.detour_epoch = epoch_;
    ++links_[packet.link].detoured_packets;
    out.push_back({packet.id, Decision::detour, DropReason::policed, 1, flow.owner->index(), {}, Nanos{0}});
    return;
  }
  flows_.touch(flow, now);
  flow.last_mark = packet.mark;
  flow.last_dscp = packet.headers.dscp;
  ScheduledClass& scheduled = *classes_[flow.owner->index()];
  scheduled.queue.arrive(flow, packet, wire_size(packet, links_[packet.link].framing), now, out);
  schedule(scheduled);
  if (held_.count() > kMostHeld) drop_from_fattest_class(now, out);
}

void Shaper::State::drop_from_fattest_class(Instant now, Verdicts& out) {
  const auto fattest = std::max_element(classes_.begin(), classes_.end(), [](const auto& a, const auto& b) {
    return a->queue.backlog_packets() < b->queue.backlog_packets();
  });
  (*fattest)->queue.make_room(kDroppedAtOnce, now, out);
  (*fattest)->queue.release(now, out);
  schedule(**fattest);
}

void Shaper::State::release(Instant now, Verdicts& out) {
  begin(now);
  while (!wake_order_.empty() && wake_order_.top().wake <= now) {
    ScheduledClass& scheduled = wake_order_.top();
    scheduled.queue.release(now, out);
    schedule(scheduled);
  }
}

std::optional<Instant> Shaper::State::next_departure() const {
  if (wake_order_.empty()) return std::nullopt;
  return wake_order_.top().wake;
}

// --- Flows -----------------------------------------------------------------------------------------------------------

FlowKey Shaper::State::key_of(const Packet& packet) const {
  const Headers& headers = packet.headers;
  return {headers.source,
          headers.destination,
          headers.source_port,
          headers.destination_port,
          packet.link,
          headers.family,
          headers.protocol,
          classifier_.asks_mark() ? packet.mark : 0,
          classifier_.asks_dscp() ? headers.dscp : std::uint32_t{0}};
}

Flow& Shaper::State::flow_of(const Packet& packet, Instant now) {
  FlowKey key = key_of(packet);
  if (Flow* flow = flows_.find(key)) return *flow;

  const ClassIndex index = classifier_.classify(packet).class_index;
  const bool room = flows_.make_room(now, epoch_);
  if (!room || shared_flows_ > 0) {
    // The order inside a flow goes first: while its packets may be in a shared flow, that is where it stays.
    const std::array<FlowKey, 2> shared = shared_keys(key, index);
    for (const FlowKey& candidate : shared) {
      Flow* flow = flows_.find(candidate);
      if (flow != nullptr && busy(*flow)) return *flow;
    }
    std::erase_if(lingering_, [&](const FlowKey& other) {
      const Flow* flow = flows_.find(other);
      return flow == nullptr || !busy(*flow);
    });
    for (const FlowKey& other : lingering_) {
      // Whose packets wait at an address of the old policy is not known any more: it may be anybody's.
      const bool may_be_there = other.family != Family::other || other.source_port == shared.back().source_port;
      if (other.link == key.link && may_be_there) return *flows_.find(other);
    }
    if (!room) {
      key = shared.front();
      if (Flow* flow = flows_.find(key)) return *flow;
      ++shared_flows_;
    }
  }
  Flow& flow = flows_.insert(key, now);
  flow.user = packet.user;
  flow.group = packet.group;
  classes_[index]->queue.attach(flow, now);
  return flow;
}

/// Where packets go that have no flow of their own: one of a few by hash, but first the one that obeys the `each`
/// bucket of their address, if there is such a bucket.
std::array<FlowKey, 2> Shaper::State::shared_keys(const FlowKey& key, ClassIndex index) const {
  // What a change of policy may change has no part in it: a flow stays in its shared flow.
  FlowKey lasting = key;
  lasting.link = 0;
  lasting.mark = lasting.dscp = 0;
  FlowKey hashed;
  hashed.link = key.link;
  hashed.protocol = kSharedFlow;
  hashed.mark = index;
  hashed.source_port = static_cast<std::uint16_t>(flows_.hash(lasting) % kSharedFlowsPerClass);
  const std::optional<FlowKey> bucket = classes_[index]->queue.shared_bucket(key);
  if (!bucket) return {hashed, hashed};
  FlowKey addressed = hashed;
  addressed.source_port = 0;
  addressed.family = bucket->family;
  addressed.source = addressed.destination = bucket->source;
  return {addressed, hashed};
}

/// The socket of a flow may become known late (a SYN-ACK has none) or change (its port is used again).
void Shaper::State::follow_owner(Flow& flow, const Packet& packet, Instant now) {
  if (!packet.user || (flow.user == packet.user && flow.group == packet.group)) return;
  if (flow.key.protocol == kSharedFlow) return;
  if (classifier_.asks_owner()) {
    if (!flow.idle()) return;  // its held packets go first; then it moves
    const ClassIndex index = classifier_.classify(packet).class_index;
    if (index != flow.owner->index()) {
      flow.owner->detach(flow);
      classes_[index]->queue.attach(flow, now);
    }
  }
  flow.user = packet.user;
  flow.group = packet.group;
}

/// A split flow detours with all its packets, so that its order stays; it comes back when none is on its way.
bool Shaper::State::takes_detour(Flow& flow, const Packet& packet) const {
  if (packet.queue == QueueKind::split) return false;
  const bool cuts = flow.owner->splits();
  if (cuts && packet.super) flow.split = true;
  if (!cuts && flow.split && flow.detour_epoch != epoch_) flow.split = false;
  return flow.split;
}

void Shaper::State::on_lost(const Verdict& verdict) {
  if (verdict.class_index < classes_.size()) classes_[verdict.class_index]->queue.count_lost(verdict);
}

void Shaper::State::set_mtu(LinkIndex link, std::uint32_t mtu) {
  links_[link].framing.mtu = mtu;
  for (const auto& scheduled : classes_) {
    if (policy_.classes[scheduled->queue.index()].link == link) {
      scheduled->queue.set_framing(links_[link].framing, latest_);
    }
  }
}

void Shaper::State::pass_all(Instant now, Verdicts& out) {
  begin(now);
  const auto before = static_cast<std::ptrdiff_t>(out.size());
  for (const auto& scheduled : classes_) {
    for (Flow* flow : scheduled->queue.waiting()) scheduled->queue.pass(*flow, now, out);
    schedule(*scheduled);
  }
  // Longest held first; a stable sort keeps the order inside a flow.
  std::stable_sort(out.begin() + before, out.end(),
                   [](const Verdict& a, const Verdict& b) { return a.delay > b.delay; });
}

// --- Readers ---------------------------------------------------------------------------------------------------------

CoreSnapshot Shaper::State::snapshot(Instant now) const {
  CoreSnapshot snapshot;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    snapshot.links.push_back({static_cast<LinkIndex>(i), links_[i].detoured_packets});
  }
  for (const auto& scheduled : classes_) snapshot.classes.push_back(scheduled->queue.snapshot(now));
  snapshot.flows = flows_.size();
  snapshot.evicted_flows = flows_.evicted();
  return snapshot;
}

/// What all packets of the flow have in their headers, and the DSCP of the latest one.
Headers Shaper::State::headers_of(const Flow& flow) {
  Headers headers;
  headers.source = flow.key.source;
  headers.destination = flow.key.destination;
  headers.source_port = flow.key.source_port;
  headers.destination_port = flow.key.destination_port;
  headers.family = flow.key.family;
  headers.protocol = flow.key.protocol;
  headers.dscp = flow.last_dscp;
  return headers;
}

void Shaper::State::flows(FlowCursor& cursor, std::size_t budget, Instant now, std::vector<FlowSnapshot>& flows) const {
  const auto position = flows_.visit(cursor.position, budget, [&](const Flow& flow) {
    if (flow.idle() && now - flow.last_seen > FlowTable::kMemory) return;
    FlowSnapshot& snapshot = flows.emplace_back();
    snapshot.class_index = flow.owner->index();
    snapshot.link = flow.key.link;
    snapshot.headers = headers_of(flow);
    snapshot.user = flow.user;
    snapshot.traffic = flow.traffic;
    snapshot.rate = flow.meter.rate(now);
    snapshot.backlog_packets = flow.backlog_packets;
    snapshot.backlog_bytes = flow.backlog;
    if (flow.delays) snapshot.delay = flow.delays->summary(flow.traffic.sent_packets);
    snapshot.first_seen = flow.first_seen;
    snapshot.last_seen = flow.last_seen;
  });
  cursor.position = position.value_or(0);
  cursor.done = !position;
}

// --- The public face -------------------------------------------------------------------------------------------------

Shaper::Shaper(const Policy& policy, StartCredit credit, HashKey key, Instant now)
    : state_(std::make_unique<State>(policy, credit, key, now)) {}
Shaper::Shaper(Shaper&&) noexcept = default;
Shaper& Shaper::operator=(Shaper&&) noexcept = default;
Shaper::~Shaper() = default;

void Shaper::on_packet(const Packet& packet, Instant now, Verdicts& out) {
  state_->on_packet(packet, now, out);
}
void Shaper::release(Instant now, Verdicts& out) {
  state_->release(now, out);
}
std::optional<Instant> Shaper::next_departure() const {
  return state_->next_departure();
}
void Shaper::on_departed(Instant at) {
  state_->on_departed(at);
}
void Shaper::on_queues_dry() {
  state_->on_queues_dry();
}
void Shaper::on_lost(const Verdict& verdict) {
  state_->on_lost(verdict);
}
void Shaper::set_mtu(LinkIndex link, std::uint32_t mtu) {
  state_->set_mtu(link, mtu);
}
void Shaper::swap(const Policy& policy, Instant now, Verdicts& out) {
  state_->swap(policy, now, out);
}
void Shaper::pass_all(Instant now, Verdicts& out) {
  state_->pass_all(now, out);
}
CoreSnapshot Shaper::snapshot(Instant now) const {
  return state_->snapshot(now);
}

Shaper::Explanation Shaper::explain(const Packet& packet) const {
  const Classifier::Result result = state_->classifier().classify(packet);
  return {result.class_index, result.match};
}

void Shaper::flows(FlowCursor& cursor, std::size_t budget, Instant now, std::vector<FlowSnapshot>& flows) const {
  state_->flows(cursor, budget, now, flows);
}

}  // namespace shaper
