// A policy as the core obeys it: links, the classes on them, and what a packet must look like to belong to a class.
//
// This is configuration only: plain values, no state, no rule. shaper/model/config.cpp makes it from TOML text and has
// checked it; the core trusts it (names are unique, indices are in range, each link has exactly one default class).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "shaper/core/packet.h"
#include "shaper/core/units.h"

namespace shaper {

/// The address with only its first `bits` bits kept.
[[nodiscard]] Address masked(const Address& address, unsigned bits);

/// An address with its leading bits that count.
struct Prefix {
  Family family = Family::ipv4;
  Address address{};
  std::uint8_t bits = 0;

  friend bool operator==(const Prefix&, const Prefix&) = default;
};

/// A closed range of ports, users or groups.
template <typename Number>
struct Range {
  Number first = 0;
  Number last = 0;

  friend bool operator==(const Range&, const Range&) = default;
};

/// `mark & mask == value`
struct MarkMatch {
  std::uint32_t value = 0;
  std::uint32_t mask = 0xffffffff;

  friend bool operator==(const MarkMatch&, const MarkMatch&) = default;
};

/// Users or groups; `unknown` is a packet whose socket is not known.
struct OwnerMatch {
  std::vector<Range<std::uint32_t>> ids;
  bool unknown = false;

  [[nodiscard]] bool empty() const { return ids.empty() && !unknown; }
  friend bool operator==(const OwnerMatch&, const OwnerMatch&) = default;
};

/// All keys must hold; a key holds when one of its values does; an empty key is not asked.
struct Match {
  std::vector<std::uint8_t> protocol;  ///< "icmp" in a policy is both kIcmp and kIcmpv6
  std::vector<Prefix> source, destination, local, remote;
  std::vector<Range<std::uint16_t>> source_port, destination_port, local_port, remote_port;
  std::vector<std::uint8_t> dscp;
  std::vector<MarkMatch> mark;
  OwnerMatch user, group;
  std::vector<std::string> cgroup;     ///< paths from the root, each with all below it: "/system.slice"
  std::vector<std::string> unit;       ///< a part of the cgroup's path: "backup.service"
  std::vector<std::string> process;    ///< names; "unknown": no process was found
  std::vector<std::uint32_t> pid;      ///< with all that they have started
  std::vector<std::string> container;  ///< names, or the first 4 digits of the id or more
  std::vector<Match> none_of;          ///< `not`: none of these may hold

  /// Whether it asks for what must be found out about the owner; that of `none_of` apart.
  [[nodiscard]] bool asks_owner() const {
    return !cgroup.empty() || !unit.empty() || !process.empty() || !pid.empty() || !container.empty();
  }
  friend bool operator==(const Match&, const Match&) = default;
};

/// How much a bucket may save beyond one full frame.
using Burst = std::variant<Nanos, ByteCount>;
inline constexpr Nanos kDefaultBurst = std::chrono::milliseconds{4};

/// What the flows that share a bucket have in common, addresses or owners; `all`: the flows of a limit with `match`,
/// which share one.
enum class EachBy : std::uint8_t { flow, source, destination, local, remote, all, user, cgroup, process, container };

[[nodiscard]] constexpr bool is_of_owner(EachBy by) {
  return by == EachBy::user || by == EachBy::cgroup || by == EachBy::process || by == EachBy::container;
}

/// `by`: one bucket for every value of this.
struct KeyPolicy {
  EachBy by = EachBy::flow;
  std::uint8_t bits_ipv4 = 32;  ///< of the address; ignored for flows
  std::uint8_t bits_ipv6 = 128;

  friend bool operator==(const KeyPolicy&, const KeyPolicy&) = default;
};

/// `each`: a further bucket for every key.
struct Each : KeyPolicy {
  DataRate rate;
  Burst burst = kDefaultBurst;

