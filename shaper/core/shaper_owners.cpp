// Who sends a flow is found out elsewhere, while packets go on. The first packets of a flow obey the strictest class
// that it may belong to; when the answer comes, or does not come in time, what it holds moves on with it, in order.
// What it has sent until then is charged where it belongs too: else many short flows would have two rates.
#include "shaper/core/shaper_state.h"

namespace shaper {
namespace {

/// So long the strictest class holds a flow whose owner is being found out.
constexpr Nanos kPatience = std::chrono::milliseconds{20};

/// More are not asked for at once: the next packet of a flow asks again.
constexpr std::size_t kMostWanted = 4'096;

// Sockets change hands, and ports are used again: after a pause of the flow, and now and then, its owner is looked at
// again. One that was not found is tried again soon.
constexpr Nanos kPause = std::chrono::seconds{1};
constexpr Nanos kSecondLook = std::chrono::seconds{10};
constexpr Nanos kNextTry = std::chrono::seconds{1};

/// A new flow waits from its first packet on.
ByteCount sent_while_pending(const Flow& flow) {
  return flow.owner_state == OwnerState::pending ? flow.traffic.wire_bytes : ByteCount{};
}

}  // namespace

void Shaper::State::want_owner(Flow& flow, Instant now) {
  if (owners_wanted_.size() >= kMostWanted) return;
  owners_wanted_.push_back(flow.key);
  flow.owner_asked = now;
}

void Shaper::State::want_owner_of_new(Flow& flow, Instant now) {
  if (!policy_.finds_owners || flow.is_shared()) return;
  flow.owner_state = OwnerState::pending;
  pending_.push_back({flow.key, now + kPatience});
  want_owner(flow, now);
}

/// A packet has come: is it time to look again? Meanwhile what was found holds.
void Shaper::State::want_owner_again(Flow& flow, Instant now) {
  if (!policy_.finds_owners || flow.is_shared() || flow.owner_state == OwnerState::pending) return;
  const Nanos interval = flow.owner_state == OwnerState::known ? kSecondLook : kNextTry;
  if (now - flow.last_seen >= kPause || now - flow.owner_asked >= interval) want_owner(flow, now);
}

void Shaper::State::owners_wanted(std::vector<FlowKey>& flows) {
  flows.insert(flows.end(), owners_wanted_.begin(), owners_wanted_.end());
  owners_wanted_.clear();
}

void Shaper::State::on_owner(const FlowKey& key, const Owner& owner, Instant now, Verdicts& out) {
  begin(now);
  Flow* flow = flows_.find(key);
  if (flow == nullptr || flow->is_shared() || !policy_.finds_owners) return;
  ++owner_counters_.found;
  // The socket of a flow that ends has lost its process: what was found before holds.
  const Owner* before = flow->who.get();
  if (before != nullptr && owner.pid == 0 && (before->pid != 0 || owner.cgroup.empty())) return;
  const ByteCount owed = sent_while_pending(*flow);
  if (!flow->user) flow->user = owner.user;
  if (owner.pid == 0 && owner.cgroup.empty()) {
    flow->owner_state = OwnerState::unknown;
  } else {
    flow->owner_state = OwnerState::known;
    flow->who = owners_.at(owner);
    if (before == nullptr) flow->who.count(flow->traffic.sent_packets, flow->traffic.wire_bytes);
  }
  settle(*flow, owed, now, out);
  forget_answered();
}

/// An ICMP error has no socket: it is of whoever has the flow that it tells of.
void Shaper::State::follow_quoted(Flow& flow, const Packet& packet, Instant now, Verdicts& out) {
  Packet quoted = packet;
  quoted.headers = *packet.about;
  const Flow* of = flows_.find(key_of(quoted));
  if (of == nullptr || of == &flow || flow.is_shared()) return;
  const bool known = of->owner_state == OwnerState::known;
  const bool same_owner = !known || (flow.who.get() != nullptr && *flow.who.get() == *of->who.get());
  if (same_owner && flow.user == of->user && flow.group == of->group) return;
  const ByteCount owed = sent_while_pending(flow);
  flow.user = of->user;
  flow.group = of->group;
  if (known) {
    flow.owner_state = OwnerState::known;
    flow.who = owners_.at(*of->who.get());
  }
  settle(flow, owed, now, out);
}

/// Nobody needs to be woken for a flow that waits no more.
void Shaper::State::forget_answered() {
  const auto waits = [this](const Pending& pending) {
    const Flow* flow = flows_.find(pending.flow);
    return flow != nullptr && flow->owner_state == OwnerState::pending;
  };
  while (!pending_.empty() && !waits(pending_.front())) pending_.pop_front();
}

/// To the class and the buckets that its owner gives it.
void Shaper::State::settle(Flow& flow, ByteCount owed, Instant now, Verdicts& out) {
  if (flow.owner->policy().is_guard) return;  // it is asked when it leaves
  const ClassIndex index = classifier_.classify(packet_like(flow, flow.key.link)).class_index;
  if (index != flow.owner->index() || !flow.owner->suits(flow)) move_flow(flow, index, owed, now, out);
}

void Shaper::State::give_up_waiting(Instant now, Verdicts& out) {
  for (; !pending_.empty() && pending_.front().until <= now; pending_.pop_front()) {
    Flow* flow = flows_.find(pending_.front().flow);
    if (flow == nullptr || flow->owner_state != OwnerState::pending) continue;
    const ByteCount owed = sent_while_pending(*flow);
    flow->owner_state = OwnerState::unknown;
    ++owner_counters_.late;
    settle(*flow, owed, now, out);
  }
}

/// The policy has changed, or the process: flows that wait go on waiting, the others keep what was found until it is
/// found again.
void Shaper::State::want_owners_anew(Instant now) {
  pending_.clear();
  owners_wanted_.clear();
  for (Flow* flow : flows_.all()) {
    if (flow->is_shared()) continue;
    if (!policy_.finds_owners) {
      flow->owner_state = OwnerState::unasked;
      flow->who = {};
      continue;
    }
    if (flow->owner_state == OwnerState::pending) {
      pending_.push_back({flow->key, now + kPatience});
    } else if (flow->owner_state == OwnerState::unasked) {
      flow->owner_state = OwnerState::unknown;
    }
    flow->owner_asked = {};
    if (now - flow->last_seen < kPause) want_owner(*flow, now);
  }
}

}  // namespace shaper
