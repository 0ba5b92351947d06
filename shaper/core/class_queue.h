// The queue of one class: its flows, the packets they hold, and which flow sends next. When the class itself may send
// is the scheduler's business.
//
// Order: deficit round robin among hosts, and among the flows of a host, fresh flows first (RFC 8290), with one change.
// There an emptied new flow moves to the old list, which makes a sparse flow wait a whole round when its gaps are
// shorter than a round. Here rounds are counted: a flow gets one quantum in a round of its host, and it is fresh while
// what is left of that covers its next packet. So a sparse flow never waits for bulk, and no flow gets more than its
// share. A round ends when whoever stands at the head of the old list already had a quantum in it. Fresh flows run
// their host into debt, by one quantum at most: then they too wait for the host's turn, so many flows do not make a
// host's share larger.
//
// A flow whose bucket of a key (`each`, limits with `by`) lacks credit leaves the round robin and sleeps at that
// bucket. An awake flow has what its head needs reserved in all such buckets, so it finds credit there when its turn
// comes, and a bucket wakes exactly the flows that it can serve: a key with a thousand flows costs no more than one
// flow.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "shaper/core/flow.h"
#include "shaper/core/limit.h"
#include "shaper/core/policy.h"
#include "shaper/core/snapshot.h"
#include "shaper/core/standing.h"

namespace shaper {

class ClassQueue {
 public:
  /// `limits` are those of the class. Buckets are full at first use, or have earned credit only since `empty_since`.
  ClassQueue(const Policy& policy, ClassIndex index, const Framing& framing, std::span<Limit* const> limits,
             Schedule& schedule, HashKey key, std::optional<Instant> empty_since, Instant now);
  ClassQueue(const ClassQueue&) = delete;
  ClassQueue& operator=(const ClassQueue&) = delete;

  // Flows come and go.
  void attach(Flow& flow, Instant now);
  void detach(Flow& flow);
  /// Whether nothing is given away when the idle `flow` is forgotten.
  [[nodiscard]] bool may_forget(const Flow& flow, Instant now) const;
  /// Whether host and buckets of the flow are still those that it would get now: its owner may have become known.
  [[nodiscard]] bool suits(const Flow& flow) const;

  // Packets come.
  /// Counts a packet of an attached flow in. False: it is policed, or comes too late from another class, and `out` has
  /// its verdict.
  [[nodiscard]] bool admit(Flow& flow, const HeldPacket& packet, Instant now, Verdicts& out);
  /// Whether nothing in the class stands in the way of an admitted packet.
  [[nodiscard]] bool is_open(const Flow& flow, ByteCount length) const;
  /// The packet departs at once: charges the class's part of the way.
  void pass_through(Flow& flow, const HeldPacket& packet, Instant now, Verdicts& out);
  /// The packet waits; others of its class may lose with it.
  void hold(Flow& flow, const HeldPacket& packet, Instant now, Verdicts& out);

  // Packets leave.
  /// The flow that sends next, if any is awake. What has waited too long is dropped on the way.
  [[nodiscard]] Flow* choose(Instant now, Verdicts& out);
  /// Whether the buckets of a chosen flow cover its head still: one that is too small for all promises may have served
  /// somebody else. If not, the flow sleeps there.
  [[nodiscard]] bool keeps_place(Flow& flow, Instant now, Verdicts& out);
  /// CoDel's word on the head of a chosen flow, which is about to leave.
  [[nodiscard]] Decision judge(Flow& flow, Instant now);
  void send_head(Flow& flow, Decision decision, Instant now, Verdicts& out);
  void drop_head(Flow& flow, DropReason reason, Instant now, Verdicts& out);
  /// A bucket of a key may cover some of the flows that sleep at it.
  static void wake_sleepers(KeyedBucket& bucket, Schedule& schedule, bool insists, Instant now, Verdicts& out);
  [[nodiscard]] Instant deadline(const Flow& flow) const { return flow.head->arrival + patience(flow); }

  /// The bucket of its own ceil, charged with the rest.
  [[nodiscard]] std::optional<Meter>& ceil() { return ceil_; }
  [[nodiscard]] const std::optional<Meter>& ceil() const { return ceil_; }
  [[nodiscard]] const std::optional<BucketSpec>& ceil_spec() const { return ceil_spec_; }
  /// Whether its packets may ever have to wait.
  [[nodiscard]] bool may_wait() const { return smallest_ || narrow_; }
  /// Whether super-packets are too long for the smallest rate on the flow's way and must be cut.
  [[nodiscard]] bool splits(const Flow& flow) const;

  // A change of policy: first the heir takes over counters and credit, then flows are moved, backlog and all.
  void inherit(ClassQueue& before, Instant now);
  void adopt(Flow& flow, Instant now, Verdicts& out);
  void hand_over(const Flow& flow) { in_packets_ -= flow.backlog_packets; }
  void take_over(const Flow& flow) { in_packets_ += flow.backlog_packets; }
  void forget_unused_buckets(Instant now);
  /// Counters and credit; flows come by attach() and adopt().
  template <typename Image>
  void carry(Image& image, Instant now);

  /// All buckets on the way of the flow's packets, but the link's.
  void meters_of(Flow& flow, std::vector<Meter*>& meters);
  /// The flow, which has come from elsewhere, has sent this much there, charged to the buckets of `paid`.
  void owe(Flow& flow, ByteCount sent, std::span<Meter* const> paid, Instant now);
  /// The flow goes elsewhere: appends what it holds to `packets`, as if that had never been here.
  void give_up(Flow& flow, std::vector<HeldPacket>& packets, Instant now, Verdicts& out);
  /// Drops up to `packets`, one after the other from whichever flow holds most then: too many are held altogether.
  void make_room(std::size_t packets, Instant now, Verdicts& out);
  /// Drops what the flow holds if a bucket on its way refuses it.
  void drop_refused(Flow& flow, Instant now, Verdicts& out);
  /// Lets all held packets of a flow go unmetered.
  void pass(Flow& flow, Instant now, Verdicts& out);
  void count_lost(const Verdict& verdict);
  void set_framing(const Framing& framing, Instant now);

