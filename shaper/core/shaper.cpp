#include "shaper/core/shaper.h"

#include <algorithm>
#include <utility>

#include "shaper/core/shaper_state.h"

namespace shaper {
namespace {

/// Not a protocol on any wire: marks flows that many packets without a flow of their own share.
constexpr std::uint8_t kSharedFlow = 255;

/// So many of them for each class.
constexpr std::uint64_t kSharedFlowsPerClass = 64;

constexpr std::uint32_t kUsualMtu = 1500;

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
  const bool room = flows_.make_room(now);
  if (!room || shared_flows_ > 0) {
    FlowKey shared;
    shared.link = packet.link;
    shared.protocol = kSharedFlow;
    shared.mark = index;
    shared.source_port = static_cast<std::uint16_t>(flows_.hash(key) % kSharedFlowsPerClass);
    Flow* flow = flows_.find(shared);
    // Packets may wait in a shared flow when there is room again: the order inside the flow goes first.
    if (flow != nullptr && (!room || !flow->idle())) return *flow;
    if (!room) key = shared;
  }
  if (!room) ++shared_flows_;
  Flow& flow = flows_.insert(key, now);
  flow.user = packet.user;
  flow.group = packet.group;
  classes_[index]->queue.attach(flow, now);
  return flow;
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
  const auto before = static_cast<std::ptrdiff_t>(out.size());
  for (const auto& scheduled : classes_) {
    for (Flow* flow : scheduled->queue.waiting()) scheduled->queue.pass(*flow, now, out);
    schedule(*scheduled);
  }
  // Longest held first; a stable sort keeps the order inside a flow.
  std::stable_sort(out.begin() + before, out.end(),
                   [](const Verdict& a, const Verdict& b) { return a.delay > b.delay; });
}

// --- Change of policy ------------------------------------------------------------------------------------------------

/// Who follows whom when the policy changes.
struct Shaper::State::Succession {
  std::vector<std::optional<LinkIndex>> link;     // by old index
  std::vector<std::optional<ClassIndex>> class_;  // by old index
};

void Shaper::State::swap(const Policy& policy, Instant now, Verdicts& out) {
  begin(now);
  on_departed(now);
  const Policy old_policy = std::exchange(policy_, policy);
  const Classes old_classes = std::move(classes_);
  const std::vector<LinkState> old_links = std::exchange(links_, {});
  wake_order_ = {};
  classifier_ = Classifier(policy);

  Succession succession{std::vector<std::optional<LinkIndex>>(old_links.size()),
                        std::vector<std::optional<ClassIndex>>(old_classes.size())};
  for (const LinkPolicy& link : policy.links) {
    links_.push_back({framing_of(link, kUsualMtu), 0});
    for (std::size_t old = 0; old < old_links.size(); ++old) {
      if (old_policy.links[old].name != link.name) continue;
      succession.link[old] = static_cast<LinkIndex>(links_.size() - 1);
      links_.back() = {framing_of(link, old_links[old].framing.mtu), old_links[old].detoured_packets};
    }
  }
  classes_ = make_classes(policy, now, now);
  for (std::size_t old = 0; old < old_classes.size(); ++old) {
    const auto heir = std::find_if(policy.classes.begin(), policy.classes.end(), [&](const ClassPolicy& cls) {
      return succession.link[old_policy.classes[old].link] == cls.link && cls.name == old_policy.classes[old].name;
    });
    if (heir == policy.classes.end()) continue;
    succession.class_[old] = static_cast<ClassIndex>(heir - policy.classes.begin());
    classes_[*succession.class_[old]]->queue.inherit(old_classes[old]->queue, now);
  }

  std::vector<Flow*> waiting;
  for (const auto& scheduled : old_classes) {
    const std::vector<Flow*> flows = scheduled->queue.waiting();
    waiting.insert(waiting.end(), flows.begin(), flows.end());
  }
  // Those that wait keep their order; whoever waits for nothing comes after them.
  std::vector<Flow*> idle = flows_.all();
  std::erase_if(idle, [](const Flow* flow) { return !flow->idle(); });
  for (const auto& flows : {waiting, idle}) {
    for (Flow* flow : flows) move_flow(*flow, succession, now, out);
  }
  for (const auto& scheduled : classes_) {
    scheduled->queue.forget_unused_buckets();
    scheduled->queue.release(now, out);
    schedule(*scheduled);
  }
  flows_.set_max_flows(policy.max_flows);
}

/// Takes a flow, of which the old class will not be asked any more, to the class that it has now.
void Shaper::State::move_flow(Flow& flow, const Succession& succession, Instant now, Verdicts& out) {
  const ClassIndex old_class = flow.owner->index();
  const auto link = succession.link[flow.key.link];
  const auto heir = succession.class_[old_class];
  flow.owner = nullptr;
  flow.each = nullptr;
  flow.state = FlowState::idle;
  flow.queue_previous = flow.queue_next = nullptr;
  flow.place_fattest = 0;
  if (!link || flow.key.protocol == kSharedFlow) return dissolve(flow, heir, now, out);

  Packet packet;
  packet.link = *link;
  packet.mark = flow.last_mark;
  packet.user = flow.user;
  packet.group = flow.group;
  packet.headers.source = flow.key.source;
  packet.headers.destination = flow.key.destination;
  packet.headers.source_port = flow.key.source_port;
  packet.headers.destination_port = flow.key.destination_port;
  packet.headers.family = flow.key.family;
  packet.headers.protocol = flow.key.protocol;
  packet.headers.dscp = flow.last_dscp;
  if (!flows_.rename(flow, key_of(packet))) return dissolve(flow, heir, now, out);

  ClassQueue& queue = classes_[classifier_.classify(packet).class_index]->queue;
  queue.attach(flow, now);
  if (flow.idle()) return;
  if (heir != queue.index()) {
    if (heir) classes_[*heir]->queue.hand_over(flow);
    queue.take_over(flow);
  }
  queue.adopt(flow, now, out);
}

/// A flow with no place in the new policy: its packets go unmetered, and it is forgotten.
void Shaper::State::dissolve(Flow& flow, std::optional<ClassIndex> heir, Instant now, Verdicts& out) {
  if (heir) classes_[*heir]->queue.count_passed(flow.backlog_packets);
  while (flow.head != nullptr) {
    HeldPacket& packet = *flow.head;
    flow.head = packet.behind;
    out.push_back({packet.id, Decision::pass, DropReason::policed, packet.frames, heir.value_or(0), packet.wire_bytes,
                   now - packet.arrival});
    held_.give_back(packet);
  }
  flows_.erase(flow);
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

void Shaper::State::flows(FlowCursor& cursor, std::size_t budget, Instant now, std::vector<FlowSnapshot>& flows) const {
  const auto position = flows_.visit(cursor.position, budget, [&](const Flow& flow) {
    if (flow.idle() && now - flow.last_seen > FlowTable::kMemory) return;
    FlowSnapshot& snapshot = flows.emplace_back();
    snapshot.class_index = flow.owner->index();
    snapshot.link = flow.key.link;
    snapshot.headers.source = flow.key.source;
    snapshot.headers.destination = flow.key.destination;
    snapshot.headers.source_port = flow.key.source_port;
    snapshot.headers.destination_port = flow.key.destination_port;
    snapshot.headers.family = flow.key.family;
    snapshot.headers.protocol = flow.key.protocol;
    snapshot.headers.dscp = flow.last_dscp;
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
