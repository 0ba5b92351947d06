// What `shaper status --json` and `shaper flows --json` say, as structs, and their way to JSON and back.
//
// The daemon (and a replay) fills the structs from the core's snapshots and writes JSON; the command line reads that
// JSON and prints tables for people (tables.h). Keys come in a fixed order, `null` stands for what is not there, and
// every string is escaped. Rates are bits per second, measured over the last second; times in JSON are whole
// microseconds, rounded to the nearest.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "shaper/core/policy.h"
#include "shaper/core/snapshot.h"

namespace shaper {

enum class Mode : std::uint8_t {
  shaping,
  bypassed,  ///< no daemon: traffic flows unshaped
  blocked,   ///< no daemon, and without_daemon = "block": traffic is dropped
};

enum class RulesStatus : std::uint8_t {
  present,
  missing,
  foreign,  ///< chains of our name that we did not make
};

/// Counts of packets (frames on the wire) by DropReason.
using DropCounts = std::array<std::uint64_t, kDropReasons>;

/// What packets wait for.
struct HeldReport {
  std::string bucket;  ///< of what: "each", "class", "limit", "cluster" or "link"
  std::string name;    ///< of the class, the limit or the link
};

struct LinkReport {
  std::string name;
  std::string interface;
  Direction direction = Direction::egress;
  std::optional<DataRate> limit;
  DataRate rate;
  std::uint64_t sent_packets = 0;
  ByteCount sent_bytes;
  ByteCount wire_bytes;
  std::uint64_t dropped_packets = 0;
  std::uint64_t backlog_packets = 0;
  ByteCount backlog_bytes;
  WithoutDaemon without_daemon = WithoutDaemon::pass;
  std::optional<ByteCount> credit;  ///< of the link's bucket; absent with its limit
  std::optional<ByteCount> depth;
  ByteCount late_bytes;
};

struct EachReport {
  std::string by;
  DataRate limit;
};

struct ClassReport {
  std::string name;
  std::string link;
  std::optional<DataRate> guarantee;  ///< in force
  std::optional<DataRate> limit;      ///< absent: what the link has
  DataRate rate;
  std::optional<ByteCount> burst;
  std::uint64_t sent_packets = 0;
  ByteCount sent_bytes;
  ByteCount wire_bytes;
  std::uint64_t dropped_packets = 0;
  ByteCount dropped_bytes;
  DropCounts drops{};
  std::uint64_t marked_packets = 0;
  std::uint64_t backlog_packets = 0;
  ByteCount backlog_bytes;
  std::optional<ByteCount> credit;
  ByteCount borrowed;
  ByteCount late_bytes;
  std::uint64_t lost_packets = 0;
  std::uint64_t passed_packets = 0;
  std::uint64_t in_packets = 0;
  std::uint64_t flows = 0;
  DelaySummary delay;
  std::optional<EachReport> each;
  std::uint64_t priority = kDefaultPriority;
  std::optional<ByteCount> depth;
  std::optional<Nanos> wait;          ///< of a full frame that came now, for the class's bucket
  std::optional<HeldReport> held_by;  ///< absent: nothing waits, or flows wait for buckets of their own
  DelayCounts delay_counts;
};

/// A named limit.
struct LimitReport {
  std::string name;
  std::optional<std::uint64_t> id;  ///< of a live limit
  DataRate limit;
  DataRate rate;
  Scope scope = Scope::host;
  std::string state = "active";
  std::optional<ByteCount> credit;  ///< absent with `by`: each key has a bucket of its own
  std::optional<std::string> expires;
  std::optional<std::string> by;
  std::uint64_t keys = 0;  ///< buckets that exist
  std::optional<ByteCount> depth;
  ByteCount late_bytes;
  std::uint64_t other_flows = 0;        ///< of more keys than there may be: they share one bucket
  std::optional<std::string> selector;  ///< of a live limit: the flows that it is for
  std::optional<std::string> strategy;  ///< of a limit over several hosts
  std::optional<Nanos> wait;            ///< of such a limit: as in ClusterLimitReport
  ByteCount wire_bytes;                 ///< sent by all buckets together
};

/// One kernel queue.
struct QueueReport {
  std::uint16_t number = 0;
  std::uint64_t held = 0;
  std::uint64_t kernel_dropped = 0;  ///< the queue was full
  std::uint64_t socket_dropped = 0;  ///< our socket was full
  std::uint64_t lost_verdicts = 0;   ///< the kernel had cleared the packet already
  std::uint64_t split_packets = 0;   ///< sent from here to the split queue
};

/// What came of the search for owners of flows.
struct OwnersReport {
  std::uint64_t found = 0;    ///< answers
  std::uint64_t late = 0;     ///< flows that were taken for unknown, for want of an answer in time
  std::uint64_t unasked = 0;  ///< times that nobody was asked, for too many answers were awaited
  std::vector<OwnerTotal> totals;
};

struct StatusReport {
  std::string version;
  Mode mode = Mode::shaping;
  std::vector<LinkReport> links;
  std::vector<ClassReport> classes;
  std::vector<QueueReport> queues;
  std::vector<LimitReport> limits;
  std::optional<RulesStatus> rules;  ///< absent: nothing was asked (a replay)
  std::vector<std::string> warnings;
  std::uint32_t mark_mask = kDefaultMarkMask;  ///< the bit of the fwmark that is ours
  std::vector<std::string> advice;             ///< what to change so that less is lost
  std::array<Nanos, kDelayBounds.size()> delay_bounds = kDelayBounds;
  std::optional<OwnersReport> owners;  ///< absent: the policy asks for none
};

struct FlowReport {
  std::string class_name;
  std::string link;
  std::string family;    ///< "ipv4", "ipv6" or "other"
  std::string protocol;  ///< "tcp", "udp", "icmp" … or the number
  std::string source;
  std::optional<std::uint16_t> source_port;
  std::string destination;
  std::optional<std::uint16_t> destination_port;
  std::optional<std::string> user;
  std::optional<std::string> owner;
  std::uint64_t packets = 0;
  ByteCount bytes;
  ByteCount wire_bytes;
  std::uint64_t dropped_packets = 0;
  ByteCount dropped_bytes;
  DropCounts drops{};
  std::uint64_t marked_packets = 0;
  DataRate rate;
  std::uint64_t backlog_packets = 0;
  ByteCount backlog_bytes;
  DelaySummary delay;
  std::string first_seen;  ///< RFC 3339, UTC
  std::string last_seen;
  FlowActivity activity = FlowActivity::idle;
  std::optional<HeldReport> held_by;  ///< absent: nothing of it waits
};

struct FlowsReport {
  std::vector<FlowReport> flows;
  std::uint64_t total_flows = 0;
  std::uint64_t evicted_flows = 0;
};

/// How often each of some named things happened; what never happened is absent.
using NamedCounts = std::map<std::string, std::uint64_t>;

/// A limit over several hosts, as this one sees it; with `by`, all its buckets together.
struct ClusterLimitReport {
  std::string name;
  std::string strategy;           ///< as in the policy
  std::string state;              ///< cold, leased or fallback: the worst of its buckets
  std::string reason;             ///< as a part of a sentence
  std::string advice;             ///< what to do about it; not in JSON: it is in the warnings
  DataRate limit;                 ///< in force for all hosts
  std::optional<DataRate> share;  ///< of one host while all want more than there is
  DataRate fallback_rate;         ///< what this host keeps to without Redis
  std::uint64_t members = 0;      ///< hosts with traffic
  std::uint64_t buckets = 0;
  ByteCount granted, returned, unmetered, in_fallback;
  Nanos fallback_time{0};
  std::uint64_t fallbacks = 0;
  std::uint64_t asks = 0;
  std::uint64_t failed_asks = 0;
  std::uint64_t clock_jumps = 0;
  std::uint64_t generation = 0;    ///< of the bucket in Redis: another one after a loss of data
  ByteCount wallet;                ///< granted, and not spent yet
  ByteCount sent;                  ///< what was charged, in fallback too
  ByteCount debt;                  ///< sent beyond the wallet by packets that are larger than a grant
  ByteCount settled;               ///< by `poll` and `push`: taken out of the bucket after it was sent
  std::uint64_t told = 0;          ///< by `push`: how often others have told what they spent
  DataRate want;                   ///< what this host's traffic could use, by its latest ask
  std::optional<Nanos> lease_age;  ///< since the latest answer; of several buckets, the oldest that is in use
  std::optional<ByteCount> lacks;  ///< what the bucket in Redis lacks to be full; absent with `by`
  std::optional<Nanos> wait;       ///< until it covers what waits here, if nobody else takes of it; absent with `by`
  bool contended = false;          ///< all hosts together want more than there is
  std::uint64_t config = 0;        ///< version of rate and burst in force
  bool config_mismatch = false;    ///< they are not those of this host's file
  NamedCounts fallback_reasons;    ///< what it fell back for
};

struct ClusterReport {
  std::string host;                    ///< the name of this one
  std::string redis;                   ///< where
  std::optional<std::string> trouble;  ///< why nothing has come of the latest asks
  Nanos round_trip{0};
  Nanos slow_round_trip{0};  ///< one of a hundred takes longer
  Nanos timeout{0};
  NamedCounts calls;                  ///< by what came of them
  std::uint64_t connects = 0;         ///< connections that came up
  std::uint64_t no_script = 0;        ///< calls that had to bring the script along
  std::uint64_t replays = 0;          ///< answers of asks that had been answered before
  std::uint64_t stale = 0;            ///< asks that were older than what Redis knew
  std::optional<Nanos> clock_offset;  ///< of Redis against this host
  std::vector<ClusterLimitReport> limits;
  std::vector<std::string> warnings;
  bool namesake = false;  ///< another host with this one's name was seen within the last minute
};

/// Names of users by number; a user without a name is reported by number.
using UserNames = std::map<std::uint32_t, std::string>;

/// Links, classes and limits of `snapshot`, in the order of `policy` with an automatic `default` class last. The caller
/// adds mode, queues, rules and warnings.
[[nodiscard]] StatusReport status_report(const Policy& policy, const CoreSnapshot& snapshot);

/// `to_utc` added to an Instant gives the time since the Unix epoch.
[[nodiscard]] FlowReport flow_report(const Policy& policy, const FlowSnapshot& flow, const UserNames& users,
                                     Nanos to_utc);

/// `2026-01-31T23:59:59.123456Z`. `since_epoch` outside the years 1970 to 9999 is brought to their edge.
[[nodiscard]] std::string rfc3339(Nanos since_epoch);

/// `text` as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string json_string(std::string_view text);

[[nodiscard]] std::string status_json(const StatusReport& report);

/// One flow as a JSON object. A listing in pieces is flows_json_head(), flow_json() … joined by commas, and
/// flows_json_tail(); a flow costs about a microsecond.
[[nodiscard]] std::string flow_json(const FlowReport& flow);
[[nodiscard]] std::string flows_json_head();
[[nodiscard]] std::string flows_json_tail(std::uint64_t total_flows, std::uint64_t evicted_flows);

[[nodiscard]] std::string flows_json(const FlowsReport& report);
[[nodiscard]] std::string cluster_json(const ClusterReport& report);

/// The object of status_json() with the keys of flows_json() behind its own.
[[nodiscard]] std::string replay_json(const StatusReport& status, const FlowsReport& flows);

/// Reads what status_json(), flows_json() or cluster_json() wrote; the error says what is wrong. Unknown keys are
/// ignored, so that a newer daemon can be asked.
[[nodiscard]] tl::expected<StatusReport, std::string> parse_status(std::string_view json);
[[nodiscard]] tl::expected<FlowsReport, std::string> parse_flows(std::string_view json);
[[nodiscard]] tl::expected<ClusterReport, std::string> parse_cluster(std::string_view json);

/// The words of the JSON for these.
[[nodiscard]] std::string_view mode_name(Mode mode);
[[nodiscard]] std::string_view rules_status_name(RulesStatus state);
/// Nothing: it is none of those names.
[[nodiscard]] std::optional<RulesStatus> parse_rules_status(std::string_view name);
[[nodiscard]] std::string_view direction_name(Direction direction);
[[nodiscard]] std::string_view without_daemon_name(WithoutDaemon without_daemon);
[[nodiscard]] std::string_view scope_name(Scope scope);
[[nodiscard]] std::string_view activity_name(FlowActivity activity);
[[nodiscard]] std::string_view each_name(EachBy by);

/// What packets of that class and link wait for.
[[nodiscard]] HeldReport held_report(const Policy& policy, const HeldBy& held, ClassIndex of_class, LinkIndex link);
/// The word for such a bucket: "each", "class" ...
[[nodiscard]] std::string_view holder_name(Holder holder);

}  // namespace shaper
