// The queue of one class: who may depart, and who is next.
//
// Every packet obeys two buckets: the class's (all its flows together) and its flow's `each` bucket; both must cover
// it, and both are charged when it departs, never before. What does not conform waits in its flow's queue. The flow
// that sends is chosen at the moment of departure, so a small packet may use what was being saved for a large one.
//
// Order: deficit round robin with fresh flows first (RFC 8290), with one change. There an emptied new flow moves to the
// old list, which makes a sparse flow wait a whole round when its gaps are shorter than a round. Here rounds are
// counted: a flow gets one quantum a round, and it is fresh until that is used. So a sparse flow never waits for bulk,
// and no flow gets more than its share. A round ends when the flow at the head of the old list already had its quantum.
//
// A flow whose `each` bucket lacks credit leaves the round robin and sleeps at that bucket; the buckets with sleepers
// stand in a heap by the time at which their first sleeper is covered. One sleeper is woken at a time, and the next
// when the bucket still covers it: a key with a thousand flows costs no more than one flow.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "shaper/core/flow.h"
#include "shaper/core/held_packets.h"
#include "shaper/core/policy.h"
#include "shaper/core/snapshot.h"

namespace shaper {

class ClassQueue {
 public:
  /// Buckets are full at first use, or have earned credit only since `empty_since`.
  ClassQueue(const ClassPolicy& policy, ClassIndex index, Direction direction, const Framing& framing,
             HeldPackets& held, HashKey key, std::optional<Instant> empty_since, Instant now);

  void attach(Flow& flow, Instant now);
  void detach(Flow& flow);
  /// Whether nothing is given away when the idle `flow` is forgotten.
  [[nodiscard]] bool may_forget(const Flow& flow, Instant now) const;

  /// A packet of an attached flow: it departs, waits or is dropped, and others may depart or lose with it.
  void arrive(Flow& flow, const Packet& packet, const WireSize& size, Instant now, Verdicts& out);

  /// Everything that may depart by `now` does.
  void release(Instant now, Verdicts& out);
  [[nodiscard]] std::optional<Instant> next_departure() const;

  /// Whether it let packets go that departed() was not called for.
  [[nodiscard]] bool has_spent() const { return spent_ != ByteCount{}; }
  /// What it let go so far has left by `at`.
  void departed(Instant at);

  /// Whether super-packets are too long for the smallest rate and must be cut.
  [[nodiscard]] bool splits() const { return splits_; }

  // A change of policy: first the heir takes over counters and credit, then flows are moved, backlog and all.
  void inherit(const ClassQueue& before, Instant now);
  [[nodiscard]] std::vector<Flow*> waiting() const;  ///< flows that hold packets, in the order of service
  void adopt(Flow& flow, Instant now, Verdicts& out);
  void hand_over(const Flow& flow) { in_packets_ -= flow.backlog_packets; }
  void take_over(const Flow& flow) { in_packets_ += flow.backlog_packets; }
  void forget_unused_buckets();

  /// Drops up to `packets`, one after the other from whichever flow holds most then: too many are held altogether.
  void make_room(std::size_t packets, Instant now, Verdicts& out);

  /// Lets all held packets of a flow go unmetered.
  void pass(Flow& flow, Instant now, Verdicts& out);
  void count_lost(const Verdict& verdict);
  void set_framing(const Framing& framing, Instant now);

  [[nodiscard]] ClassIndex index() const { return index_; }
  [[nodiscard]] std::uint64_t backlog_packets() const { return backlog_packets_; }
  /// Where the policy has one bucket for each address: that of a flow, if it exists.
  [[nodiscard]] std::optional<FlowKey> shared_bucket(const FlowKey& flow) const;
  [[nodiscard]] ClassSnapshot snapshot(Instant now) const;

 private:
  struct EarlierWake {
    static bool before(const EachBucket& a, const EachBucket& b) { return a.wake < b.wake; }
    static std::uint32_t& place(EachBucket& bucket) { return bucket.place_asleep; }
  };
  struct FatterBucket {
    static bool before(const EachBucket& a, const EachBucket& b) { return a.backlog > b.backlog; }
    static std::uint32_t& place(EachBucket& bucket) { return bucket.place_fattest; }
  };

  void configure(const Framing& framing);
  [[nodiscard]] TokenBucket new_bucket(const BucketSpec& spec, Instant now) const;
  [[nodiscard]] FlowKey each_key(const FlowKey& key) const;

  // Meters.
  void admit(ByteCount length);
  void accrue_total(Instant now);
  void accrue(EachBucket& each, Instant now);
  [[nodiscard]] bool each_covers(const EachBucket& each, ByteCount length) const;
  [[nodiscard]] bool total_covers(ByteCount length) const { return !total_ || total_bucket_.covers(length); }
  void charge(EachBucket& each, ByteCount length);

  // Round robin.
  [[nodiscard]] bool nothing_in_turn() const { return fresh_.empty() && old_.empty(); }
  [[nodiscard]] Flow* next_in_turn();
  void activate(Flow& flow);
  void retire(Flow& flow);
  void sleep(Flow& flow);
  void wake_first(EachBucket& each);
  void settle(EachBucket& each);
  void enlist(Flow& flow, FlowState state);
  void delist(Flow& flow);

  // Held packets.
  void hold(Flow& flow, const HeldPacket& packet);
  HeldPacket take_head(Flow& flow);
  void count_backlog(Flow& flow, ByteCount before);
  void keep_bounds(EachBucket& each, Instant now, Verdicts& out);
  void drop_head(Flow& flow, DropReason reason, Instant now, Verdicts& out);
  void leave(Flow& flow, const HeldPacket& packet, Decision decision, Instant now, Verdicts& out);
  void drop(Flow& flow, const HeldPacket& packet, DropReason reason, Verdicts& out);

  // What the policy asks for.
  ClassPolicy policy_;
  ClassIndex index_;
  Direction direction_;
  std::optional<BucketSpec> total_;
  std::optional<BucketSpec> each_;
  bool splits_ = false;
  std::int64_t quantum_ = 0;
  Nanos max_delay_{0};
  std::optional<ByteCount> most_backlog_;       // of the class
  std::optional<ByteCount> most_each_backlog_;  // of one `each` bucket

  // What waits.
  HeldPackets& held_;
  std::optional<Instant> empty_since_;
  TokenBucket total_bucket_;
  std::unordered_map<FlowKey, EachBucket, FlowKeyHash> each_buckets_;
  EachBucket whole_;  // of a class without `each`
  ByteCount spent_;
  std::vector<EachBucket*> spent_each_;  // those with something spent
  FlowList fresh_;
  FlowList old_;
  std::uint32_t round_ = 1;
  IndexedHeap<EachBucket, EarlierWake> asleep_;
  IndexedHeap<EachBucket, FatterBucket> fattest_;
  std::optional<Instant> blocked_until_;  // the class's bucket covers the next in turn
  ByteCount backlog_;
  std::uint64_t backlog_packets_ = 0;

  // What was counted.
  std::uint32_t flows_ = 0;
  Traffic traffic_;
  std::uint64_t in_packets_ = 0;
  std::uint64_t lost_packets_ = 0;
  std::uint64_t passed_packets_ = 0;
  Uint128 late_nanobits_ = 0;
  RateMeter meter_;
  DelayHistogram delays_;
};

}  // namespace shaper
