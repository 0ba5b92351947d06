// The packets of a class: which are policed, which wait, and the counters of those that left: departed, dropped, let go
// or lost.
#include <algorithm>
#include <cassert>
#include <memory>

#include "shaper/core/class_queue.h"

namespace shaper {

// --- Packets come ----------------------------------------------------------------------------------------------------

bool ClassQueue::admit(Flow& flow, const HeldPacket& packet, Instant now, Verdicts& out) {
  in_packets_ += packet.frames;
  if (!may_wait()) return true;
  if (now > packet.arrival + patience(flow)) {
    drop(flow, packet, DropReason::max_delay, now, out);
    return false;
  }
  if (ceil_) {
    ceil_spec_->admit(packet.wire_bytes);
    ceil_->accrue(now);
  }
  for (KeyedBucket* bucket : flow.buckets) {
    bucket->home->admit(packet.wire_bytes);
    bucket->home->stir(*bucket);
    bucket->meter.arrived(packet.wire_bytes);
    bucket->meter.accrue(now);
  }
  for (Meter* limit : limits_) {
    limit->arrived(packet.wire_bytes);
    limit->accrue(now);
  }
  if (is_refused(flow)) {
    drop(flow, packet, DropReason::refused, now, out);
    return false;
  }
  if (policy_.over != Over::drop || conforms(flow, packet.wire_bytes)) return true;
  drop(flow, packet, DropReason::policed, now, out);
  return false;
}

bool ClassQueue::is_refused(const Flow& flow) const {
  return std::any_of(flow.buckets.begin(), flow.buckets.end(),
                     [](const KeyedBucket* bucket) { return bucket->meter.refuses(); }) ||
         std::any_of(limits_.begin(), limits_.end(), [](const Meter* limit) { return limit->refuses(); });
}

void ClassQueue::drop_refused(Flow& flow, Instant now, Verdicts& out) {
  while (is_refused(flow) && !flow.idle()) drop_head(flow, DropReason::refused, now, out);
}

/// A policer's word: its own buckets must cover what it holds already (for the link's sake) and the packet.
bool ClassQueue::conforms(const Flow& flow, ByteCount length) const {
  if (ceil_ && !ceil_->bucket().covers(backlog_ + length)) return false;
  for (std::size_t i = 0; i < flow.buckets.size(); ++i) {
    const bool own = each_ && i == 0;
    const Meter& meter = flow.buckets[i]->meter;
    if (own ? !meter.bucket().covers(flow.buckets[i]->backlog + length) : !meter.has_free(length)) return false;
  }
  return std::all_of(limits_.begin(), limits_.end(), [&](const Meter* limit) { return limit->has_free(length); });
}

bool ClassQueue::is_open(const Flow& flow, ByteCount length) const {
  if (!nothing_in_turn() || !flow.idle()) return false;
  if (ceil_ && !ceil_->covers(length)) return false;
  return std::all_of(flow.buckets.begin(), flow.buckets.end(), [&](const KeyedBucket* bucket) {
    return bucket->first_sleeper() == nullptr && bucket->meter.has_free(length);
  });
}

void ClassQueue::pass_through(Flow& flow, const HeldPacket& packet, Instant now, Verdicts& out) {
  if (ceil_) schedule_.charge(*ceil_, packet.wire_bytes, now);
  for (KeyedBucket* bucket : flow.buckets) {
    schedule_.charge(bucket->meter, packet.wire_bytes, now);
    bucket->home->rate.add(packet.wire_bytes, now);
  }
  leave(flow, packet, Decision::accept, now, out);
}

void ClassQueue::hold(Flow& flow, const HeldPacket& packet, Instant now, Verdicts& out) {
  // What is overdue makes room for what is not, even while the class has no turn.
  while (!flow.idle() && now > deadline(flow)) drop_head(flow, DropReason::max_delay, now, out);
  append(flow, packet);
  if (flow.state == FlowState::idle) activate(flow, now, out);
  keep_bounds(flow, now, out);
}

Decision ClassQueue::judge(Flow& flow, Instant now) {
  if (!policy_.aqm) return Decision::accept;
  const HeldPacket& head = *flow.head;
  const bool alone = flow.backlog <= std::max(frame_, head.wire_bytes);
  if (!flow.codel.signals(codel_of(flow), now - head.arrival, alone, now)) return Decision::accept;
  return policy_.ecn && head.can_be_marked ? Decision::mark : Decision::drop;
}

// --- Storage ---------------------------------------------------------------------------------------------------------

void ClassQueue::append(Flow& flow, const HeldPacket& packet) {
  HeldPacket& place = schedule_.held.take();
  place = packet;
  place.behind = nullptr;
  (flow.head == nullptr ? flow.head : flow.tail->behind) = &place;
  flow.tail = &place;
  flow.backlog_packets += packet.frames;
  backlog_packets_ += packet.frames;
  for (KeyedBucket* bucket : flow.buckets) bucket->meter.hold(packet.wire_bytes);
  for (Meter* limit : limits_) limit->hold(packet.wire_bytes);
  const ByteCount before = flow.backlog;
  flow.backlog += packet.wire_bytes;
  count_backlog(flow, before);
}

HeldPacket ClassQueue::take_head(Flow& flow) {
  HeldPacket& place = *flow.head;
  const HeldPacket packet = place;
  flow.head = place.behind;
  if (flow.head == nullptr) flow.tail = nullptr;
  schedule_.held.give_back(place);
  flow.backlog_packets -= packet.frames;
  backlog_packets_ -= packet.frames;
  for (KeyedBucket* bucket : flow.buckets) bucket->meter.let_go(packet.wire_bytes);
  for (Meter* limit : limits_) limit->let_go(packet.wire_bytes);
  const ByteCount before = flow.backlog;
  flow.backlog -= packet.wire_bytes;
  count_backlog(flow, before);
  return packet;
}

/// The flow's backlog was `before`: the sums and the orders by backlog follow.
void ClassQueue::count_backlog(Flow& flow, ByteCount before) {
  const auto follow = [&](ByteCount& sum) { sum = sum - before + flow.backlog; };
  follow(backlog_);
  Host& host = *flow.host;
  follow(host.backlog);
  flow.idle() ? host.fattest.remove(flow) : host.fattest.update(flow);
  host.backlog == ByteCount{} ? fattest_.remove(host) : fattest_.update(host);
  if (!each_) return;
  KeyedBucket& each = *flow.buckets.front();
  follow(each.backlog);
  flow.idle() ? each.fattest.remove(flow) : each.fattest.update(flow);
}

/// Over a bound the fattest flow loses from its head; of the class, that of the fattest host. The bound allows one
/// packet more than it says, so that a bound below a packet's size still lets one wait.
void ClassQueue::keep_bounds(Flow& flow, Instant now, Verdicts& out) {
  const auto above = [](ByteCount backlog, const std::optional<ByteCount>& most, const Flow& fattest) {
    return backlog > *most + fattest.head->wire_bytes;
  };
  if (each_ && most_each_backlog_) {
    KeyedBucket& each = *flow.buckets.front();
    while (!each.fattest.empty() && above(each.backlog, most_each_backlog_, each.fattest.top())) {
      drop_head(each.fattest.top(), DropReason::backlog, now, out);
    }
  }
  if (!most_backlog_) return;
  while (!fattest_.empty() && above(backlog_, most_backlog_, fattest_.top().fattest.top())) {
    drop_head(fattest_.top().fattest.top(), DropReason::backlog, now, out);
  }
}

void ClassQueue::meters_of(Flow& flow, std::vector<Meter*>& meters) {
  if (ceil_) meters.push_back(&*ceil_);
  for (KeyedBucket* bucket : flow.buckets) meters.push_back(&bucket->meter);
  meters.insert(meters.end(), limits_.begin(), limits_.end());
}

void ClassQueue::owe(Flow& flow, ByteCount sent, std::span<Meter* const> paid, Instant now) {
  std::vector<Meter*> meters;
  meters_of(flow, meters);
  for (Meter* meter : meters) {
    if (std::find(paid.begin(), paid.end(), meter) == paid.end()) meter->owe(sent, now);
  }
  note_change();
}

void ClassQueue::give_up(Flow& flow, std::vector<HeldPacket>& packets, Instant now, Verdicts& out) {
  const bool awake = flow.state == FlowState::awake;
  if (awake) release(flow);
  KeyedBucket* sleeps = flow.sleeps;
  delist(flow, now);
  while (!flow.idle()) {
    packets.push_back(take_head(flow));
    in_packets_ -= packets.back().frames;
  }
  relist(*flow.host);
  if (awake) wake_at_buckets_of(flow, now, out);
  if (sleeps != nullptr) wake_sleepers(*sleeps, schedule_, false, now, out);
}

void ClassQueue::make_room(std::size_t packets, Instant now, Verdicts& out) {
  for (; packets > 0 && !fattest_.empty(); --packets) {
    drop_head(fattest_.top().fattest.top(), DropReason::held, now, out);
  }
}

// --- Packets leave ---------------------------------------------------------------------------------------------------

void ClassQueue::discard_head(Flow& flow, DropReason reason, Instant now, Verdicts& out) {
  drop(flow, take_head(flow), reason, now, out);
}

void ClassQueue::drop(Flow& flow, const HeldPacket& packet, DropReason reason, Instant now, Verdicts& out) {
  for (Traffic* traffic : {&flow.traffic, &traffic_}) {
    traffic->drops[static_cast<std::size_t>(reason)] += packet.frames;
    traffic->dropped_bytes += {packet.ip_bytes};
  }
  recent_.add(1 + static_cast<std::size_t>(reason), packet.frames, now);
  out.push_back({packet.id, Decision::drop, reason, packet.frames, index_, packet.wire_bytes, Nanos{0}, 0});
}

void ClassQueue::leave(Flow& flow, const HeldPacket& packet, Decision decision, Instant now, Verdicts& out) {
  const Nanos delay = now - packet.arrival;
  out.push_back({packet.id, decision, DropReason::policed, packet.frames, index_, packet.wire_bytes, delay,
                 decision == Decision::mark ? packet.fwmark : 0});
  if (decision == Decision::pass) {
    passed_packets_ += packet.frames;
    return;
  }
  for (Traffic* traffic : {&flow.traffic, &traffic_}) {
    traffic->sent_packets += packet.frames;
    if (decision == Decision::mark) traffic->marked_packets += packet.frames;
    traffic->sent_bytes += {packet.ip_bytes};
    traffic->wire_bytes += packet.wire_bytes;
  }
  flow.who.count(packet.frames, packet.wire_bytes);
  flow.meter.add(packet.wire_bytes, now);
  meter_.add(packet.wire_bytes, now);
  recent_.add(0, packet.frames, now);
  delay_counts_.add(delay, packet.frames);
  if (delay > Nanos{0}) {
    if (!flow.delays) flow.delays = std::make_unique<DelayHistogram>();
    flow.delays->add(delay, packet.frames);
    delays_.add(delay, packet.frames);
  }
}

void ClassQueue::pass(Flow& flow, Instant now, Verdicts& out) {
  const bool awake = flow.state == FlowState::awake;
  if (awake) release(flow);
  KeyedBucket* sleeps = flow.sleeps;
  delist(flow, now);
  relist(*flow.host);
  while (!flow.idle()) leave(flow, take_head(flow), Decision::pass, now, out);
  if (awake) wake_at_buckets_of(flow, now, out);
  if (sleeps != nullptr) wake_sleepers(*sleeps, schedule_, false, now, out);
}

void ClassQueue::count_lost(const Verdict& verdict) {
  if (verdict.decision == Decision::detour) return;  // not counted in yet
  if (verdict.decision == Decision::drop) return;    // it is gone either way
  std::uint64_t& counted = departs(verdict.decision) ? traffic_.sent_packets : passed_packets_;
  // The class may have changed meanwhile: what it never counted it cannot lose.
  const std::uint64_t lost = std::min<std::uint64_t>(verdict.frames, counted);
  counted -= lost;
  if (verdict.decision == Decision::mark) traffic_.marked_packets -= std::min(lost, traffic_.marked_packets);
  lost_packets_ += lost;
}

}  // namespace shaper
