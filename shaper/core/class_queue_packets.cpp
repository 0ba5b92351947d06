// The packets that a class holds, and the counters of those that left it: departed, dropped, let go or lost.
#include <algorithm>
#include <memory>

#include "shaper/core/class_queue.h"

namespace shaper {

void ClassQueue::hold(Flow& flow, const HeldPacket& packet) {
  HeldPacket& place = held_.take();
  place = packet;
  (flow.head == nullptr ? flow.head : flow.tail->behind) = &place;
  flow.tail = &place;
  flow.backlog_packets += packet.frames;
  backlog_packets_ += packet.frames;
  const ByteCount before = flow.backlog;
  flow.backlog += packet.wire_bytes;
  count_backlog(flow, before);
}

HeldPacket ClassQueue::take_head(Flow& flow) {
  HeldPacket& place = *flow.head;
  const HeldPacket packet = place;
  flow.head = place.behind;
  if (flow.head == nullptr) flow.tail = nullptr;
  held_.give_back(place);
  flow.backlog_packets -= packet.frames;
  backlog_packets_ -= packet.frames;
  const ByteCount before = flow.backlog;
  flow.backlog -= packet.wire_bytes;
  count_backlog(flow, before);
  return packet;
}

/// The flow's backlog was `before`: the sums and the orders by backlog follow.
void ClassQueue::count_backlog(Flow& flow, ByteCount before) {
  EachBucket& each = *flow.each;
  each.backlog = each.backlog - before + flow.backlog;
  backlog_ = backlog_ - before + flow.backlog;
  flow.idle() ? each.fattest.remove(flow) : each.fattest.update(flow);
  each.backlog == ByteCount{} ? fattest_.remove(each) : fattest_.update(each);
}

/// Over a bound the fattest flow loses from its head. The bound allows one packet more than it says, so that a bound
/// below a packet's size still lets one wait.
void ClassQueue::keep_bounds(EachBucket& each, Instant now, Verdicts& out) {
  const auto above = [](ByteCount backlog, const std::optional<ByteCount>& most, const EachBucket& in) {
    return most && backlog != ByteCount{} && backlog > *most + in.fattest.top().head->wire_bytes;
  };
  while (above(each.backlog, most_each_backlog_, each)) drop_head(each.fattest.top(), DropReason::backlog, now, out);
  while (above(backlog_, most_backlog_, fattest_.empty() ? each : fattest_.top())) {
    drop_head(fattest_.top().fattest.top(), DropReason::backlog, now, out);
  }
}

void ClassQueue::make_room(std::size_t packets, Instant now, Verdicts& out) {
  for (; packets > 0 && !fattest_.empty(); --packets) {
    drop_head(fattest_.top().fattest.top(), DropReason::held, now, out);
  }
  if (nothing_in_turn()) blocked_until_.reset();
}

void ClassQueue::drop_head(Flow& flow, DropReason reason, Instant now, Verdicts& out) {
  EachBucket& each = *flow.each;
  const HeldPacket packet = take_head(flow);
  if (flow.idle()) {
    const bool awake = flow.state == FlowState::fresh || flow.state == FlowState::old;
    delist(flow);
    if (awake) --each.awake;
  }
  accrue(each, now);
  settle(each);
  drop(flow, packet, reason, out);
}

void ClassQueue::drop(Flow& flow, const HeldPacket& packet, DropReason reason, Verdicts& out) {
  for (Traffic* traffic : {&flow.traffic, &traffic_}) {
    traffic->drops[static_cast<std::size_t>(reason)] += packet.frames;
    traffic->dropped_bytes += {packet.ip_bytes};
  }
  out.push_back({packet.id, Decision::drop, reason, packet.frames, index_, packet.wire_bytes, Nanos{0}});
}

void ClassQueue::leave(Flow& flow, const HeldPacket& packet, Decision decision, Instant now, Verdicts& out) {
  const Nanos delay = now - packet.arrival;
  out.push_back({packet.id, decision, DropReason::policed, packet.frames, index_, packet.wire_bytes, delay});
  if (decision == Decision::pass) {
    passed_packets_ += packet.frames;
    return;
  }
  for (Traffic* traffic : {&flow.traffic, &traffic_}) {
    traffic->sent_packets += packet.frames;
    traffic->sent_bytes += {packet.ip_bytes};
    traffic->wire_bytes += packet.wire_bytes;
  }
  flow.meter.add(packet.wire_bytes, now);
  meter_.add(packet.wire_bytes, now);
  if (delay > Nanos{0}) {
    if (!flow.delays) flow.delays = std::make_unique<DelayHistogram>();
    flow.delays->add(delay, packet.frames);
    delays_.add(delay, packet.frames);
  }
}

void ClassQueue::pass(Flow& flow, Instant now, Verdicts& out) {
  EachBucket& each = *flow.each;
  const bool awake = flow.state == FlowState::fresh || flow.state == FlowState::old;
  delist(flow);
  if (awake) --each.awake;
  while (!flow.idle()) {
    const HeldPacket packet = take_head(flow);
    leave(flow, packet, Decision::pass, now, out);
  }
  accrue(each, now);
  settle(each);
  if (nothing_in_turn()) blocked_until_.reset();
}

void ClassQueue::count_lost(const Verdict& verdict) {
  if (verdict.decision == Decision::detour) return;  // not counted in yet
  std::uint64_t& counted = verdict.decision == Decision::accept ? traffic_.sent_packets
                           : verdict.decision == Decision::pass
                               ? passed_packets_
                               : traffic_.drops[static_cast<std::size_t>(verdict.reason)];
  // The class may have changed meanwhile: what it never counted it cannot lose.
  const std::uint64_t lost = std::min<std::uint64_t>(verdict.frames, counted);
  counted -= lost;
  lost_packets_ += lost;
}

}  // namespace shaper
