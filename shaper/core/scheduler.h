// Which class sends next on a link, and when: rates of links, guarantees and borrowing, priorities, ceils, named
// limits.
//
// A class with something to send stands in exactly one place: it waits for its own ceil; or for a limit that it shares
// with others; or in its link's orders. What it needs of its limits is reserved while it stands at the link, so that it
// can go when the link has credit, and so that a limit does not stand idle because one of its links is slow.
//
// A link serves classes within their guarantee first: a guarantee is a bucket of its own, and the class is within it
// while that covers its next packet. What the link has beyond that is lent: to the lowest priority number first, and
// within a priority in proportion to the weights (rates; 1 % of the link for a class without one). Lent bytes are not
// charged to the guarantee. So nobody's guarantee starves because a higher priority borrows. Nor because one comes back
// with all that it has saved: what a class earns while it waits at the link is owed to it. All credit together never
// grows while classes within their guarantee wait, for the link is at least as fast as all of them; so in any time t in
// which a class waits at its link, it gets its rate x t but for what all guarantees of the link may have saved.
//
// All buckets on the way cover a packet when it departs, and all are charged then, never before.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "shaper/core/class_queue.h"
#include "shaper/core/limit.h"
#include "shaper/core/share_order.h"

namespace shaper {

struct Link;

/// What a class was promised.
struct Guarantee {
  BucketSpec spec;  ///< scaled down where the link has less than was promised
  TokenBucket bucket;
  ByteCount owed;  ///< the most that it saves beyond the depth while it waits for others on the link
  Instant waited;  ///< until when it last did

  /// Brings the credit of a class that waits at the link up to `now`.
  void wait(Instant now);
  /// The same for one that does not: what it was owed and has not used until it stopped waiting is gone.
  void rest(Instant now);
};

/// A class's place in a limit that it shares.
struct LimitSeat {
  Limit* limit;
  Seat seat;
};

/// A class with its places in the orders of its link and its limits.
struct ScheduledClass : Alarm {
  ScheduledClass(const Policy& policy, ClassIndex index, Link& of_link, const Framing& framing,
                 std::span<Limit* const> limits, Schedule& schedule, HashKey key, std::optional<Instant> empty_since,
                 Instant now);

  ClassQueue queue;
  Link& link;
  Seat lent;      ///< in the order of those that borrow
  Seat promised;  ///< in the order of those within their guarantee
  std::optional<Guarantee> guarantee;
  Instant due;                  ///< from when on its next packet is within the guarantee
  std::uint32_t place_due = 0;  ///< among those that are not yet
  std::vector<LimitSeat> limits;
  std::size_t reserved_limits = 0;  ///< of `limits`, those that hold a reservation of `reserved`
  ByteCount reserved;
  LimitSeat* waits_at = nullptr;
  Flow* next = nullptr;  ///< the flow that sends next, while the class stands at its link
  ByteCount borrowed;

  /// Takes over counters and credit.
  void inherit(ScheduledClass& before, Instant now);
  template <typename Image>
  void carry(Image& image, Instant now);
};

/// The rate of a link and the classes that could send on it.
struct Link : Alarm {
  Link() : Alarm(Of::link) {}

  struct SoonerDue {
    static bool before(const ScheduledClass& a, const ScheduledClass& b) { return a.due < b.due; }
    static std::uint32_t& place(ScheduledClass& cls) { return cls.place_due; }
  };

  Framing framing;
  std::optional<BucketSpec> spec;
  std::optional<Meter> meter;
  ShareOrder promised;
  ShareOrder lent;
  IndexedHeap<ScheduledClass, SoonerDue> due;
  bool changed = false;
  Uint128 late_nanobits = 0;
  std::uint64_t detoured_packets = 0;

  [[nodiscard]] bool has_waiting() const { return !lent.empty(); }
  [[nodiscard]] LinkSnapshot snapshot(LinkIndex index, Instant now) const;
  template <typename Image>
  void carry(Image& image);
};

class Scheduler {
 public:
  Scheduler(const Policy& policy, std::span<const std::uint32_t> mtus, HashKey key, std::optional<Instant> empty_since,
            Instant now);
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// An admitted packet departs at once or waits; others depart or lose with it.
  void arrive(ScheduledClass& cls, Flow& flow, const HeldPacket& packet, Instant now, Verdicts& out);
  /// Makes the buckets that the class shares deep enough for packets of `length`.
  static void admit(ScheduledClass& cls, ByteCount length);
  /// Everything that may depart by `now` does.
  void release(Instant now, Verdicts& out);
  /// Looks again at whatever has changed.
  void run(Instant now, Verdicts& out);
  [[nodiscard]] std::optional<Instant> next_departure() const;
  void departed(Instant at) { schedule_.departed(at); }
  /// A bucket of the limit has got a grant.
  void granted(Limit& limit, const FlowKey& key, Instant now, Verdicts& out);

  void set_mtu(LinkIndex link, std::uint32_t mtu, Instant now);
  /// Takes over the credit of links and limits that keep their names, and the storage of held packets. The classes of
  /// `before` hold no flows any more.
  void inherit(Scheduler& before, const Policy& old_policy, const Policy& policy, Instant now);
  /// Counters and credit of everything.
  template <typename Image>
  void carry(Image& image, Instant now);

  [[nodiscard]] const std::vector<std::unique_ptr<ScheduledClass>>& classes() const { return classes_; }
  [[nodiscard]] const std::vector<std::unique_ptr<Limit>>& limits() const { return limits_; }
  [[nodiscard]] const std::vector<std::unique_ptr<Link>>& links() const { return links_; }
  [[nodiscard]] HeldPackets& held() { return schedule_.held; }
  [[nodiscard]] ClassSnapshot snapshot(const ScheduledClass& cls, Instant now) const;
  /// What the packets of the class wait for, and those of a flow.
  [[nodiscard]] std::optional<HeldBy> held_by(const ScheduledClass& cls) const;
  [[nodiscard]] std::optional<HeldBy> held_by(const Flow& flow) const;
  /// Fills in what is to be said of that bucket, where the flow holds packets.
  void describe_holder(const Flow& flow, Instant now, HoldSnapshot& hold) const;

 private:
  void place(ScheduledClass& cls, Instant now, Verdicts& out);
  void take_out(ScheduledClass& cls, Instant now);
  [[nodiscard]] bool enters_limits(ScheduledClass& cls, ByteCount length, Instant now);
  [[nodiscard]] static bool lets_in(const Limit& limit, ByteCount length);
  void join_link(ScheduledClass& cls, ByteCount length, Instant now);
  void settle(Limit& limit, Instant now, Verdicts& out);
  void serve(Link& link, Instant now, Verdicts& out);
  [[nodiscard]] static ScheduledClass* first_of(Link& link, Instant now);
  [[nodiscard]] static bool limits_cover(ScheduledClass& cls, ByteCount length, Instant now);
  void depart(ScheduledClass& cls, Decision decision, Instant now, Verdicts& out);
  void charge(ScheduledClass& cls, ByteCount length, bool promised, Instant now);
  void changed(Limit& limit);
  void changed(Link& link);

  Schedule schedule_;
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<std::unique_ptr<Limit>> limits_;
  std::vector<std::unique_ptr<ScheduledClass>> classes_;
  std::vector<Limit*> changed_limits_;
  std::vector<Link*> changed_links_;
};

}  // namespace shaper
