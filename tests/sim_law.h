// The rate law, checked from outside over every window of time: for links, classes, `each` and limits (sim_meter.h).
//
// Which buckets a packet has on its way, and what the packets of one bucket have in common, is worked out here without
// the core.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "shaper/core/classifier.h"
#include "shaper/core/shaper.h"
#include "tests/sim_meter.h"

namespace shaper::sim {

using BucketKey = std::tuple<Address, Address, std::uint16_t, std::uint16_t, Family, std::uint8_t>;

/// What packets of one bucket have in common.
inline BucketKey bucket_key(const Headers& headers, const KeyPolicy& policy, Direction direction) {
  if (policy.by == EachBy::all) return {};
  if (policy.by == EachBy::flow) {
    return {headers.source,           headers.destination, headers.source_port,
            headers.destination_port, headers.family,      headers.protocol};
  }
  const bool egress = direction == Direction::egress;
  const bool source = policy.by == EachBy::source || policy.by == (egress ? EachBy::local : EachBy::remote);
  const unsigned bits = headers.family == Family::ipv4 ? policy.bits_ipv4 : policy.bits_ipv6;
  Address address = source ? headers.source : headers.destination;
  for (unsigned bit = bits; bit < 128; ++bit) {
    std::uint8_t& byte = address[bit / 8];
    byte = static_cast<std::uint8_t>(byte & ~(0x80U >> (bit % 8)));
  }
  return {address, {}, 0, 0, headers.family, 0};
}

/// The same for a key that the core names in a demand or a grant.
inline BucketKey bucket_key(const FlowKey& key) {
  return {key.source, key.destination, key.source_port, key.destination_port, key.family, key.protocol};
}

/// Whether the packet is one of those that the limit is for.
inline bool obeys(const Packet& packet, const LimitPolicy& limit, Direction direction) {
  const auto holds_for = [&](const Match& match) { return holds(match, packet, direction) == Holds::yes; };
  return limit.match.empty() || std::any_of(limit.match.begin(), limit.match.end(), holds_for);
}

/// All buckets of a policy. Below kManyFlows flows may have to share buckets of a key: only totals are checked then.
class RateLaw {
 public:
  static constexpr std::uint32_t kManyFlows = 1'000;

  /// `frames`: one full frame of each link.
  RateLaw(const Policy& policy, std::vector<ByteCount> frames, std::optional<Instant> empty_since, Instant now)
      : policy_{policy},
        knows_keys_{policy.max_flows >= kManyFlows},
        frames_{std::move(frames)},
        largest_frames_{frames_},
        empty_since_{empty_since},
        links_(policy.links.size()),
        classes_(policy.classes.size()),
        limits_(policy.limits.size()) {
    make_totals(now);
  }

  /// The law of a policy that follows another one: whoever keeps his name may keep his depth, but not what he saved.
  RateLaw(const Policy& policy, const RateLaw& before, Instant now) : RateLaw(policy, before.frames_, now, now) {
    follows_ = true;
    knows_keys_ = knows_keys_ && before.knows_keys_;
    largest_frames_ = before.largest_frames_;
    for (std::size_t i = 0; i < links_.size(); ++i) links_[i].largest = before.links_[i].largest;
    keep_names(classes_, policy_.classes, before.classes_, before.policy_.classes);
    keep_names(limits_, policy_.limits, before.limits_, before.policy_.limits);
    for (std::size_t i = 0; i < limits_.size(); ++i) {
      const auto same = position(before.policy_.limits, policy_.limits[i]);
      if (!same || before.policy_.limits[*same].by != policy_.limits[i].by) continue;
      limits_[i].wallets = before.limits_[*same].wallets;
      for (auto& [key, wallet] : limits_[i].wallets) wallet.forget_debt();
    }
    may_be_deeper();
  }

  /// The link's frames have become larger or smaller: a bucket never becomes less deep by that.
  void set_frame(LinkIndex link, ByteCount frame, Instant now) {
    frames_[link] = frame;
    largest_frames_[link] = std::max(largest_frames_[link], frame);
    if (links_[link].total) links_[link].total->seen(frame, now);
    for (ClassIndex index = 0; index < classes_.size(); ++index) {
      if (policy_.classes[index].link == link) see(classes_[index], frame, now);
    }
    for (Shared& limit : limits_) see(limit, frame, now);
  }

  /// A packet of this class has arrived.
  void seen(ClassIndex index, const Packet& packet, ByteCount bytes, Instant now) {
    Shared& link = links_[policy_.classes[index].link];
    link.largest = std::max(link.largest, bytes);
    if (link.total) link.total->seen(bytes, now);
    see(classes_[index], bytes, now);
    const Direction direction = policy_.links[policy_.classes[index].link].direction;
    for (const LimitIndex limit : policy_.classes[index].limits) {
      if (obeys(packet, policy_.limits[limit], direction)) see(limits_[limit], bytes, now);
    }
  }

