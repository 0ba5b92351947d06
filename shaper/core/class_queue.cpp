// Who may depart, and who is next: meters and round robin. The rest of the class is in class_queue_setup.cpp and
// class_queue_packets.cpp.
#include "shaper/core/class_queue.h"

#include <algorithm>
#include <utility>

namespace shaper {

// --- Meters ----------------------------------------------------------------------------------------------------------

void ClassQueue::admit(ByteCount length) {
  if (total_) total_->admit(length);
  if (each_) each_->admit(length);
}

void ClassQueue::accrue_total(Instant now) {
  if (!total_) return;
  const std::uint64_t lost = total_bucket_.accrue(*total_, now);
  if (blocked_until_) late_nanobits_ += lost;
}

void ClassQueue::accrue(EachBucket& each, Instant now) {
  if (!each_) return;
  const std::uint64_t lost = each.bucket.accrue(*each_, now);
  if (each.awake == 0 && each.first_sleeper() != nullptr) late_nanobits_ += lost;
}

bool ClassQueue::each_covers(const EachBucket& each, ByteCount length) const {
  return !each_ || each.bucket.covers(length);
}

void ClassQueue::charge(EachBucket& each, ByteCount length) {
  if (total_) total_bucket_.charge(length);
  spent_ += length;
  if (!each_) return;
  each.bucket.charge(length);
  if (each.spent == ByteCount{}) spent_each_.push_back(&each);
  each.spent += length;
}

void ClassQueue::departed(Instant at) {
  if (total_) {
    const std::uint64_t lost = total_bucket_.departed(*total_, spent_, at);
    if (blocked_until_) late_nanobits_ += lost;
  }
  for (EachBucket* each : spent_each_) each->bucket.departed(*each_, std::exchange(each->spent, {}), at);
  spent_each_.clear();
  spent_ = {};
}

// --- Packets come and go ---------------------------------------------------------------------------------------------

void ClassQueue::arrive(Flow& flow, const Packet& packet, const WireSize& size, Instant now, Verdicts& out) {
  const HeldPacket arrived{packet.id, size.frames, packet.ip_bytes, size.bytes, now, nullptr};
  in_packets_ += size.frames;
  if (!total_ && !each_) return leave(flow, arrived, Decision::accept, now, out);

  EachBucket& each = *flow.each;
  admit(size.bytes);
  accrue_total(now);
  accrue(each, now);
  const bool covered = total_covers(size.bytes) && each_covers(each, size.bytes);
  if (policy_.over == Over::drop && !covered) return drop(flow, arrived, DropReason::policed, out);
  if (policy_.over == Over::drop || (covered && nothing_in_turn() && flow.idle() && each.first_sleeper() == nullptr)) {
    charge(each, size.bytes);
    return leave(flow, arrived, Decision::accept, now, out);
  }

  hold(flow, arrived);
  if (flow.state == FlowState::idle) activate(flow);
  keep_bounds(each, now, out);
  release(now, out);
}

void ClassQueue::release(Instant now, Verdicts& out) {
  accrue_total(now);
  blocked_until_.reset();
  while (!asleep_.empty() && asleep_.top().wake <= now) {
    EachBucket& each = asleep_.top();
    accrue(each, now);
    settle(each);
  }
  while (Flow* flow = next_in_turn()) {
    EachBucket& each = *flow->each;
    const HeldPacket& head = *flow->head;
    const Instant deadline = head.arrival + max_delay_;
    accrue(each, now);
    const bool each_is_ready = each_covers(each, head.wire_bytes);
    const Instant each_ready = each_is_ready ? now : each.bucket.covered_at(*each_, head.wire_bytes);
    const Instant total_ready = total_ ? total_bucket_.covered_at(*total_, head.wire_bytes) : now;
    if (std::max({now, each_ready, total_ready}) > deadline) {
      drop_head(*flow, DropReason::max_delay, now, out);
    } else if (!each_is_ready) {
      sleep(*flow);
    } else if (total_ready > now) {
      blocked_until_ = total_ready;
      return;
    } else {
      charge(each, head.wire_bytes);
      const HeldPacket departing = take_head(*flow);
      flow->deficit -= static_cast<std::int64_t>(departing.wire_bytes.value);
      retire(*flow);
      settle(each);
      leave(*flow, departing, Decision::accept, now, out);
    }
  }
}

std::optional<Instant> ClassQueue::next_departure() const {
  if (asleep_.empty()) return blocked_until_;
  const Instant wake = asleep_.top().wake;
  return blocked_until_ ? std::min(*blocked_until_, wake) : wake;
}

// --- Round robin -----------------------------------------------------------------------------------------------------

Flow* ClassQueue::next_in_turn() {
  if (!fresh_.empty()) return fresh_.front();
  while (!old_.empty()) {
    Flow& flow = *old_.front();
    if (flow.deficit > 0) return &flow;
    if (flow.round == round_) ++round_;
    flow.round = round_;
    flow.deficit += quantum_;
    flow.resumes = false;
    if (flow.deficit > 0) return &flow;
    old_.remove(flow);
    old_.push_back(flow);
  }
  return nullptr;
}

void ClassQueue::activate(Flow& flow) {
  const std::uint32_t rounds = round_ - flow.round;
  flow.round = round_;
  if (backlog_packets_ == flow.backlog_packets) {
    flow.deficit = quantum_;  // nobody else waits: nothing is owed
  } else if (rounds > 0) {
    flow.deficit = std::min(flow.deficit + rounds * quantum_, quantum_);
  }
  flow.resumes = false;
  enlist(flow, flow.deficit > 0 ? FlowState::fresh : FlowState::old);
  ++flow.each->awake;
}

/// After a packet left an awake flow: it is empty, or its quantum is used, or it goes on.
void ClassQueue::retire(Flow& flow) {
  if (flow.idle()) {
    delist(flow);
    --flow.each->awake;
  } else if (flow.deficit <= 0) {
    delist(flow);
    flow.resumes = false;
    enlist(flow, FlowState::old);
  }
}

void ClassQueue::enlist(Flow& flow, FlowState state) {
  (state == FlowState::fresh ? fresh_ : old_).push_back(flow);
  flow.state = state;
}

/// Takes the flow out of whatever list it is in.
void ClassQueue::delist(Flow& flow) {
  switch (flow.state) {
    case FlowState::idle:
      return;
    case FlowState::fresh:
      fresh_.remove(flow);
      break;
    case FlowState::old:
      old_.remove(flow);
      break;
    case FlowState::asleep_fresh:
      flow.each->fresh.remove(flow);
      break;
    case FlowState::asleep_old:
      flow.each->old.remove(flow);
      break;
  }
  flow.state = FlowState::idle;
}

void ClassQueue::sleep(Flow& flow) {
  EachBucket& each = *flow.each;
  const bool fresh = flow.state == FlowState::fresh;
  delist(flow);
  --each.awake;
  FlowList& sleepers = fresh ? each.fresh : each.old;
  flow.resumes ? sleepers.push_front(flow) : sleepers.push_back(flow);
  flow.state = fresh ? FlowState::asleep_fresh : FlowState::asleep_old;
  settle(each);
}

void ClassQueue::wake_first(EachBucket& each) {
  Flow& flow = *each.first_sleeper();
  const bool fresh = flow.state == FlowState::asleep_fresh;
  delist(flow);
  flow.resumes = true;
  enlist(flow, fresh ? FlowState::fresh : FlowState::old);
  ++each.awake;
}

/// Wakes the first sleeper if the bucket covers it; if nobody is awake, the heap will. `each` is accrued up to now.
void ClassQueue::settle(EachBucket& each) {
  Flow* sleeper = each.first_sleeper();
  if (sleeper != nullptr && each_covers(each, sleeper->head->wire_bytes)) {
    wake_first(each);
    sleeper = each.first_sleeper();
  }
  if (sleeper == nullptr || each.awake > 0) return asleep_.remove(each);
  each.wake = each.bucket.covered_at(*each_, sleeper->head->wire_bytes);
  asleep_.update(each);
}

}  // namespace shaper
