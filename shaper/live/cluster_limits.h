// The limits over several hosts of the policy in force, as the packet loop's thread sees them: each bucket has a Lease,
// which says what to ask Redis and what the core may spend; somebody else carries the asks and brings the answers.
//
// Nothing here waits: without answers each bucket goes by its limit's `without_redis`. Buckets at rest cost nothing:
// they are looked at when packets come, or their lease wants it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "shaper/cluster/lease.h"
#include "shaper/cluster/round_trip.h"
#include "shaper/core/shaper.h"
#include "shaper/live/event_loop.h"
#include "shaper/live/lease_messages.h"
#include "shaper/live/packet_loop.h"
#include "shaper/live/timer.h"
#include "shaper/model/config.h"
#include "shaper/model/report.h"

namespace shaper {

class ClusterLimits {
 public:
  /// `ask` carries asks away. Throws std::system_error.
  ClusterLimits(EventLoop& loop, PacketLoop& packets, std::function<void(const LeaseAsks&)> ask);

  /// The limits of `policy`, which is in force now in `shaper`; buckets that stay keep their leases. `cluster` has this
  /// host's name. Where somebody ordered that, the policy's rate and burst are to be in force on all hosts; else those
  /// that are there go on, as with a host that starts.
  void obey(const Policy& policy, const ClusterPolicy& cluster, Shaper& shaper, bool ordered);
  /// There are none, or another process goes on with them.
  void stop();

  void on_outcomes(std::string_view text);
  /// What other hosts have spent.
  void on_spent(std::string_view text);
  void on_connected();
  /// A call had to bring the script along.
  void on_no_script() { ++no_script_; }

  /// The limits and the way to Redis; nothing: there are none.
  [[nodiscard]] std::optional<ClusterReport> report() const;

 private:
  struct Bucket {
    Lease lease;
    LimitKey key;
    std::string name;
    std::string limit;  // its name
    Demand demand{};    // the latest
    ByteCount sent_bytes{};
    std::uint64_t sequence = 0;  // of the latest ask
    DataRate want{};             // of that
    Instant sent{};
    std::optional<LeaseAnswer> answer{};  // the latest
    Instant answered{};
    unsigned taken = 0;  // answers since the connection that found another incarnation of this host
    bool refuses = false;
    bool active = false;  // in active_
  };
  struct Before {
    bool operator()(const LimitKey& a, const LimitKey& b) const {
      return std::tuple(a.limit, a.key.words()) < std::tuple(b.limit, b.key.words());
    }
  };
  /// Rate and burst of a limit on all hosts, by the newest version that an answer told of.
  struct InForce {
    std::uint64_t config = 0;
    DataRate rate;
    ByteCount burst;
    std::uint64_t ours = 0;  // the version of this host's file
  };

  void tick();
  void activate(Bucket& bucket);
  void follow(Bucket& bucket, const Demand& demand, Instant now, LeaseAsks& asks);
  void sweep(Instant now);
  void forget(const Bucket& bucket);
  void agree(const LimitPolicy& limit, bool ordered);
  void learn(const Bucket& bucket, const LeaseAnswer& answer);
  void on_answer(Bucket& bucket, const LeaseOutcome& outcome, Instant now);
  [[nodiscard]] Bucket& bucket_of(const LimitKey& key, Instant now);
  [[nodiscard]] LeasePolicy policy_of(const LimitKey& key) const;
  [[nodiscard]] std::string name_of(const LimitKey& key) const;

  // For those who look (cluster_report.cpp).
  static void add_counters(ClusterLimitReport& limit, const Bucket& bucket);
  void add(ClusterLimitReport& limit, const Bucket& bucket, Instant now) const;
  [[nodiscard]] std::vector<ClusterLimitReport> begin_reports() const;
  [[nodiscard]] bool mismatch(const LimitPolicy& limit) const;
  [[nodiscard]] bool namesake_seen() const;
  [[nodiscard]] std::vector<std::string> warnings(const std::vector<ClusterLimitReport>& limits) const;
  void log_warnings(Instant now);

  PacketLoop& packets_;
  std::function<void(const LeaseAsks&)> ask_;
  Timer timer_;
  Shaper* shaper_ = nullptr;  // nothing: there are no such limits
  std::vector<LimitPolicy> limits_;
  ClusterPolicy cluster_;
  RoundTrip round_trip_;
  std::optional<LeaseReason> trouble_;          // with all asks since the last answer
  std::map<std::string, InForce> in_force_;     // by the limit's name
  std::map<std::string, Bucket> buckets_;       // by name
  std::map<LimitKey, Bucket*, Before> by_key_;  // the same
  std::vector<Bucket*> active_;                 // those that are not at rest
  bool full_ = false;                           // the latest call had no room for more of them
  LimitKey swept_;                              // where the search for those that are gone is
  std::vector<LimitKey> stirred_;               // for tick()

  std::map<std::string, ClusterLimitReport> gone_;  // what was counted in buckets that are gone, by the limit's name
  NamedCounts calls_;
  std::uint64_t connects_ = 0, no_script_ = 0, replays_ = 0, stale_ = 0;
  std::optional<Nanos> clock_offset_;
  std::optional<Instant> namesake_;  // when another host of this name was last seen
  std::set<std::string> logged_;     // warnings that hold
  Instant log_at_;
};

}  // namespace shaper
