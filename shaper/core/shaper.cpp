#include "shaper/core/shaper.h"

#include <algorithm>
#include <utility>

#include "shaper/core/image.h"
#include "shaper/core/shaper_state.h"

namespace shaper {
namespace {

/// So many of them for each class, and as many for guarded ports.
constexpr std::uint64_t kSharedFlowsPerClass = 64;

/// Half of what one kernel queue can hold (65,536 since its packet map is hashed); over it, so many go at once.
constexpr std::size_t kMostHeld = 32'768;
constexpr std::size_t kDroppedAtOnce = 64;

/// After so many super-packets of a flow its segment size is asked for again: a path may have become narrower.
constexpr std::uint32_t kSupersBetweenLessons = 4'096;

constexpr std::size_t kWholeListing = ~std::size_t{0};

}  // namespace

Shaper::State::State(PreparedPolicy prepared, StartCredit credit, HashKey key, Instant now)
    : policy_(std::move(prepared.policy)),
      classifier_(std::move(prepared.classifier)),
      key_(key),
      flows_(policy_.max_flows, key),
      latest_(now) {
  const std::vector<std::uint32_t> mtus(policy_.links.size(), kUsualMtu);
  const auto empty_since = credit == StartCredit::full ? std::nullopt : std::optional(now);
  scheduler_ = std::make_unique<Scheduler>(policy_, mtus, key_, empty_since, now);
}

/// Whoever does not say when packets left, lets them leave when they are told to.
void Shaper::State::begin(Instant now) {
  if (now > latest_) on_departed(latest_);
  latest_ = now;
}

void Shaper::State::on_departed(Instant at) {
  scheduler_->departed(at);
  latest_ = at;
}

// --- The three calls -------------------------------------------------------------------------------------------------

void Shaper::State::on_packet(const Packet& packet, Instant now, Verdicts& out) {
  begin(now);
  give_up_waiting(now, out);
  Flow& flow = flow_of(packet, now);
  want_owner_again(flow, now);
  follow_user(flow, packet, now, out);
  if (packet.about) follow_quoted(flow, packet, now, out);
  if (flow.guard_credit) enter_guard(flow, now);
  flows_.touch(flow, now);
  flow.last_mark = packet.mark;
  flow.last_dscp = packet.headers.dscp;
  Link& link = *scheduler_->links()[packet.link];
  if (takes_detour(flow, packet)) {
    flow.detour_epoch = epoch_;
    ++link.detoured_packets;
    out.push_back({packet.id, Decision::detour, DropReason::policed, 1, flow.owner->index(), {}, Nanos{0}, 0});
    return;
  }
  learn_segment(flow, packet);
  const WireSize size = wire_size(packet, link.framing, flow.segment);
  // ECT(0), ECT(1), or CE already: dropping what another hop has marked would signal the same congestion twice.
  const bool can_be_marked = packet.headers.ecn != 0;
  if (flow.guard_credit) charge_guarded(flow, size.bytes, now, out);
  offer(flow, {packet.id, size.frames, packet.ip_bytes, size.bytes, now, nullptr, packet.mark, can_be_marked}, now,
        out);
  if (scheduler_->held().count() > kMostHeld) drop_from_fattest_class(now, out);
}

/// A packet comes to its flow's class.
void Shaper::State::offer(Flow& flow, const HeldPacket& packet, Instant now, Verdicts& out) {
  ScheduledClass& cls = class_of(flow);
  Scheduler::admit(cls, packet.wire_bytes);
  if (flow.owner->admit(flow, packet, now, out)) scheduler_->arrive(cls, flow, packet, now, out);
}

void Shaper::State::drop_from_fattest_class(Instant now, Verdicts& out) {
  const auto& classes = scheduler_->classes();
  const auto fattest = std::max_element(classes.begin(), classes.end(), [](const auto& a, const auto& b) {
    return a->queue.backlog_packets() < b->queue.backlog_packets();
  });
  (*fattest)->queue.make_room(kDroppedAtOnce, now, out);
  scheduler_->run(now, out);
}

void Shaper::State::release(Instant now, Verdicts& out) {
  begin(now);
  give_up_waiting(now, out);
  scheduler_->release(now, out);
}

std::optional<Instant> Shaper::State::next_departure() const {
  const std::optional<Instant> next = scheduler_->next_departure();
  if (pending_.empty()) return next;
  return std::min(next.value_or(pending_.front().until), pending_.front().until);
}

// --- Flows -----------------------------------------------------------------------------------------------------------

FlowKey Shaper::State::key_of(const Packet& packet) const {
  FlowKey key = flow_key(packet);
  if (classifier_.asks_mark()) key.mark = packet.mark;
  if (classifier_.asks_dscp()) key.dscp = packet.headers.dscp;
  return key;
}

Flow& Shaper::State::flow_of(const Packet& packet, Instant now) {
  const FlowKey key = key_of(packet);
  if (Flow* flow = flows_.find(key)) return *flow;

  Packet first = packet;
  first.owner_pending = policy_.finds_owners;
  const ClassIndex index = classifier_.classify(first).class_index;
  const bool room = flows_.make_room(now, epoch_);
  if (room && shared_flows_ == 0) return make_flow(key, packet, index, now);
  const SharedKeys shared = shared_keys(key, index);
  if (Flow* flow = shared_while_busy(shared)) return *flow;
  if (room) return make_flow(key, packet, index, now);
  if (classifier_.guard_of(key) && flows_.has_reserve()) {
    Flow& flow = make_flow(key, packet, index, now);
    flows_.take_reserve(flow);
    return flow;
  }
  Flow* flow = flows_.find(shared.front());
  if (flow == nullptr) {
    flow = &make_flow(shared.front(), packet, index, now);
    ++shared_flows_;
  }
  flow->busy_since = ++shared_turns_;
  return *flow;
}

/// The order inside a flow goes first: while its packets may be in a shared flow, that is where it stays. One that a
/// change of policy found busy was there before those of the new policy; and of two, the flow has its packets in the
/// one that has been busy for longer, for it would have stayed in the other one.
Flow* Shaper::State::shared_while_busy(const SharedKeys& shared) {
  std::erase_if(lingering_, [&](const FlowKey& other) {
    const Flow* flow = flows_.find(other);
    return flow == nullptr || !busy(*flow);
  });
  for (const FlowKey& other : lingering_) {
    // Whose packets wait at an address of the old policy is not known any more: it may be anybody's.
    const bool may_be_there = other.family != Family::other || other.source_port == shared.back().source_port;
    if (other.link == shared.back().link && may_be_there) return flows_.find(other);
  }
  Flow* longest = nullptr;
  for (const FlowKey& candidate : shared) {
    Flow* flow = flows_.find(candidate);
    if (flow == nullptr || !busy(*flow)) continue;
    if (longest == nullptr || flow->busy_since < longest->busy_since) longest = flow;
  }
  return longest;
}

Flow& Shaper::State::make_flow(const FlowKey& key, const Packet& packet, ClassIndex index, Instant now) {
  Flow& flow = flows_.insert(key, now);
  flow.user = packet.user;
  flow.group = packet.group;
  flow.last_mark = packet.mark;
  flow.last_dscp = packet.headers.dscp;
  want_owner_of_new(flow, now);
  follow_guard_ports(flow, now);
  scheduler_->classes()[class_while_sparse(flow, index)]->queue.attach(flow, now);
  return flow;
}

/// Where packets go that have no flow of their own: one of a few by hash, but first the one that obeys the `each`
/// bucket of their address, if there is such a bucket. Packets of guarded ports have shared flows of their own: those
/// of others are busy all the time while the table is full, and would take them in.
Shaper::State::SharedKeys Shaper::State::shared_keys(const FlowKey& key, ClassIndex index) const {
  // What a change of policy may change has no part in it: a flow stays in its shared flow.
  FlowKey lasting = key;
  lasting.link = 0;
  lasting.mark = lasting.dscp = 0;
  FlowKey hashed;
  hashed.link = key.link;
  hashed.protocol = kSharedFlow;
  hashed.mark = index;
  const std::uint64_t first = classifier_.guard_of(key) ? kSharedFlowsPerClass : 0;
  hashed.source_port = static_cast<std::uint16_t>(first + flows_.hash(lasting) % kSharedFlowsPerClass);
  const std::optional<FlowKey> bucket = scheduler_->classes()[index]->queue.shared_bucket(key);
  if (!bucket) return {hashed, hashed};
  FlowKey addressed = hashed;
  addressed.source_port = static_cast<std::uint16_t>(first);
  addressed.family = bucket->family;
  addressed.source = addressed.destination = bucket->source;
  return {addressed, hashed};
}

/// The socket of a flow may become known late (a SYN-ACK has none) or change (its port is used again).
void Shaper::State::follow_user(Flow& flow, const Packet& packet, Instant now, Verdicts& out) {
  if (!packet.user || (flow.user == packet.user && flow.group == packet.group)) return;
  if (flow.is_shared()) return;
  flow.user = packet.user;
  flow.group = packet.group;
  settle(flow, {}, now, out);
}

/// What the flow holds arrives in the class as if it had not been let in before, and `owed`, which it has sent before,
/// is charged there too.
void Shaper::State::move_flow(Flow& flow, ClassIndex index, ByteCount owed, Instant now, Verdicts& out) {
  std::vector<Meter*> paid;
  if (owed > ByteCount{}) flow.owner->meters_of(flow, paid);
  moving_.clear();
  flow.owner->give_up(flow, moving_, now, out);
  flow.owner->detach(flow);
  scheduler_->classes()[index]->queue.attach(flow, now);
  if (owed > ByteCount{}) flow.owner->owe(flow, owed, paid, now);
  scheduler_->run(now, out);  // it may have been its turn
  for (const HeldPacket& packet : moving_) offer(flow, packet, now, out);
}

/// A split flow detours with all its packets, so that its order stays; it comes back when none is on its way.
bool Shaper::State::takes_detour(Flow& flow, const Packet& packet) const {
  if (packet.queue == QueueKind::split) return false;
  const bool cuts = flow.owner->splits(flow);
  // One super-packet of a flow goes this way in any case: its segments tell how long they are.
  const bool teaches = !flow.is_shared() && (flow.segment == 0 || flow.supers >= kSupersBetweenLessons);
  if (packet.super && (cuts || teaches)) flow.split = true;
  if (!cuts && flow.split && flow.detour_epoch != epoch_) flow.split = false;
  return flow.split;
}

/// The kernel does not export the segment size of super-packets.
void Shaper::State::learn_segment(Flow& flow, const Packet& packet) {
  if (packet.super) {
    ++flow.supers;
  } else if (packet.queue == QueueKind::split && flow.supers >= kSupersBetweenLessons) {
    flow.segment = packet.ip_bytes;  // a new lesson: it may have become smaller
    flow.supers = 0;
  } else if (packet.queue == QueueKind::split || flow.segment != 0) {
    flow.segment = std::max(flow.segment, packet.ip_bytes);
  }
}

void Shaper::State::on_lost(const Verdict& verdict) {
  const auto& classes = scheduler_->classes();
  if (verdict.class_index < classes.size()) classes[verdict.class_index]->queue.count_lost(verdict);
}

void Shaper::State::set_mtu(LinkIndex link, std::uint32_t mtu) {
  scheduler_->set_mtu(link, mtu, latest_);
}

void Shaper::State::pass_all(Instant now, Verdicts& out) {
  begin(now);
  const auto before = static_cast<std::ptrdiff_t>(out.size());
  for (Flow* flow : flows_.all()) {
    if (!flow->idle()) flow->owner->pass(*flow, now, out);
  }
  scheduler_->run(now, out);
  // Longest held first; a stable sort keeps the order inside a flow.
  std::stable_sort(out.begin() + before, out.end(),
                   [](const Verdict& a, const Verdict& b) { return a.delay > b.delay; });
}

// --- The public face -------------------------------------------------------------------------------------------------

Shaper::Shaper(PreparedPolicy prepared, StartCredit credit, HashKey key, Instant now)
    : state_(std::make_unique<State>(std::move(prepared), credit, key, now)) {}
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
std::vector<std::optional<ClassIndex>> Shaper::swap(PreparedPolicy prepared, Instant now, Verdicts& out) {
  return state_->swap(std::move(prepared), now, out);
}
void Shaper::save(ImageWriter& image, Instant now) {
  state_->save(image, now);
}
std::optional<Shaper> Shaper::restore(PreparedPolicy prepared, HashKey key, ImageReader& image, Instant now,
                                      Verdicts& out) {
  std::optional<Shaper> shaper(std::in_place, std::move(prepared), StartCredit::empty, key, now);
  shaper->state_->restore(image, now, out);
  if (!image.complete()) shaper.reset();
  return shaper;
}
void Shaper::pass_all(Instant now, Verdicts& out) {
  state_->pass_all(now, out);
}
CoreSnapshot Shaper::snapshot(Instant now) const {
  CoreSnapshot snapshot;
  for (ClassCursor cursor; !cursor.done;) state_->snapshot(cursor, kWholeListing, now, snapshot);
  return snapshot;
}

CoreSnapshot Shaper::snapshot(ClassIndex of_class, Instant now) const {
  return state_->with_class(of_class, now);
}

void Shaper::on_grant(const Grant& grant, Instant now, Verdicts& out) {
  state_->on_grant(grant, now, out);
}
ByteCount Shaper::take_back(const LimitKey& from, ByteCount bytes, Instant now) {
  return state_->take_back(from, bytes, now);
}
void Shaper::refuse(const LimitKey& at, bool on, Instant now, Verdicts& out) {
  state_->refuse(at, on, now, out);
}
std::vector<WalletState> Shaper::wallets(Instant now) const {
  return state_->wallets(now);
}
void Shaper::set_wallet(const WalletState& wallet, Instant now) {
  state_->set_wallet(wallet, now);
}
void Shaper::demand(Instant now, std::vector<Demand>& demands) const {
  state_->demand(now, demands);
}

std::optional<Demand> Shaper::demand(const LimitKey& from, Instant now) const {
  return state_->demand(from, now);
}

void Shaper::stirred(std::vector<LimitKey>& buckets) {
  state_->stirred(buckets);
}
void Shaper::snapshot(ClassCursor& cursor, std::size_t budget, Instant now, CoreSnapshot& snapshot) const {
  state_->snapshot(cursor, budget, now, snapshot);
}

void Shaper::on_owner(const FlowKey& flow, const Owner& owner, Instant now, Verdicts& out) {
  state_->on_owner(flow, owner, now, out);
}

void Shaper::owners_wanted(std::vector<FlowKey>& flows) {
  state_->owners_wanted(flows);
}

Shaper::Explanation Shaper::explain(const Packet& packet) const {
  return state_->explain(packet);
}

std::optional<HoldSnapshot> Shaper::hold(const Packet& packet, Instant now) const {
  return state_->hold(packet, now);
}

void Shaper::flows(FlowCursor& cursor, std::size_t budget, Instant now, std::vector<FlowSnapshot>& flows) const {
  state_->flows(cursor, budget, now, flows);
}

}  // namespace shaper
