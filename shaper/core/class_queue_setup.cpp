// The frame around the queue: what the policy asks for, flows that come and go, a change of policy, a look from
// outside.
#include <algorithm>
#include <cassert>
#include <tuple>

#include "shaper/core/class_queue.h"

namespace shaper {
namespace {

/// 64 KiB take longer than about 1 ms below this rate. A class that splits goes on splitting up to the second one.
constexpr DataRate kSplitBelow{500'000'000};
constexpr DataRate kSplitAgainstBelow{600'000'000};

/// A round's share for flows whose super-packets stay whole: one of them.
constexpr std::uint64_t kSuperPacket = 65'536;

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
  most_backlog_ = policy_.backlog;
  if (!most_backlog_ && total_) most_backlog_ = bytes_in(total_->rate, max_delay_);
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