  /// A packet of this class may have been there before this policy came.
  void may_have_seen(ClassIndex index, ByteCount bytes) {
    const auto larger = [bytes](Shared& shared) { shared.largest = std::max(shared.largest, bytes); };
    larger(links_[policy_.classes[index].link]);
    larger(classes_[index]);
    for (const LimitIndex limit : policy_.classes[index].limits) larger(limits_[limit]);
    may_be_deeper();
  }

  /// A packet departs. The name of the bucket that it breaks, or nothing.
  [[nodiscard]] std::string charge(ClassIndex index, const Packet& packet, Instant when, ByteCount bytes) {
    std::string broken;
    for (const Bucket& bucket : path(index, packet, when)) {
      if (!bucket.meter->charge(when, bytes) && broken.empty())
        broken = bucket.kind + (" of class " + policy_.classes[index].name);
    }
    return broken;
  }

  /// Takes what a packet that may leave now costs from the grants of its cluster limits: the name of one that has
  /// nothing left. A grant is spent when that is decided.
  [[nodiscard]] std::string pay(ClassIndex index, const Packet& packet, Instant decided, ByteCount bytes) {
    std::string broken;
    if (!knows_keys_) return broken;
    for (const LimitIndex limit : policy_.classes[index].limits) {
      Wallet* const paid = wallet(limit, index, packet);
      if (paid != nullptr && !paid->charge(decided, bytes)) broken = policy_.limits[limit].name;
    }
    return broken;
  }

  struct Bucket {
    Meter* meter = nullptr;
    const char* kind = "";
    bool shared = false;  ///< a limit or a key: who waits elsewhere may have what it needs of it set aside
  };

  /// All buckets that must cover a packet of this class, but those of cluster limits.
  [[nodiscard]] std::vector<Bucket> path(ClassIndex index, const Packet& packet, Instant now) {
    const ClassPolicy& policy = policy_.classes[index];
    std::vector<Bucket> path;
    if (links_[policy.link].total) path.push_back({&*links_[policy.link].total, "the link"});
    if (policy.over != Over::count) {
      if (classes_[index].total) path.push_back({&*classes_[index].total, "the total"});
      if (policy.each && knows_keys_) path.push_back({&each(index, packet, now), "an each bucket", true});
    }
    for (const LimitIndex limit : policy.limits) {
      const LimitPolicy& rule = policy_.limits[limit];
      if (rule.scope == Scope::cluster || !obeys(packet, rule, policy_.links[policy.link].direction)) continue;
      Shared& shared = limits_[limit];
      if (shared.total) path.push_back({&*shared.total, "a limit", true});
      if (rule.by && knows_keys_) path.push_back({&keyed(limit, index, packet, now), "a key", true});
    }
    return path;
  }

  [[nodiscard]] bool waits_for_grants(ClassIndex index) const {
    const auto& limits = policy_.classes[index].limits;
    return std::any_of(limits.begin(), limits.end(),
                       [this](LimitIndex limit) { return policy_.limits[limit].scope == Scope::cluster; });
  }

  /// A limit that is gone, or that is no cluster's, takes no grants.
  void granted(const Grant& grant, Instant now) {
    if (grant.to.limit >= limits_.size() || policy_.limits[grant.to.limit].scope != Scope::cluster) return;
    wallet(grant.to.limit, grant.to.key).grant(grant.bytes, grant.valid_until, now);
  }
  Wallet& wallet(LimitIndex limit, const FlowKey& key) { return limits_[limit].wallets[bucket_key(key)]; }

  [[nodiscard]] const std::optional<Meter>& total(ClassIndex index) const { return classes_[index].total; }
  [[nodiscard]] const std::optional<Meter>& link(LinkIndex index) const { return links_[index].total; }
  [[nodiscard]] const std::optional<Meter>& limit(LimitIndex index) const { return limits_[index].total; }

 private:
  struct Shared {
    ByteCount largest;       // packet that may have made it deeper
    ByteCount sure_largest;  // packet that has
    std::optional<Meter> total;
    std::map<BucketKey, Meter> keys;      // `each` of a class, keys of a limit
    std::map<BucketKey, Wallet> wallets;  // of a cluster limit
  };

  static bool is_same(const ClassPolicy& a, const ClassPolicy& b) { return a.name == b.name && a.link == b.link; }
  static bool is_same(const LimitPolicy& a, const LimitPolicy& b) { return a.name == b.name; }

  template <typename Wanted>
  static std::optional<std::size_t> position(const std::vector<Wanted>& policies, const Wanted& wanted) {
    for (std::size_t i = 0; i < policies.size(); ++i) {
      if (is_same(policies[i], wanted)) return i;
    }
    return std::nullopt;
  }