  [[nodiscard]] ClassIndex index() const { return index_; }
  [[nodiscard]] const ClassPolicy& policy() const { return policy_; }
  [[nodiscard]] std::uint64_t backlog_packets() const { return backlog_packets_; }
  /// Where the policy has one bucket for each address: that of a flow, if it exists.
  [[nodiscard]] std::optional<FlowKey> shared_bucket(const FlowKey& flow) const;
  [[nodiscard]] ClassSnapshot snapshot(Instant now) const;

  /// Which kind of bucket that is, of those of its flows' keys.
  [[nodiscard]] Holder holder_of(const KeyedBucket& bucket) const;

  bool changed = false;  ///< it is among the changed ones of the schedule
  Standing standing;     ///< of the class

 private:
  using FreshHosts = IntrusiveList<Host, &Host::fresh_previous, &Host::fresh_next>;
  using OldHosts = IntrusiveList<Host, &Host::old_previous, &Host::old_next>;
  struct FatterHost {
    static bool before(const Host& a, const Host& b) { return a.backlog > b.backlog; }
    static std::uint32_t& place(Host& host) { return host.place_fattest; }
  };
  struct EarlierHead {
    static bool before(const Flow& a, const Flow& b);
    static std::uint32_t& place(Flow& flow) { return flow.place_by_arrival; }
  };

  void configure(const Framing& framing);
  [[nodiscard]] FlowKey host_key(const Flow& flow) const;
  void join_bucket(Flow& flow, KeyedBuckets& keyed, Instant now);
  void leave_bucket(KeyedBucket& bucket);
  void join_host(Flow& flow);
  void leave_host(Flow& flow);
  /// The longest that packets of the flow may wait.
  [[nodiscard]] Nanos patience(const Flow& flow) const;
  [[nodiscard]] CodelParameters codel_of(const Flow& flow) const;
  [[nodiscard]] bool conforms(const Flow& flow, ByteCount length) const;

  // Round robin (class_queue_order.cpp).
  [[nodiscard]] bool nothing_in_turn() const;
  [[nodiscard]] Flow* next_in_turn();
  [[nodiscard]] static Flow& next_of(Host& host, std::int64_t quantum);
  [[nodiscard]] bool is_fresh(const Flow& flow) const;
  void activate(Flow& flow, Instant now, Verdicts& out);
  void take_place(Flow& flow, bool resumes, Instant now, Verdicts& out);
  void enlist(Flow& flow, bool resumes, Instant now);
  void begin_hold(Flow& flow, Instant now) const;
  void delist(Flow& flow, Instant now);
  void relist(Host& host);
  [[nodiscard]] KeyedBucket* reserve(Flow& flow, bool resumes, Instant now);
  void release(Flow& flow);
  void sleep(Flow& flow, KeyedBucket& bucket, bool resumes, Instant now) const;
  static void set_alarm(KeyedBucket& bucket, Schedule& schedule);
  void wake_at_buckets_of(const Flow& flow, Instant now, Verdicts& out);
  void note_change();

  // Held packets (class_queue_packets.cpp).
  [[nodiscard]] bool is_refused(const Flow& flow) const;
  void append(Flow& flow, const HeldPacket& packet);
  HeldPacket take_head(Flow& flow);
  void count_backlog(Flow& flow, ByteCount before);
  void keep_bounds(Flow& flow, Instant now, Verdicts& out);
  void discard_head(Flow& flow, DropReason reason, Instant now, Verdicts& out);
  void leave(Flow& flow, const HeldPacket& packet, Decision decision, Instant now, Verdicts& out);
  void drop(Flow& flow, const HeldPacket& packet, DropReason reason, Instant now, Verdicts& out);

  // What the policy asks for.
  ClassPolicy policy_;
  ClassIndex index_;
  Direction direction_;
  std::optional<DataRate> smallest_;  // rate on the way of all its packets
  bool narrow_ = false;               // some of its flows obey limits that others do not
  std::optional<DataRate> total_;     // that all of them together cannot exceed
  bool splits_ = false;
  std::int64_t quantum_ = 0;
  ByteCount frame_;
  CodelParameters codel_;
  Nanos max_delay_{0};
  std::optional<ByteCount> most_backlog_;       // of the class
  std::optional<ByteCount> most_each_backlog_;  // of one `each` bucket

  // Buckets.
  Schedule& schedule_;
  std::optional<BucketSpec> ceil_spec_;
  std::optional<Meter> ceil_;
  std::optional<KeyedBuckets> each_;
  std::vector<KeyedBuckets*> keyed_;  // `each_` and those of limits with `by`
  std::vector<Meter*> limits_;        // without `by`

  // What waits.
  Host whole_;  // where hosts are not told apart
  std::unordered_map<FlowKey, Host, FlowKeyHash> hosts_;
  FreshHosts fresh_hosts_;
  OldHosts old_hosts_;
  IndexedHeap<Flow, EarlierHead> by_arrival_;  // awake flows of a class with `fair = "off"`
  std::uint32_t round_ = 1;
  IndexedHeap<Host, FatterHost> fattest_;
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
  SlidingSums<60, 1 + kDropReasons> recent_;  // packets: sent, and dropped by reason
  DelayCounts delay_counts_;
};

}  // namespace shaper
