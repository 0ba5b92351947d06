// The frame around the queue: what the policy asks for, flows that come and go, a change of policy, a look from
// outside.
#include "shaper/core/class_queue.h"

#include <algorithm>
#include <cassert>

#include "shaper/core/guard.h"

namespace shaper {
namespace {

/// A class that splits goes on splitting up to this rate.
constexpr DataRate kSplitAgainstBelow{600'000'000};

/// A round's share for flows whose super-packets stay whole: one of them.
constexpr std::uint64_t kSuperPacket = 65'536;

}  // namespace

ClassQueue::ClassQueue(const Policy& policy, ClassIndex index, const Framing& framing, std::span<Limit* const> limits,
                       Schedule& schedule, HashKey key, std::optional<Instant> empty_since, Instant now)
    : policy_(policy.classes[index]),
      index_(index),
      direction_(policy.links[policy_.link].direction),
      smallest_(policy.smallest_rate(policy_)),
      schedule_(schedule),
      hosts_(0, FlowKeyHash{key}) {
  const ByteCount frame = framing.full_frame();
  const auto spec = [&](DataRate rate, const Burst& burst) {
    return BucketSpec{rate, frame, burst_bytes(burst, rate)};
  };
  if (policy_.over != Over::count) {
    if (const auto limit = policy_.limit()) {
      ceil_spec_ = spec(*limit, policy_.burst);
      const TokenBucket start = empty_since ? TokenBucket::empty(*empty_since) : TokenBucket::full(*ceil_spec_, now);
      ceil_.emplace(*ceil_spec_, start, late_nanobits_);
    }
    if (policy_.each) {
      each_.emplace(*policy_.each, spec(policy_.each->rate, policy_.each->burst), key, empty_since);
      keyed_.push_back(&*each_);
    }
  }
  const auto bound = [&](std::optional<DataRate> rate) {
    if (rate && (!total_ || *rate < *total_)) total_ = rate;
  };
  bound(policy.links[policy_.link].rate);
  if (ceil_) bound(ceil_spec_->rate);
  for (Limit* limit : limits) {
    if (limit->keyed) {
      keyed_.push_back(&*limit->keyed);
      narrow_ |= limit->keyed->narrow().has_value();
    }
    if (!limit->meter) continue;
    limits_.push_back(&*limit->meter);
    bound(limit->policy.rate);
  }
  configure(framing);
}

/// What follows from the rates and from the length of a frame.
void ClassQueue::configure(const Framing& framing) {
  frame_ = framing.full_frame();
  quantum_ = static_cast<std::int64_t>(frame_.value);
  if (!may_wait()) return;
  // Where only some flows have to wait, the others are as fast as can be.
  const DataRate rate = smallest_.value_or(kFastestRate);
  splits_ = rate < (splits_ ? kSplitAgainstBelow : kSplitBelow);
  if (!splits_) quantum_ = std::max<std::int64_t>(quantum_, kSuperPacket);
  codel_ = CodelParameters::scaled(time_for(rate, frame_));
  max_delay_ = policy_.max_delay.value_or(default_max_delay(rate, frame_));
  most_backlog_ = policy_.backlog;
  if (!most_backlog_ && total_) most_backlog_ = bytes_in(*total_, max_delay_);
  if (each_) most_each_backlog_ = bytes_in(each_->spec().rate, max_delay_);
}

void ClassQueue::set_framing(const Framing& framing, Instant now) {
  configure(framing);
  if (ceil_) {
    const BucketSpec before = *ceil_spec_;
    ceil_spec_->admit(frame_);
    ceil_->follow(before, now);
  }
  if (each_) {
    BucketSpec spec = each_->spec();
    spec.admit(frame_);
    each_->change(spec, now);
  }
}

// --- Flows come and go -----------------------------------------------------------------------------------------------

FlowKey ClassQueue::host_key(const Flow& flow) const {
  const bool local_is_source = direction_ == Direction::egress;
  FlowKey key;
  switch (policy_.fair) {
    case Fair::flow:
    case Fair::off:
      break;
    case Fair::host:
      key.family = flow.key.family;
      key.source = local_is_source ? flow.key.source : flow.key.destination;
      break;
    case Fair::source:
      key.family = flow.key.family;
      key.source = flow.key.source;
      break;
    case Fair::destination:
      key.family = flow.key.family;
      key.source = flow.key.destination;
      break;
    case Fair::user:
      key.protocol = flow.user ? 1 : 0;
      key.mark = flow.user.value_or(0);
      break;
  }
  return key;
}

void ClassQueue::join_host(Flow& flow) {
  const bool apart = may_wait() && policy_.fair != Fair::flow && policy_.fair != Fair::off;
  const FlowKey key = host_key(flow);
  flow.host = apart ? &hosts_.try_emplace(key, key).first->second : &whole_;
  ++flow.host->flows;
  flow.round = 0;
  flow.deficit = 0;
}

void ClassQueue::leave_host(Flow& flow) {
  Host& host = *flow.host;
  flow.host = nullptr;
  if (--host.flows > 0 || &host == &whole_) return;
  const FlowKey key = host.key;
  hosts_.erase(key);
}

void ClassQueue::attach(Flow& flow, Instant now) {
  flow.owner = this;
  flow.state = FlowState::idle;
  flow.buckets.clear();
  for (KeyedBuckets* keyed : keyed_) {
    if (keyed->takes(flow, direction_)) join_bucket(flow, *keyed, now);
  }
  join_host(flow);
  ++flows_;
}

void ClassQueue::join_bucket(Flow& flow, KeyedBuckets& keyed, Instant now) {
  KeyedBucket& bucket = keyed.at(keyed.key_of(flow, direction_), now);
  ++bucket.flows;
  flow.buckets.push_back(&bucket);
}

void ClassQueue::leave_bucket(KeyedBucket& bucket) {
  if (--bucket.flows > 0 || bucket.home->keeps_unused()) return;
  if (bucket.meter.has_spent()) std::erase(schedule_.spent, &bucket.meter);
  const FlowKey key = bucket.key;
  bucket.home->erase(key);
}

bool ClassQueue::suits(const Flow& flow) const {
  if (policy_.fair == Fair::user && flow.host != &whole_ && host_key(flow) != flow.host->key) return false;
  std::size_t place = 0;
  for (const KeyedBuckets* keyed : keyed_) {
    if (!keyed->takes(flow, direction_)) continue;
    if (place >= flow.buckets.size()) return false;
    const KeyedBucket& bucket = *flow.buckets[place++];
    if (bucket.home != keyed) return false;
    if (bucket.key != keyed->key_of(flow, direction_) && bucket.key != kOtherKeys) return false;
  }
  return place == flow.buckets.size();
}

void ClassQueue::detach(Flow& flow) {
  assert(flow.state == FlowState::idle);
  --flows_;
  leave_host(flow);
  for (KeyedBucket* bucket : flow.buckets) leave_bucket(*bucket);
  flow.buckets.clear();
  flow.owner = nullptr;
}

bool ClassQueue::may_forget(const Flow& flow, Instant now) const {
  if (flow.guard_credit && !flow.guard_credit->full_at(kGuardedFlow, now)) return false;
  return std::all_of(flow.buckets.begin(), flow.buckets.end(),
                     [&](const KeyedBucket* bucket) { return bucket->flows > 1 || bucket->meter.may_forget(now); });
}

bool ClassQueue::splits(const Flow& flow) const {
  return splits_ || (narrow_ && std::any_of(flow.buckets.begin(), flow.buckets.end(), [](const KeyedBucket* bucket) {
                       return bucket->home->narrow() && bucket->home->narrow()->splits;
                     }));
}

Nanos ClassQueue::patience(const Flow& flow) const {
  Nanos longest = max_delay_;
  if (!narrow_ || policy_.max_delay) return longest;
  for (const KeyedBucket* bucket : flow.buckets) {
    if (const auto& narrow = bucket->home->narrow()) longest = std::max(longest, narrow->max_delay);
  }
  return longest;
}

CodelParameters ClassQueue::codel_of(const Flow& flow) const {
  CodelParameters slowest = codel_;
  if (!narrow_) return slowest;
  for (const KeyedBucket* bucket : flow.buckets) {
    const auto& narrow = bucket->home->narrow();
    if (narrow && narrow->codel.target > slowest.target) slowest = narrow->codel;
  }
  return slowest;
}

std::optional<FlowKey> ClassQueue::shared_bucket(const FlowKey& flow) const {
  if (!each_ || each_->by().by == EachBy::flow || is_of_owner(each_->by().by)) return std::nullopt;
  const FlowKey key = bucket_key(each_->by(), flow, direction_);
  if (!each_->contains(key)) return std::nullopt;
  return key;
}

// --- Change of policy ------------------------------------------------------------------------------------------------

void ClassQueue::inherit(ClassQueue& before, Instant now) {
  traffic_ = before.traffic_;
  in_packets_ = before.in_packets_;
  lost_packets_ = before.lost_packets_;
  passed_packets_ = before.passed_packets_;
  late_nanobits_ = before.late_nanobits_;
  meter_ = before.meter_;
  delays_ = before.delays_;
  recent_ = before.recent_;
  delay_counts_ = before.delay_counts_;
  if (before.splits_ && smallest_) splits_ = *smallest_ < kSplitAgainstBelow;
  if (ceil_ && before.ceil_) {
    ceil_spec_->frame = std::max(ceil_spec_->frame, before.ceil_spec_->frame);
    ceil_.emplace(Meter(*ceil_spec_, late_nanobits_, std::move(*before.ceil_), now));
  }
  if (each_ && before.each_ && each_->by() == before.each_->by()) {
    each_->inherit(*before.each_, now);
  } else if (before.each_) {
    late_nanobits_ += before.each_->late_nanobits;
  }
}

void ClassQueue::adopt(Flow& flow, Instant now, Verdicts& out) {
  backlog_packets_ += flow.backlog_packets;
  count_backlog(flow, ByteCount{});
  if (!may_wait()) return pass(flow, now, out);
  for (const HeldPacket* packet = flow.head; packet != nullptr; packet = packet->behind) {
    if (ceil_spec_) ceil_spec_->admit(packet->wire_bytes);
    for (KeyedBucket* bucket : flow.buckets) {
      bucket->home->admit(packet->wire_bytes);
      bucket->meter.hold(packet->wire_bytes);
    }
    for (Meter* limit : limits_) limit->hold(packet->wire_bytes);
  }
  activate(flow, now, out);
}

void ClassQueue::forget_unused_buckets(Instant now) {
  if (each_) each_->forget_unused(now);
}

// --- A look from outside ---------------------------------------------------------------------------------------------

Holder ClassQueue::holder_of(const KeyedBucket& bucket) const {
  if (each_ && bucket.home == &*each_) return Holder::each;
  return bucket.home->uses_grants() ? Holder::cluster : Holder::limit;
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
  Uint128 late = late_nanobits_;
  if (ceil_) {
    snapshot.depth = ceil_spec_->depth();
    snapshot.credit = ceil_->credit_at(now);
    TokenBucket bucket = ceil_->bucket();
    bucket.accrue(*ceil_spec_, now);
    snapshot.wait = std::max(Nanos{0}, bucket.covered_at(*ceil_spec_, backlog_ + frame_) - now);
  }
  if (each_) late += each_->late_nanobits;
  snapshot.late_bytes = {static_cast<std::uint64_t>(late / kNanobitsPerByte)};
  snapshot.flows = flows_;
  snapshot.delay = delays_.summary(traffic_.sent_packets);
  const auto recent = recent_.sums(now);
  snapshot.recent.sent = recent.front();
  std::copy(recent.begin() + 1, recent.end(), snapshot.recent.drops.begin());
  snapshot.delay_counts = delay_counts_;
  return snapshot;
}

}  // namespace shaper
