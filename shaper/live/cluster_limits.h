// The limits over several hosts of the policy in force, as the packet loop's thread sees them: each bucket has a Lease,
// which says what to ask Redis and what the core may spend; somebody else carries the asks and brings the answers.
//
// Nothing here waits: without answers each bucket goes by its limit's `without_redis`.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
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
  /// host's name.
  void obey(const Policy& policy, const ClusterPolicy& cluster, Shaper& shaper);
  /// There are none, or another process goes on with them.
  void stop();

  void on_outcomes(std::string_view text);
  void on_connected();

  /// The limits and the way to Redis; nothing: there are none.
  [[nodiscard]] std::optional<ClusterReport> report() const;

 private:
  struct Bucket {
    Lease lease;
    LimitKey key;
    std::uint64_t sequence = 0;  // of the latest ask
    Instant sent;
    LeaseAnswer answer;  // the latest
    bool refuses = false;
    bool seen = false;
  };

  [[nodiscard]] ClusterLimitReport report_on(LimitIndex index) const;
  void tick();
  void follow(const Demand& demand, Instant now, LeaseAsks& asks);
  [[nodiscard]] Bucket& bucket_of(const LimitKey& key, Instant now);
  [[nodiscard]] LeasePolicy policy_of(const LimitKey& key) const;
  [[nodiscard]] std::string name_of(const LimitKey& key) const;

  PacketLoop& packets_;
  std::function<void(const LeaseAsks&)> ask_;
  Timer timer_;
  Shaper* shaper_ = nullptr;  // nothing: there are no such limits
  std::vector<LimitPolicy> limits_;
  ClusterPolicy cluster_;
  RoundTrip round_trip_;
  std::optional<LeaseReason> trouble_;     // with all asks since the last answer
  std::map<std::string, Bucket> buckets_;  // by name
  std::vector<Demand> demands_;
};

}  // namespace shaper
