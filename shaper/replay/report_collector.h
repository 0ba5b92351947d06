// What a report shows over time, gathered from the stream of events: packets that came, and their verdicts. Pure.
//
// Memory is bounded, however long the stream is: time in TimeBins, the largest flows alone, one entry for each packet
// that is held. What is no matter of time (totals, percentiles, flows) comes from the core itself, at the end.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "shaper/core/policy.h"
#include "shaper/core/statistics.h"
#include "shaper/core/verdict.h"
#include "shaper/replay/largest_flows.h"
#include "shaper/replay/time_bins.h"

namespace shaper {

/// A rate in force from `since` on; absent: none.
struct RateStep {
  Instant since;
  std::optional<DataRate> rate;
};

/// The rates of a link or a class in the policies that were in force.
using RateSteps = std::vector<RateStep>;

struct LinkHistory {
  std::string name;
  RateSteps limit;
};

struct ClassHistory {
  std::string link, name;
  RateSteps limit, guarantee;
  Series sent;     ///< wire bytes
  Series backlog;  ///< wire bytes x seconds that they were held, of packets that are held no more
  Series marked;   ///< packets, as all counts below
  std::array<Series, kDropReasons> drops;
  DelayHistogram delays;  ///< of those sent that waited
};

class ReportCollector {
 public:
  /// A policy is in force from now on: the first one, or another.
  void obeys(const Policy& policy, Instant now);
  void arrived(const Packet& packet, Instant now);
  /// The verdict of a packet that arrived; its class is one of the policy in force.
  void decided(const Verdict& verdict, Instant now);

  [[nodiscard]] const TimeBins& time() const { return time_; }
  [[nodiscard]] const std::vector<LinkHistory>& links() const { return links_; }
  /// Each class of every policy so far, one for each pair of link and name.
  [[nodiscard]] const std::vector<ClassHistory>& classes() const { return classes_; }
  /// Their `class_index` counts classes().
  [[nodiscard]] LargestFlows::Ranking flows(std::size_t most) const { return flows_.ranking(most); }
  [[nodiscard]] std::uint64_t arrivals() const { return arrivals_; }
  [[nodiscard]] std::uint64_t policies() const { return policies_; }
  [[nodiscard]] std::size_t held() const { return held_.size() + (latest_ ? 1 : 0); }

 private:
  struct HashId {
    std::size_t operator()(PacketId id) const { return (std::size_t{id.number} << 16) ^ id.queue; }
  };
  void reach(Instant now);
  [[nodiscard]] LargestFlows::Sender take_sender(PacketId id);
  void add_backlog(ClassHistory& of, const Verdict& verdict, Instant now);

  TimeBins time_{Instant{}};
  std::vector<LinkHistory> links_;
  std::vector<ClassHistory> classes_;
  std::vector<std::size_t> history_of_;  // by the class index of the policy in force
  LargestFlows flows_;
  std::optional<std::pair<PacketId, LargestFlows::Sender>> latest_;  // most packets are not held
  std::unordered_map<PacketId, LargestFlows::Sender, HashId> held_;
  std::uint64_t arrivals_ = 0;
  std::uint64_t policies_ = 0;
};

}  // namespace shaper
