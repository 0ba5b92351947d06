#include "shaper/core/keyed_buckets.h"

#include <algorithm>

namespace shaper {

FlowKey bucket_key(const KeyPolicy& by, const FlowKey& flow, Direction direction) {
  FlowKey key;
  if (by.by == EachBy::flow) {
    key = flow;
    key.link = 0;
    key.mark = key.dscp = 0;
    return key;
  }
  const bool local_is_source = direction == Direction::egress;
  const bool source = by.by == EachBy::source || by.by == (local_is_source ? EachBy::local : EachBy::remote);
  key.family = flow.family;
  const unsigned bits = flow.family == Family::ipv6 ? by.bits_ipv6 : by.bits_ipv4;
  key.source = masked(source ? flow.source : flow.destination, bits);
  return key;
}

KeyedBucket* KeyedBuckets::find(const FlowKey& key) {
  const auto found = buckets_.find(key);
  return found == buckets_.end() ? nullptr : &found->second;
}

KeyedBucket& KeyedBuckets::at(const FlowKey& key, Instant now) {
  if (KeyedBucket* bucket = find(key)) return *bucket;
  if (grants_ && buckets_.size() >= kMostGrantedKeys && key != kOtherKeys) return at(kOtherKeys, now);
  TokenBucket start = TokenBucket::full(spec_, now);
  if (empty_since_) {
    start = TokenBucket::empty(*empty_since_);
    start.accrue(spec_, now);
  }
  KeyedBucket& bucket = buckets_.try_emplace(key, key, Meter(spec_, start, late_nanobits)).first->second;
  if (grants_) bucket.meter.use_grants(spec_.frame, now);
  return bucket;
}

void KeyedBuckets::change(const BucketSpec& spec, Instant now) {
  const BucketSpec before = spec_;
  spec_ = spec;
  for (auto& [key, bucket] : buckets_) bucket.meter.follow(before, now);
}

void KeyedBuckets::inherit(KeyedBuckets& before, Instant now) {
  spec_.frame = std::max(spec_.frame, before.spec_.frame);
  late_nanobits = before.late_nanobits;
  rate = before.rate;
  empty_since_ = before.empty_since_;
  for (auto& [key, bucket] : before.buckets_) {
    buckets_.try_emplace(key, key, Meter(spec_, late_nanobits, std::move(bucket.meter), now));
  }
}

}  // namespace shaper
