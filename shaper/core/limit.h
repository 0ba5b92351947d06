// A named limit: a bucket that classes share, also of several links; or one bucket for each key.
//
// With `by`, flows sleep at the bucket of their key, as they do at an `each` bucket. Without, classes wait for it: by
// priority, then in proportion to their weights, as for a link.
#pragma once

#include <optional>
#include <utility>

#include "shaper/core/keyed_buckets.h"
#include "shaper/core/share_order.h"

namespace shaper {

struct Limit : Alarm {
  Limit(const LimitPolicy& wanted, ByteCount frame, HashKey key, std::optional<Instant> empty_since, Instant now)
      : Alarm(Of::limit), policy(wanted), spec{wanted.rate, frame, burst_bytes(wanted.burst, wanted.rate)} {
    const bool grants = policy.scope == Scope::cluster;
    if (policy.by) {
      keyed.emplace(*policy.by, spec, key, empty_since);
      if (!policy.match.empty()) keyed->take_only(policy.match);
      if (grants) keyed->use_grants();
      return;
    }
    meter.emplace(spec, empty_since ? TokenBucket::empty(*empty_since) : TokenBucket::full(spec, now), late_nanobits);
    if (grants) meter->use_grants(frame, now);
  }

  /// Takes over credit and grants, where both have the same `by`.
  void inherit(Limit& before, Instant now) {
    if (policy.by != before.policy.by || policy.scope != before.policy.scope || policy.match != before.policy.match) {
      return;
    }
    spec.frame = std::max(spec.frame, before.spec.frame);
    late_nanobits = before.late_nanobits;
    rate = before.rate;
    if (keyed) keyed->inherit(*before.keyed, now);
    if (meter) meter.emplace(Meter(spec, late_nanobits, std::move(*before.meter), now));
  }

  template <typename Image>
  void carry(Image& image, Instant now);

  [[nodiscard]] bool grants() const { return policy.scope == Scope::cluster; }

  /// Calls `told` with the key of each bucket that packets came to since the last call; without `by` it has none.
  void tell_stirred(auto&& told) {
    if (keyed) return keyed->tell_stirred(told);
    const ByteCount arrived = meter->wallet()->arrived;
    if (std::exchange(told_arrived, arrived) != arrived) told(FlowKey{});
  }

  [[nodiscard]] LimitSnapshot snapshot(LimitIndex index, Instant now) const {
    LimitSnapshot snapshot;
    snapshot.index = index;
    snapshot.keys = keyed ? static_cast<std::uint32_t>(keyed->size()) : 1;
    snapshot.other_flows = keyed ? keyed->other_flows() : 0;
    const RateMeter& measured = keyed ? keyed->rate : rate;
    snapshot.rate = measured.rate(now);
    snapshot.wire_bytes = measured.total();
    if (meter && meter->wallet() != nullptr) {
      snapshot.credit = meter->wallet()->left_at(now);
    } else if (meter) {
      snapshot.depth = spec.depth();
      snapshot.credit = meter->credit_at(now);
    } else if (keyed->narrow()) {
      const KeyedBucket* bucket = keyed->find({});  // absent while it has no flow: it would be full
      snapshot.depth = keyed->spec().depth();
      snapshot.credit = bucket != nullptr ? bucket->meter.credit_at(now) : *snapshot.depth;
    }
    const Uint128 late = keyed ? keyed->late_nanobits : late_nanobits;
    snapshot.late_bytes = {static_cast<std::uint64_t>(late / kNanobitsPerByte)};
    return snapshot;
  }

  LimitPolicy policy;
  BucketSpec spec;
  std::optional<KeyedBuckets> keyed;  ///< with `by`
  std::optional<Meter> meter;         ///< without
  ShareOrder waiting;                 ///< classes that lack its credit
  bool changed = false;               ///< the first of them is to be looked at
  Uint128 late_nanobits = 0;
  RateMeter rate;
  ByteCount told_arrived;  ///< by tell_stirred()
};

}  // namespace shaper
