// A change of policy. Classes of the same name on a link of the same name inherit counters and credit; every flow goes
// to the class that it has now, with its held packets, in order. Nothing passes unmetered but what lost its link.
//
// Three steps over all flows: take them out of the old classes, give them their new keys (two may become one: the one
// waits behind the other then), put them into the new classes, those that hold packets first, in their order of
// service.
#include <algorithm>
#include <cassert>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "shaper/core/shaper_state.h"

namespace shaper {

/// A flow on its way from the old policy to the new one.
struct Shaper::State::Move {
  Flow* flow = nullptr;            // nothing: it was merged into another one
  std::optional<LinkIndex> link;   // in the new policy
  std::optional<ClassIndex> heir;  // the class that follows its old one
  bool in_guard = false;           // so far
  bool merges_all = false;         // all busy shared flows of its link become one
};

namespace {

/// What decides which flows of the link have shared flows of their own.
std::pair<Direction, std::vector<std::uint16_t>> guarded_ports(const Policy& policy, std::size_t link) {
  const LinkPolicy& of = policy.links[link];
  return {of.direction, of.guard ? policy.guard_ports : std::vector<std::uint16_t>{}};
}

}  // namespace

std::vector<std::optional<ClassIndex>> Shaper::State::swap(PreparedPolicy prepared, Instant now, Verdicts& out) {
  begin(now);
  on_departed(now);
  const Policy old_policy = std::exchange(policy_, std::move(prepared.policy));
  classifier_ = std::move(prepared.classifier);
  std::vector<Move> moves = unlink_flows();

  std::vector<std::optional<LinkIndex>> link_after(old_policy.links.size());
  std::vector<std::uint32_t> mtus(policy_.links.size(), kUsualMtu);
  for (std::size_t i = 0; i < policy_.links.size(); ++i) {
    for (std::size_t old = 0; old < old_policy.links.size(); ++old) {
      if (old_policy.links[old].name != policy_.links[i].name) continue;
      link_after[old] = static_cast<LinkIndex>(i);
      mtus[i] = scheduler_->links()[old]->framing.mtu;
    }
  }
  const auto before = std::exchange(scheduler_, std::make_unique<Scheduler>(policy_, mtus, key_, now, now));
  scheduler_->inherit(*before, old_policy, policy_, now);
  std::vector<std::optional<ClassIndex>> heirs(old_policy.classes.size());
  std::map<std::pair<LinkIndex, std::string_view>, ClassIndex> by_name;
  for (ClassIndex i = 0; i < policy_.classes.size(); ++i)
    by_name[{policy_.classes[i].link, policy_.classes[i].name}] = i;
  for (std::size_t old = 0; old < heirs.size(); ++old) {
    const ClassPolicy& cls = old_policy.classes[old];
    if (!link_after[cls.link]) continue;
    const auto heir = by_name.find({*link_after[cls.link], cls.name});
    if (heir == by_name.end() || policy_.classes[heir->second].is_guard != cls.is_guard) continue;
    heirs[old] = heir->second;
    scheduler_->classes()[heir->second]->inherit(*before->classes()[old], now);
  }

  for (Move& move : moves) {
    move.heir = heirs[move.heir.value()];
    move.link = link_after[move.flow->key.link];
    if (!move.link) dissolve(move, now, out);
  }
  std::erase_if(moves, [](const Move& move) { return !move.link; });
  std::vector<bool> merges_all(policy_.links.size());
  for (std::size_t old = 0; old < link_after.size(); ++old) {
    if (link_after[old])
      merges_all[*link_after[old]] = guarded_ports(old_policy, old) != guarded_ports(policy_, *link_after[old]);
  }
  for (const Move& move : moves) {
    const FlowKey& key = move.flow->key;
    if (key.protocol == kSharedFlow && key.family != Family::other && busy(*move.flow)) merges_all[*move.link] = true;
  }
  for (Move& move : moves) move.merges_all = merges_all[*move.link];
  rename_flows(moves);
  want_owners_anew(now);
  for (const Move& move : moves) {
    if (move.flow != nullptr) settle_flow(move, now, out);
  }
  lingering_.clear();
  for (const Move& move : moves) {
    if (move.flow != nullptr && move.flow->is_shared() && busy(*move.flow)) {
      lingering_.push_back(move.flow->key);
    }
  }
  for (const auto& cls : scheduler_->classes()) cls->queue.forget_unused_buckets(now);
  for (const auto& limit : scheduler_->limits()) {
    if (limit->keyed) limit->keyed->forget_unused(now);
  }
  scheduler_->run(now, out);
  flows_.set_max_flows(policy_.max_flows);
  return heirs;
}

/// All flows with the index of their old class, those that hold packets first, the longest held first of all. The old
/// classes are not asked any more.
std::vector<Shaper::State::Move> Shaper::State::unlink_flows() {
  std::vector<Move> moves;
  moves.reserve(flows_.size());
  for (Flow* flow : flows_.all()) {
    moves.push_back({flow, std::nullopt, flow->owner->index(), flow->owner->policy().is_guard});
  }
  const auto idle =
      std::stable_partition(moves.begin(), moves.end(), [](const Move& move) { return !move.flow->idle(); });
  std::sort(moves.begin(), idle, [](const Move& a, const Move& b) {
    return std::tie(a.flow->head->arrival, a.flow->head->id) < std::tie(b.flow->head->arrival, b.flow->head->id);
  });
  for (const Move& move : moves) {
    Flow& flow = *move.flow;
    flow.owner = nullptr;
    flow.host = nullptr;
    flow.sleeps = nullptr;
    flow.buckets.clear();
    flow.state = FlowState::idle;
    flow.queue_previous = flow.queue_next = nullptr;
    flow.place_in_host = flow.place_in_each = flow.place_by_arrival = 0;
  }
  return moves;
}

/// Of a shared flow nothing is known but its class: it follows that, or goes to the default.
ClassIndex Shaper::State::class_after(const Move& move) const {
  if (!move.flow->is_shared()) {
    return classifier_.classify(packet_like(*move.flow, *move.link)).class_index;
  }
  if (move.heir) return *move.heir;
  const auto by_default = std::find_if(policy_.classes.begin(), policy_.classes.end(), [&](const ClassPolicy& cls) {
    return cls.link == *move.link && cls.is_default;
  });
  return static_cast<ClassIndex>(by_default - policy_.classes.begin());
}

/// Busy shared flows of a link in which the same flow may have packets become one, or it would not be known which of
/// them has to be empty before the flow may go elsewhere: those of one hash; and all, where one is that of an address,
/// or where other ports are guarded now.
FlowKey Shaper::State::key_after(const Move& move) const {
  if (!move.flow->is_shared()) return key_of(packet_like(*move.flow, *move.link));
  if (busy(*move.flow)) {
    FlowKey lingering;
    lingering.link = *move.link;
    lingering.protocol = kSharedFlow;
    lingering.mark = kLingering;
    lingering.source_port = move.merges_all ? std::uint16_t{0} : move.flow->key.source_port;
    lingering.family = move.merges_all ? Family::ipv4 : Family::other;
    return lingering;
  }
  FlowKey key = move.flow->key;
  key.link = *move.link;
  key.mark = class_after(move);
  return key;
}

void Shaper::State::rename_flows(std::vector<Move>& moves) {
  // By way of a key that nobody has, so that two flows may exchange theirs.
  std::vector<FlowKey> keys(moves.size());
  for (std::size_t i = 0; i < moves.size(); ++i) {
    keys[i] = key_after(moves[i]);
    if (keys[i] == moves[i].flow->key) continue;
    FlowKey passing;
    passing.protocol = moves[i].flow->key.protocol;
    passing.mark = static_cast<std::uint32_t>(i);
    passing.dscp = ~std::uint32_t{0};
    const bool renamed = flows_.rename(*moves[i].flow, passing);
    assert(renamed);
    static_cast<void>(renamed);
  }
  std::unordered_map<const Flow*, std::size_t> place;
  for (std::size_t i = 0; i < moves.size(); ++i) place[moves[i].flow] = i;
  for (std::size_t i = 0; i < moves.size(); ++i) {
    if (!flows_.rename(*moves[i].flow, keys[i])) merge(moves[i], moves[place[flows_.find(keys[i])]]);
  }
}

/// The new policy does not tell the two flows apart: the packets of the one wait behind those of the other.
void Shaper::State::merge(Move& move, Move& into) {
  Flow& from = *move.flow;
  Flow& to = *into.flow;
  if (move.heir) scheduler_->classes()[*move.heir]->queue.hand_over(from);
  if (into.heir) scheduler_->classes()[*into.heir]->queue.take_over(from);
  if (from.head != nullptr) {
    (to.head == nullptr ? to.head : to.tail->behind) = from.head;
    to.tail = from.tail;
    to.backlog += from.backlog;
    to.backlog_packets += from.backlog_packets;
  }
  if (from.on_detour(epoch_)) {
    to.split = true;
    to.detour_epoch = epoch_;
  }
  into.in_guard &= move.in_guard;
  flows_.erase(from);
  move.flow = nullptr;
}

void Shaper::State::settle_flow(const Move& move, Instant now, Verdicts& out) {
  Flow& flow = *move.flow;
  follow_guard_ports(flow, now);
  const ClassIndex by_policy = class_after(move);
  // Whoever is not in the guard comes to it by the usual way.
  const ClassIndex index = move.in_guard ? class_while_sparse(flow, by_policy) : by_policy;
  ScheduledClass& cls = *scheduler_->classes()[index];
  ClassQueue& queue = cls.queue;
  queue.attach(flow, now);
  if (flow.idle()) return;
  if (move.heir != queue.index()) {
    if (move.heir) scheduler_->classes()[*move.heir]->queue.hand_over(flow);
    queue.take_over(flow);
  }
  for (const HeldPacket* packet = flow.head; packet != nullptr; packet = packet->behind) {
    Scheduler::admit(cls, packet->wire_bytes);
  }
  queue.adopt(flow, now, out);
}

/// Its link is gone: its packets go unmetered, and it is forgotten.
void Shaper::State::dissolve(const Move& move, Instant now, Verdicts& out) {
  Flow& flow = *move.flow;
  while (flow.head != nullptr) {
    HeldPacket& packet = *flow.head;
    flow.head = packet.behind;
    out.push_back(
        {packet.id, Decision::pass, DropReason::policed, packet.frames, 0, packet.wire_bytes, now - packet.arrival, 0});
    scheduler_->held().give_back(packet);
  }
  flows_.erase(flow);
}

}  // namespace shaper