  friend bool operator==(const Each&, const Each&) = default;
};

/// What happens to a packet above the rate: held, dropped (a policer), or only counted.
enum class Over : std::uint8_t { delay, drop, count };

enum class Direction : std::uint8_t { egress, ingress };

/// Between whom a class is shared evenly before it is shared between flows; `host` is the local side's address, `flow`
/// goes by flows alone, `off` keeps one queue in order of arrival.
enum class Fair : std::uint8_t { host, flow, source, destination, user, off };

/// How a rate is kept: with a burst, or with constant spacing and a bound on what waits.
enum class Discipline : std::uint8_t { token, leaky };

/// Where a limit is kept: on this host, or over all hosts together.
enum class Scope : std::uint8_t { host, cluster };

/// What a limit over all hosts does on this one while its Redis does not answer: refuse all packets, let all pass, or
/// keep a rate of its own.
enum class WithoutRedis : std::uint8_t { reject, allow, degrade };

/// How the hosts of a limit keep to one rate: grants before they are needed, for each packet when it is there, or a
/// local copy of the bucket that is settled now and then, with word of what others spend or without.
enum class Strategy : std::uint8_t { grants, remote, poll, push };

/// As in a policy.
[[nodiscard]] constexpr std::string_view strategy_name(Strategy strategy) {
  constexpr std::array<std::string_view, 4> kNames{"grants", "remote", "poll", "push"};
  return kNames[static_cast<std::size_t>(strategy)];
}

/// What a limit over all hosts has beside the keys of every limit.
struct ClusterRule {
  WithoutRedis without_redis = WithoutRedis::degrade;
  bool reserve = false;                ///< the share of hosts that are missing stays free
  bool observe = false;                ///< counted, but nobody is held up
  std::optional<DataRate> local_rate;  ///< of this host without Redis; absent: its share of the rate
  std::optional<DataRate> max_rate;    ///< no more than this is taken from Redis as the limit's rate
  Strategy strategy = Strategy::grants;

  friend bool operator==(const ClusterRule&, const ClusterRule&) = default;
};

/// What a rule does with packets while no daemon is there.
enum class WithoutDaemon : std::uint8_t { pass, block };

struct LinkPolicy {
  std::string name;
  std::string interface;
  Direction direction = Direction::egress;
  std::optional<DataRate> rate;  ///< of the whole link; absent: no total
  std::uint32_t overhead = 14;
  std::uint32_t smallest_frame = 0;  ///< `mpu`
  Cells cells = Cells::none;
  WithoutDaemon without_daemon = WithoutDaemon::pass;
  bool guard = true;  ///< the ports of Policy::guard_ports keep a share here

  friend bool operator==(const LinkPolicy&, const LinkPolicy&) = default;
};

/// A named bucket that several classes and links share: `[[limit]]`, or a live limit (model/live_limits.h).
struct LimitPolicy {
  std::string name;
  DataRate rate;
  Burst burst = kDefaultBurst;
  std::optional<KeyPolicy> by;  ///< one such bucket for each key; absent: one for all
  Scope scope = Scope::host;
  Discipline discipline = Discipline::token;
  ClusterRule cluster = {};  ///< meant with that scope only

  /// Only the flows of its classes for which one of these holds obey it; empty: all. Meant with EachBy::all.
  std::vector<Match> match = {};
  std::uint64_t live_id = 0;  ///< of a live limit; 0: of one in the policy's text
  std::string selector = {};  ///< what `match` of a live limit was read from, for those who tell of it