  template <typename Policies>
  static void keep_names(std::vector<Shared>& now, const Policies& names, const std::vector<Shared>& before,
                         const Policies& earlier) {
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (const auto same = position(earlier, names[i])) now[i].largest = before[*same].largest;
    }
  }

  void make_totals(Instant now) {
    for (std::size_t i = 0; i < links_.size(); ++i) {
      if (const auto rate = policy_.links[i].rate) {
        links_[i].total.emplace(*rate, frames_[i], kDefaultBurst, empty_since_, now);
      }
    }
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      const ClassPolicy& policy = policy_.classes[i];
      if (policy.limit()) {
        classes_[i].total.emplace(*policy.limit(), frames_[policy.link], policy.burst, empty_since_, now);
      }
    }
    for (LimitIndex i = 0; i < limits_.size(); ++i) {
      const LimitPolicy& policy = policy_.limits[i];
      if (policy.by || policy.scope == Scope::cluster) continue;
      limits_[i].total.emplace(policy.rate, largest(frames_), policy.burst, empty_since_, now);
    }
  }

  static ByteCount largest(const std::vector<ByteCount>& frames) {
    return *std::max_element(frames.begin(), frames.end());
  }

  static void see(Shared& shared, ByteCount bytes, Instant now) {
    shared.largest = std::max(shared.largest, bytes);
    shared.sure_largest = std::max(shared.sure_largest, bytes);
    if (shared.total) shared.total->seen(bytes, now);
    for (auto& [key, meter] : shared.keys) meter.seen(bytes, now);
  }

  void may_be_deeper() {
    for (std::size_t i = 0; i < links_.size(); ++i) may_be_deeper(links_[i], largest_frames_[i]);
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      may_be_deeper(classes_[i], largest_frames_[policy_.classes[i].link]);
    }
    for (Shared& limit : limits_) {
      may_be_deeper(limit, largest(largest_frames_));
    }
  }

  static void may_be_deeper(Shared& shared, ByteCount frame) {
    shared.largest = std::max(shared.largest, frame);
    if (shared.total) shared.total->may_have_seen(shared.largest);
    for (auto& [key, meter] : shared.keys) meter.may_have_seen(shared.largest);
  }

  /// Once a frame was that large, buckets that are made later are as deep; unless another policy has come since.
  [[nodiscard]] const std::vector<ByteCount>& frames_of_keys() const { return follows_ ? frames_ : largest_frames_; }

  Meter& each(ClassIndex index, const Packet& packet, Instant now) {
    const ClassPolicy& policy = policy_.classes[index];
    const BucketKey key = bucket_key(packet.headers, *policy.each, policy_.links[policy.link].direction);
    return meter(classes_[index], key, {policy.each->rate, frames_of_keys()[policy.link], policy.each->burst}, now);
  }

  Meter& keyed(LimitIndex index, ClassIndex cls, const Packet& packet, Instant now) {
    const LimitPolicy& limit = policy_.limits[index];
    const Direction direction = policy_.links[policy_.classes[cls].link].direction;
    return meter(limits_[index], bucket_key(packet.headers, *limit.by, direction),
                 {limit.rate, largest(frames_of_keys()), limit.burst}, now);
  }

  struct Size {
    DataRate rate;
    ByteCount frame;
    Burst burst;
  };

  Meter& meter(Shared& shared, const BucketKey& key, const Size& size, Instant now) {
    // One that an earlier policy may have had is there already, and what it has is not known.
    const std::optional<Instant> empty_since = follows_ ? std::optional{now} : empty_since_;
    const auto [found, made] = shared.keys.try_emplace(key, size.rate, size.frame, size.burst, empty_since, now);
    if (made) {
      found->second.seen(shared.sure_largest, now);
      found->second.may_have_seen(std::max(shared.largest, largest(largest_frames_)));
    }
    return found->second;
  }

  [[nodiscard]] Wallet* wallet(LimitIndex index, ClassIndex cls, const Packet& packet) {
    const LimitPolicy& limit = policy_.limits[index];
    if (limit.scope != Scope::cluster) return nullptr;
    if (!limit.by) return &wallet(index, FlowKey{});
    const Direction direction = policy_.links[policy_.classes[cls].link].direction;
    return &limits_[index].wallets[bucket_key(packet.headers, *limit.by, direction)];
  }

  Policy policy_;
  bool knows_keys_;  // no flow shares what is another's, also not since an earlier policy
  std::vector<ByteCount> frames_;
  std::vector<ByteCount> largest_frames_;
  std::optional<Instant> empty_since_;
  bool follows_ = false;  // another policy
  std::vector<Shared> links_;
  std::vector<Shared> classes_;
  std::vector<Shared> limits_;
};

}  // namespace shaper::sim
