// A change of policy. Classes of the same name on a link of the same name inherit counters and credit; every flow goes
// to the class that it has now, with its held packets, in order. Nothing passes unmetered but what lost its link.
//
// Three steps over all flows: take them out of the old classes, give them their new keys (two may become one: the one
// waits behind the other then), put them into the new classes, those that hold packets first, in their order of
// service.
#include <algorithm>
#include <cassert>
#include <unordered_map>
#include <utility>

#include "shaper/core/shaper_state.h"

namespace shaper {

/// A flow on its way from the old policy to the new one.
struct Shaper::State::Move {
  Flow* flow = nullptr;            // nothing: it was merged into another one
  std::optional<LinkIndex> link;   // in the new policy
  std::optional<ClassIndex> heir;  // the class that follows its old one
};

void Shaper::State::swap(const Policy& policy, Instant now, Verdicts& out) {
  begin(now);
  on_departed(now);
  const Policy old_policy = std::exchange(policy_, policy);
  const Classes old_classes = std::exchange(classes_, {});
  const std::vector<LinkState> old_links = std::exchange(links_, {});
  wake_order_ = {};
  classifier_ = Classifier(policy);

  std::vector<std::optional<LinkIndex>> link_after(old_links.size());
  for (const LinkPolicy& link : policy.links) {
    links_.push_back({framing_of(link, kUsualMtu), 0});
    for (std::size_t old = 0; old < old_links.size(); ++old) {
      if (old_policy.links[old].name != link.name) continue;
      link_after[old] = static_cast<LinkIndex>(links_.size() - 1);
      links_.back() = {framing_of(link, old_links[old].framing.mtu), old_links[old].detoured_packets};
    }
  }
  classes_ = make_classes(policy, now, now);
  std::vector<std::optional<ClassIndex>> heirs(old_classes.size());
  for (std::size_t old = 0; old < old_classes.size(); ++old) {
    const ClassPolicy& before = old_policy.classes[old];
    const auto heir = std::find_if(policy.classes.begin(), policy.classes.end(), [&](const ClassPolicy& cls) {
      return link_after[before.link] == cls.link && cls.name == before.name;
    });
    if (heir == policy.classes.end()) continue;
    heirs[old] = static_cast<ClassIndex>(heir - policy.classes.begin());
    classes_[*heirs[old]]->queue.inherit(old_classes[old]->queue, now);
  }

  std::vector<Move> moves = unlink_flows(old_classes);
  for (Move& move : moves) {
    move.heir = heirs[move.heir.value()];
    move.link = link_after[move.flow->key.link];
    if (!move.link) dissolve(move, now, out);
  }
  std::erase_if(moves, [](const Move& move) { return !move.link; });
  rename_flows(moves);
  for (const Move& move : moves) {
    if (move.flow != nullptr) settle_flow(move, now, out);
  }
  lingering_.clear();
  for (const Move& move : moves) {
    if (move.flow != nullptr && move.flow->key.protocol == kSharedFlow && busy(*move.flow)) {
      lingering_.push_back(move.flow->key);
    }
  }
  for (const auto& scheduled : classes_) {
    scheduled->queue.forget_unused_buckets();
    scheduled->queue.release(now, out);
    schedule(*scheduled);
  }
  flows_.set_max_flows(policy.max_flows);
}

/// All flows with the index of their old class, those that wait first. The old classes are not asked any more.
std::vector<Shaper::State::Move> Shaper::State::unlink_flows(const Classes& classes) {
  std::vector<Move> moves;
  moves.reserve(flows_.size());
  const auto add = [&](const std::vector<Flow*>& flows) {
    for (Flow* flow : flows) moves.push_back({flow, std::nullopt, flow->owner->index()});
  };
  for (const auto& scheduled : classes) add(scheduled->queue.waiting());
  std::vector<Flow*> idle = flows_.all();
  std::erase_if(idle, [](const Flow* flow) { return !flow->idle(); });
  add(idle);
  for (const Move& move : moves) {
    Flow& flow = *move.flow;
    flow.owner = nullptr;
    flow.each = nullptr;
    flow.state = FlowState::idle;
    flow.queue_previous = flow.queue_next = nullptr;
    flow.place_fattest = 0;
  }
  return moves;
}

Packet Shaper::State::packet_like(const Flow& flow, LinkIndex link) const {
  Packet packet;
  packet.link = link;
  packet.mark = flow.last_mark;
  packet.user = flow.user;
  packet.group = flow.group;
  packet.headers = headers_of(flow);
  return packet;
}

/// Of a shared flow nothing is known but its class: it follows that, or goes to the default.
ClassIndex Shaper::State::class_after(const Move& move) const {
  if (move.flow->key.protocol != kSharedFlow) {
    return classifier_.classify(packet_like(*move.flow, *move.link)).class_index;
  }
  if (move.heir) return *move.heir;
  const auto by_default = std::find_if(policy_.classes.begin(), policy_.classes.end(), [&](const ClassPolicy& cls) {
    return cls.link == *move.link && cls.is_default;
  });
  return static_cast<ClassIndex>(by_default - policy_.classes.begin());
}

FlowKey Shaper::State::key_after(const Move& move) const {
  if (move.flow->key.protocol != kSharedFlow) return key_of(packet_like(*move.flow, *move.link));
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
  if (move.heir) classes_[*move.heir]->queue.hand_over(from);
  if (into.heir) classes_[*into.heir]->queue.take_over(from);
  if (from.head != nullptr) {
    (to.head == nullptr ? to.head : to.tail->behind) = from.head;
    to.tail = from.tail;
    to.backlog += from.backlog;
    to.backlog_packets += from.backlog_packets;
  }
  flows_.erase(from);
  move.flow = nullptr;
}

void Shaper::State::settle_flow(const Move& move, Instant now, Verdicts& out) {
  Flow& flow = *move.flow;
  ClassQueue& queue = classes_[class_after(move)]->queue;
  queue.attach(flow, now);
  if (flow.idle()) return;
  if (move.heir != queue.index()) {
    if (move.heir) classes_[*move.heir]->queue.hand_over(flow);
    queue.take_over(flow);
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
        {packet.id, Decision::pass, DropReason::policed, packet.frames, 0, packet.wire_bytes, now - packet.arrival});
    held_.give_back(packet);
  }
  flows_.erase(flow);
}

}  // namespace shaper
