// The buckets of one kind, one for each key: those of a class's `each`, or of a limit with `by`; or the one of a limit
// that is for some flows only. A bucket exists while a flow belongs to it; a flow is forgotten only when nothing is
// given away by that.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "shaper/core/flow.h"
#include "shaper/core/policy.h"

namespace shaper {

/// A packet of the flow on that link, as far as it is known what all of them have in common; mark and DSCP are those of
/// the latest.
[[nodiscard]] Packet packet_like(const Flow& flow, LinkIndex link);

/// What the flows of one bucket have in common where that is addresses; the rest of the key is zero. Mark and DSCP are
/// the sender's choice and must not multiply its buckets.
[[nodiscard]] FlowKey bucket_key(const KeyPolicy& by, const FlowKey& flow, Direction direction);

/// Whose bucket it is by such a key of EachBy::user; nothing: of those whose user is not known.
[[nodiscard]] std::optional<std::uint32_t> user_of_bucket(const FlowKey& key);

/// Those who grant bear so many buckets of one limit. Flows of further keys share one more, whose key no flow has.
inline constexpr std::size_t kMostGrantedKeys = 4096;
inline constexpr FlowKey kOtherKeys{.link = std::numeric_limits<LinkIndex>::max()};

/// Super-packets take longer than about 1 ms below this rate, and are cut.
inline constexpr DataRate kSplitBelow{500'000'000};

class KeyedBuckets {
 public:
  /// For buckets that are for some flows of a class only: what the class does not know of these.
  struct Narrow {
    std::span<const Match> match;  ///< of which one holds for them
    bool splits;                   ///< super-packets are too long for the rate
    CodelParameters codel;
    Nanos max_delay;  ///< where the policy says nothing
  };

  /// Buckets are full at first use, or have earned credit only since `empty_since`.
  KeyedBuckets(const KeyPolicy& by, const BucketSpec& spec, HashKey key, std::optional<Instant> empty_since)
      : by_(by), spec_(spec), empty_since_(empty_since), buckets_(0, FlowKeyHash{key}) {}
  KeyedBuckets(const KeyedBuckets&) = delete;
  KeyedBuckets& operator=(const KeyedBuckets&) = delete;

  /// They are for flows only of which one of `match` holds, which must live as long.
  void take_only(std::span<const Match> match);
  [[nodiscard]] const std::optional<Narrow>& narrow() const { return narrow_; }
  [[nodiscard]] bool takes(const Flow& flow, Direction direction) const;

  /// From now on they spend grants.
  void use_grants() { grants_ = true; }
  [[nodiscard]] bool uses_grants() const { return grants_; }

  [[nodiscard]] FlowKey key_of(const Flow& flow, Direction direction) const;
  [[nodiscard]] bool contains(const FlowKey& key) const { return buckets_.contains(key); }
  void erase(const FlowKey& key) { buckets_.erase(key); }
  [[nodiscard]] KeyedBucket* find(const FlowKey& key);
  [[nodiscard]] const KeyedBucket* find(const FlowKey& key) const;
  /// The bucket of that key, made if there is none; or that of kOtherKeys.
  KeyedBucket& at(const FlowKey& key, Instant now);

  /// A packet came to `bucket`, one of them.
  void stir(KeyedBucket& bucket) {
    if (grants_ && !std::exchange(bucket.stirred, true)) stirred_.push_back(bucket.key);
  }
  /// Calls `told` with the key of each bucket that packets came to since the last call.
  void tell_stirred(auto&& told) {
    for (const FlowKey& key : stirred_) {
      KeyedBucket* bucket = find(key);
      if (bucket == nullptr || !std::exchange(bucket->stirred, false)) continue;
      told(key);
    }
    stirred_.clear();
  }

  void admit(ByteCount length) { spec_.admit(length); }
  /// Another rate or depth.
  void change(const BucketSpec& spec, Instant now);

  /// Takes over the buckets of `before`, which has the same `by`.
  void inherit(KeyedBuckets& before, Instant now);
  template <typename Image>
  void carry(Image& image, Instant now);
  /// Forgets those without a flow, but for those that are kept.
  void forget_unused(Instant now);
  /// Flows change their owner: a bucket that the last flow has left stays until nothing is given away by that.
  /// One that spends grants has nothing to give away.
  [[nodiscard]] bool keeps_unused() const { return is_of_owner(by_.by) && !grants_; }

  [[nodiscard]] const KeyPolicy& by() const { return by_; }
  [[nodiscard]] const BucketSpec& spec() const { return spec_; }
  [[nodiscard]] std::size_t size() const { return buckets_.size(); }
  /// Flows that share the bucket of kOtherKeys.
  [[nodiscard]] std::uint32_t other_flows() const {
    const KeyedBucket* bucket = find(kOtherKeys);
    return bucket == nullptr ? 0 : bucket->flows;
  }
  [[nodiscard]] auto begin() const { return buckets_.begin(); }
  [[nodiscard]] auto end() const { return buckets_.end(); }

  Uint128 late_nanobits = 0;
  RateMeter rate;

 private:
  static constexpr std::size_t kFirstSweep = 64;

  KeyPolicy by_;
  BucketSpec spec_;
  bool grants_ = false;
  std::optional<Narrow> narrow_;
  std::optional<Instant> empty_since_;
  std::unordered_map<FlowKey, KeyedBucket, FlowKeyHash> buckets_;
  std::vector<FlowKey> stirred_;
  std::size_t sweep_at_ = kFirstSweep;  // so many buckets
};

}  // namespace shaper
