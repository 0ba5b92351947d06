#include "shaper/core/keyed_buckets.h"

#include <algorithm>

#include "shaper/core/classifier.h"

namespace shaper {

Packet packet_like(const Flow& flow, LinkIndex link) {
  Packet packet;
  packet.link = link;
  packet.mark = flow.last_mark;
  packet.user = flow.user;
  packet.group = flow.group;
  packet.headers.source = flow.key.source;
  packet.headers.destination = flow.key.destination;
  packet.headers.source_port = flow.key.source_port;
  packet.headers.destination_port = flow.key.destination_port;
  packet.headers.family = flow.key.family;
  packet.headers.protocol = flow.key.protocol;
  packet.headers.dscp = flow.last_dscp;
  return packet;
}

FlowKey bucket_key(const KeyPolicy& by, const FlowKey& flow, Direction direction) {
  FlowKey key;
  if (by.by == EachBy::all) return key;
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

void KeyedBuckets::take_only(std::span<const Match> match) {
  const Nanos frame_time = time_for(spec_.rate, spec_.frame);
  narrow_ = Narrow{match, spec_.rate < kSplitBelow, CodelParameters::scaled(frame_time),
                   default_max_delay(spec_.rate, spec_.frame)};
}

bool KeyedBuckets::takes(const Flow& flow, Direction direction) const {
  if (!narrow_) return true;
  if (flow.is_shared()) return false;  // nobody knows whose packets it has
  const Packet packet = packet_like(flow, flow.key.link);
  return std::any_of(narrow_->match.begin(), narrow_->match.end(),
                     [&](const Match& match) { return holds(match, packet, direction); });
}

KeyedBucket* KeyedBuckets::find(const FlowKey& key) {
  const auto found = buckets_.find(key);
  return found == buckets_.end() ? nullptr : &found->second;
}

const KeyedBucket* KeyedBuckets::find(const FlowKey& key) const {
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
  KeyedBucket& bucket = buckets_.try_emplace(key, *this, key, Meter(spec_, start, late_nanobits)).first->second;
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
    buckets_.try_emplace(key, *this, key, Meter(spec_, late_nanobits, std::move(bucket.meter), now));
  }
}

}  // namespace shaper
