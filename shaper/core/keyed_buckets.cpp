#include "shaper/core/keyed_buckets.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "shaper/core/classifier.h"
#include "shaper/core/owner.h"

namespace shaper {

Packet packet_like(const Flow& flow, LinkIndex link) {
  Packet packet;
  packet.link = link;
  packet.mark = flow.last_mark;
  packet.user = flow.user;
  packet.group = flow.group;
  packet.owner = flow.who.get();
  packet.owner_pending = flow.owner_state == OwnerState::pending;
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

namespace {

/// A name of any length in the place of an address. Its key is no secret: two names in one bucket would share a rate.
Address digest(std::string_view text) {
  Address digest{};
  for (std::uint64_t half = 0; half < 2; ++half) {
    std::uint64_t hash = half;
    for (std::size_t i = 0; i < text.size(); i += sizeof hash) {
      std::uint64_t piece = 0;
      std::memcpy(&piece, text.data() + i, std::min(sizeof piece, text.size() - i));
      hash = siphash(std::array{hash, piece}, {half, text.size()});
    }
    std::memcpy(digest.data() + half * sizeof hash, &hash, sizeof hash);
  }
  return digest;
}

/// The key of those whose owner is not known is empty.
FlowKey owner_key(EachBy by, const Flow& flow) {
  FlowKey key;
  if (by == EachBy::user) {
    key.link = flow.user ? 1 : 0;
    key.mark = flow.user.value_or(0);
    return key;
  }
  const Owner* owner = flow.who.get();
  if (owner == nullptr) return key;
  if (by == EachBy::process && owner->pid != 0) {
    std::memcpy(key.source.data(), &owner->started, sizeof owner->started);
    key.mark = owner->pid;
  } else if (by == EachBy::cgroup && !owner->cgroup.empty()) {
    key.source = digest(owner->cgroup);
  } else if (by == EachBy::container && !owner->container.empty()) {
    key.source = digest(owner->container);
  }
  return key;
}

}  // namespace

std::optional<std::uint32_t> user_of_bucket(const FlowKey& key) {
  return key.link == 0 ? std::nullopt : std::optional(key.mark);
}

FlowKey KeyedBuckets::key_of(const Flow& flow, Direction direction) const {
  return is_of_owner(by_.by) ? owner_key(by_.by, flow) : bucket_key(by_, flow.key, direction);
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
                     [&](const Match& match) { return holds(match, packet, direction) != Holds::no; });
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
  if (buckets_.size() >= sweep_at_) forget_unused(now);
  TokenBucket start = TokenBucket::full(spec_, now);
  if (empty_since_) {
    start = TokenBucket::empty(*empty_since_);
    start.accrue(spec_, now);
  }
  KeyedBucket& bucket = buckets_.try_emplace(key, *this, key, Meter(spec_, start, late_nanobits)).first->second;
  if (grants_) bucket.meter.use_grants(spec_.frame, now);
  return bucket;
}

void KeyedBuckets::forget_unused(Instant now) {
  std::erase_if(buckets_, [&](const auto& entry) {
    const KeyedBucket& bucket = entry.second;
    return bucket.flows == 0 && (!keeps_unused() || (!bucket.meter.has_spent() && bucket.meter.may_forget(now)));
  });
  sweep_at_ = 2 * buckets_.size() + kFirstSweep;
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