  friend bool operator==(const LimitPolicy&, const LimitPolicy&) = default;
};

using LimitIndex = std::uint16_t;  ///< position in Policy::limits

/// 0 is served first.
inline constexpr std::uint8_t kPriorities = 8;
inline constexpr std::uint8_t kDefaultPriority = 4;

struct ClassPolicy {
  std::string name;
  LinkIndex link = 0;
  std::vector<Match> match;  ///< one must hold; empty: all packets
  bool is_default = false;
  bool is_guard = false;  ///< made by set_guard_ports()
  std::optional<DataRate> rate;
  std::optional<DataRate> ceil;
  bool ceil_is_link = false;  ///< `ceil = "link"`: all that is free
  std::uint8_t priority = kDefaultPriority;
  Burst burst = kDefaultBurst;
  std::optional<Each> each;
  std::vector<LimitIndex> limits;  ///< that its packets are charged to as well
  Fair fair = Fair::host;
  Over over = Over::delay;
  Discipline discipline = Discipline::token;
  bool aqm = true;                   ///< CoDel
  bool ecn = true;                   ///< CE marks instead of drops, where CoDel drops
  std::optional<Nanos> max_delay;    ///< absent: default_max_delay()
  std::optional<ByteCount> backlog;  ///< `backlog`, or `capacity` of a leaky class; absent: what max_delay holds

  /// The most that the class may send in total on its own account: its ceil, else its rate; absent: what the link has.
  [[nodiscard]] std::optional<DataRate> limit() const {
    if (ceil_is_link) return std::nullopt;
    return ceil ? ceil : rate;
  }

  /// What it is promised of its link; a class that only counts is promised nothing.
  [[nodiscard]] std::optional<DataRate> guarantee() const { return over == Over::count ? std::nullopt : rate; }

  friend bool operator==(const ClassPolicy&, const ClassPolicy&) = default;
};

/// The guarantees of all `classes` on `link` together, without the guard: its share goes first, and is not scaled down.
[[nodiscard]] DataRate sum_of_guarantees(std::span<const ClassPolicy> classes, LinkIndex link);

/// What is left of a guarantee of `asked`, rounded down, where all of them come to `sum` on a link of `rate`.
[[nodiscard]] DataRate guarantee_in_force(DataRate asked, DataRate sum, DataRate rate);

inline constexpr std::uint32_t kDefaultMaxFlows = 262'144;
inline constexpr std::uint32_t kDefaultMarkMask = 0x0800'0000;

struct Policy {
  std::vector<LinkPolicy> links;
  std::vector<ClassPolicy> classes;  ///< in file order; a link's default class stands anywhere, guards come last
  std::vector<LimitPolicy> limits;
  std::uint32_t max_flows = kDefaultMaxFlows;
  std::uint32_t mark_mask = kDefaultMarkMask;  ///< the one bit of the fwmark that is ours
  bool realtime = false;                       ///< the daemon runs under SCHED_FIFO
  bool owners = false;                         ///< owners of flows are found out also where no key asks for them

  /// Somebody finds out owners. A fact of the host, as guard_ports is: where nobody does, they are unknown at once.
  bool finds_owners = false;

  /// Local TCP ports of the operator, sorted; empty: no guard is at work. A fact of the host, not of the policy's text:
  /// who has parsed that fills it by set_guard_ports() (guard.h), which adds the classes to it.
  std::vector<std::uint16_t> guard_ports;

  /// The smallest configured rate that every packet of the class must obey: its own, its link's or a limit's.
  [[nodiscard]] std::optional<DataRate> smallest_rate(const ClassPolicy& cls) const;

  friend bool operator==(const Policy&, const Policy&) = default;
};

/// The largest of 250 ms, ten full frames and 512 KiB at `rate`. A local TCP keeps up to 219 kB in the queue of a slow
/// link (measured at 1 Mbit/s): this much must not be dropped, or the bound would be a policer.
[[nodiscard]] Nanos default_max_delay(DataRate rate, ByteCount full_frame);

/// `burst` at `rate` in bytes, rounded down.
[[nodiscard]] ByteCount burst_bytes(const Burst& burst, DataRate rate);

/// What a leaky bucket saves beyond one full frame: a machine wakes up late by less than this, mostly.
inline constexpr Nanos kLeakySlack = std::chrono::milliseconds{1};

}  // namespace shaper
