#include "shaper/core/class_queue.h"

#include <algorithm>
#include <cassert>
#include <tuple>
#include <utility>

namespace shaper {
namespace {

/// 64 KiB take longer than about 1 ms below this rate. A class that splits goes on splitting up to the second one.
constexpr DataRate kSplitBelow{500'000'000};
constexpr DataRate kSplitAgainstBelow{600'000'000};

/// A round's share for flows whose super-packets stay whole: one of them.
constexpr std::uint64_t kSuperPacket = 65'536;

Address masked(const Address& address, unsigned bits) {
  Address kept{};
  for (std::size_t i = 0; i < kept.size() && bits > 0; ++i) {
    const unsigned now = std::min(bits, 8U);
    kept[i] = static_cast<std::uint8_t>(address[i] & (0xff << (8 - now)));
    bits -= now;
  }
  return kept;
}

}  // namespace

ClassQueue::ClassQueue(const ClassPolicy& policy, ClassIndex index, Direction direction, const Framing& framing,
                       HeldPackets& held, HashKey key, std::optional<Instant> empty_since, Instant now)
    : policy_(policy),
      index_(index),
      direction_(direction),
      held_(held),
      empty_since_(empty_since),
      total_bucket_(TokenBucket::empty(now)),
      each_buckets_(0, FlowKeyHash{key}),
      whole_(TokenBucket::empty(now)) {
  configure(framing);
  if (total_) total_bucket_ = new_bucket(*total_, now);
}

void ClassQueue::configure(const Framing& framing) {
  const ByteCount frame = framing.full_frame();
  quantum_ = static_cast<std::int64_t>(frame.value);
  if (policy_.over == Over::count) return;
  const auto spec = [&](DataRate rate, const Burst& burst, const std::optional<BucketSpec>& before) {
    return BucketSpec{rate, before ? std::max(before->frame, frame) : frame, burst_bytes(burst, rate)};
  };
  if (const auto limit = policy_.limit()) total_ = spec(*limit, policy_.burst, total_);
  if (policy_.each) each_ = spec(policy_.each->rate, policy_.each->burst, each_);
  const std::optional<DataRate> smallest = policy_.smallest_rate();
  if (!smallest) return;

  splits_ = *smallest < kSplitBelow;
  if (!splits_) quantum_ = std::max<std::int64_t>(quantum_, kSuperPacket);
  max_delay_ = policy_.max_delay.value_or(default_max_delay(*smallest, frame));
  if (total_) most_backlog_ = policy_.backlog.value_or(bytes_in(total_->rate, max_delay_));
  if (policy_.backlog) most_backlog_ = policy_.backlog;
  if (each_) most_each_backlog_ = bytes_in(each_->rate, max_delay_);
}

TokenBucket ClassQueue::new_bucket(const BucketSpec& spec, Instant now) const {
  if (!empty_since_) return TokenBucket::full(spec, now);
  TokenBucket bucket = TokenBucket::empty(*empty_since_);
  bucket.accrue(spec, now);
  return bucket;
}

void ClassQueue::set_framing(const Framing& framing, Instant now) {
  const std::optional<BucketSpec> total = total_;
  const std::optional<BucketSpec> each = each_;
  const bool split = splits_;
  configure(framing);
  splits_ = split;
  if (total) total_bucket_.change(*total, *total_, now);
  if (each) {
    for (auto& [key, bucket] : each_buckets_) bucket.bucket.change(*each, *each_, now);
  }
}

// --- Flows come and go -----------------------------------------------------------------------------------------------

FlowKey ClassQueue::each_key(const FlowKey& key) const {
  FlowKey shared = key;
  // The class tells links apart; mark and DSCP are the sender's choice and must not multiply its buckets.
  shared.link = 0;
  shared.mark = shared.dscp = 0;
  const EachBy by = policy_.each->by;
  if (by == EachBy::flow) return shared;
  const bool local_is_source = direction_ == Direction::egress;
  const bool source = by == EachBy::source || by == (local_is_source ? EachBy::local : EachBy::remote);
  shared = {};
  shared.family = key.family;
  const unsigned bits = key.family == Family::ipv6 ? policy_.each->bits_ipv6 : policy_.each->bits_ipv4;
  shared.source = masked(source ? key.source : key.destination, bits);
  return shared;
}

std::optional<FlowKey> ClassQueue::shared_bucket(const FlowKey& flow) const {
  if (!each_ || policy_.each->by == EachBy::flow) return std::nullopt;
  const FlowKey key = each_key(flow);
  if (!each_buckets_.contains(key)) return std::nullopt;
  return key;
}

void ClassQueue::attach(Flow& flow, Instant now) {
  flow.owner = this;
  flow.each = &whole_;
  if (each_) {
    const FlowKey key = each_key(flow.key);
    const auto found = each_buckets_.find(key);
    flow.each = found != each_buckets_.end() ? &found->second
                                             : &each_buckets_.try_emplace(key, new_bucket(*each_, now)).first->second;
  }
  flow.round = 0;
  flow.deficit = 0;
  flow.state = FlowState::idle;
  ++flow.each->flows;
  ++flows_;
}

void ClassQueue::detach(Flow& flow) {
  assert(flow.state == FlowState::idle);
  --flows_;
  EachBucket& each = *flow.each;
  if (--each.flows == 0 && each_) {
    std::erase(spent_each_, &each);
    each_buckets_.erase(each_key(flow.key));
  }
  flow.owner = nullptr;
  flow.each = nullptr;
}

bool ClassQueue::may_forget(const Flow& flow, Instant now) const {
  return !each_ || flow.each->flows > 1 || flow.each->bucket.full_at(*each_, now);
}

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

// --- Held packets ----------------------------------------------------------------------------------------------------

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

// --- Change of policy ------------------------------------------------------------------------------------------------

void ClassQueue::inherit(const ClassQueue& before, Instant now) {
  traffic_ = before.traffic_;
  in_packets_ = before.in_packets_;
  lost_packets_ = before.lost_packets_;
  passed_packets_ = before.passed_packets_;
  late_nanobits_ = before.late_nanobits_;
  meter_ = before.meter_;
  delays_ = before.delays_;
  if (before.splits_ && policy_.smallest_rate() && policy_.over != Over::count) {
    splits_ = *policy_.smallest_rate() < kSplitAgainstBelow;
  }
  if (total_ && before.total_) {
    total_->frame = std::max(total_->frame, before.total_->frame);
    total_bucket_ = before.total_bucket_;
    total_bucket_.change(*before.total_, *total_, now);
  }
  const auto& each = before.policy_.each;
  if (each_ && before.each_ && each->by == policy_.each->by && each->bits_ipv4 == policy_.each->bits_ipv4 &&
      each->bits_ipv6 == policy_.each->bits_ipv6) {
    each_->frame = std::max(each_->frame, before.each_->frame);
    for (const auto& [key, bucket] : before.each_buckets_) {
      TokenBucket kept = bucket.bucket;
      kept.change(*before.each_, *each_, now);
      each_buckets_.try_emplace(key, kept);
    }
    empty_since_ = before.empty_since_;
  }
}

std::vector<Flow*> ClassQueue::waiting() const {
  std::vector<Flow*> flows;
  const auto append = [&](const FlowList& list) {
    for (Flow* flow = list.front(); flow != nullptr; flow = FlowList::next(*flow)) flows.push_back(flow);
  };
  for (const auto& [key, each] : each_buckets_) {
    append(each.fresh);
    append(each.old);
  }
  // The map's order is as random as its key: a replay must not depend on it.
  std::sort(flows.begin(), flows.end(), [](const Flow* a, const Flow* b) {
    return std::tie(a->head->arrival, a->head->id) < std::tie(b->head->arrival, b->head->id);
  });
  append(fresh_);
  append(old_);
  return flows;
}

void ClassQueue::adopt(Flow& flow, Instant now, Verdicts& out) {
  backlog_packets_ += flow.backlog_packets;
  count_backlog(flow, ByteCount{});
  if ((!total_ && !each_) || policy_.over == Over::drop) return pass(flow, now, out);
  for (const HeldPacket* packet = flow.head; packet != nullptr; packet = packet->behind) admit(packet->wire_bytes);
  activate(flow);
}

void ClassQueue::forget_unused_buckets() {
  std::erase_if(each_buckets_, [](const auto& entry) { return entry.second.flows == 0; });
}

ClassSnapshot ClassQueue::snapshot(Instant now) const {
  ClassSnapshot snapshot;
  snapshot.index = index_;
  snapshot.traffic = traffic_;
  snapshot.in_packets = in_packets_;
  snapshot.lost_packets = lost_packets_;
  snapshot.passed_packets = passed_packets_;
  snapshot.backlog_packets = backlog_packets_;
  snapshot.backlog_bytes = backlog_;
  snapshot.rate = meter_.rate(now);
  if (total_) {
    TokenBucket bucket = total_bucket_;
    bucket.accrue(*total_, now);
    snapshot.depth = total_->depth();
    snapshot.credit = bucket.credit();
  }
  snapshot.late_bytes = {static_cast<std::uint64_t>(late_nanobits_ / kNanobitsPerByte)};
  snapshot.flows = flows_;
  snapshot.delay = delays_.summary(traffic_.sent_packets);
  return snapshot;
}

}  // namespace shaper
