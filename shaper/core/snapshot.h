// What the core tells a reader about its state: copies of counters, no pointers into the core.
//
// `packets` are frames on the wire: a super-packet of n segments counts n. At any moment and for every class
// sent + dropped + lost + passed + backlog = in.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "shaper/core/owner.h"
#include "shaper/core/policy.h"
#include "shaper/core/units.h"
#include "shaper/core/verdict.h"

namespace shaper {

/// Percentiles of the time from arrival to departure; packets that never waited count as zero.
struct DelaySummary {
  Nanos p50{0}, p90{0}, p99{0}, max{0};
};

/// The bounds of DelayCounts: decades and their thirds, and CoDel's target of 5 ms.
inline constexpr std::array<Nanos, 12> kDelayBounds{Nanos{100'000},       Nanos{300'000},       Nanos{1'000'000},
                                                    Nanos{3'000'000},     Nanos{5'000'000},     Nanos{10'000'000},
                                                    Nanos{30'000'000},    Nanos{100'000'000},   Nanos{300'000'000},
                                                    Nanos{1'000'000'000}, Nanos{3'000'000'000}, Nanos{10'000'000'000}};

/// All that departed by the time from arrival to departure. Nothing is ever taken back, not even what proves to have
/// been lost: these counters only grow.
struct DelayCounts {
  std::array<std::uint64_t, kDelayBounds.size() + 1> packets{};  ///< by the first bound that is not exceeded; longer
  Uint128 nanoseconds = 0;                                       ///< the sum of the times of all packets

  void add(Nanos delay, std::uint32_t frames) {
    std::size_t bound = 0;
    while (bound < kDelayBounds.size() && delay > kDelayBounds[bound]) ++bound;
    packets[bound] += frames;
    nanoseconds += Uint128{frames} * static_cast<std::uint64_t>(delay.count());
  }

  [[nodiscard]] std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t n : packets) sum += n;
    return sum;
  }
};

/// Counters of what passed, for a flow or a class.
struct Traffic {
  std::uint64_t sent_packets = 0;
  std::uint64_t marked_packets = 0;                 ///< of those sent: with CE
  ByteCount sent_bytes;                             ///< IP bytes
  ByteCount wire_bytes;                             ///< charged bytes
  std::array<std::uint64_t, kDropReasons> drops{};  ///< packets, by reason
  ByteCount dropped_bytes;

  [[nodiscard]] std::uint64_t dropped_packets() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t n : drops) sum += n;
    return sum;
  }
};

/// The kinds of buckets that packets wait for.
enum class Holder : std::uint8_t {
  each,     ///< of the class's `each`: the flow's own
  ceil,     ///< of its class
  limit,    ///< of a named or a live limit
  cluster,  ///< the grants of a limit over several hosts
  link,     ///< or its turn there
};
inline constexpr std::size_t kHolders = 5;

/// Times by Holder.
using HoldTimes = std::array<Nanos, kHolders>;

/// What a packet waits for.
struct HeldBy {
  Holder holder = Holder::link;
  std::optional<LimitIndex> limit;  ///< which one, where it is one
};

/// Packets of about the last minute that were sent, and that were dropped.
struct RecentPackets {
  std::uint64_t sent = 0;
  std::array<std::uint64_t, kDropReasons> drops{};
};

struct ClassSnapshot {
  ClassIndex index = 0;
  Traffic traffic;
  std::uint64_t in_packets = 0;
  std::uint64_t lost_packets = 0;    ///< cleared by the kernel while held
  std::uint64_t passed_packets = 0;  ///< let go unmetered
  std::uint64_t backlog_packets = 0;
  ByteCount backlog_bytes;            ///< wire bytes
  DataRate rate;                      ///< measured on the wire over the last second
  std::optional<ByteCount> depth;     ///< of the class's bucket
  std::optional<ByteCount> credit;    ///< in the class's bucket
  ByteCount late_bytes;               ///< credit lost because wake-ups came late
  ByteCount borrowed_bytes;           ///< wire bytes that went beyond the guarantee
  std::optional<DataRate> guarantee;  ///< in force: scaled down where the link has less than was promised
  std::optional<Nanos> wait;          ///< what a full frame that came now would wait for the class's bucket
  std::uint32_t flows = 0;
  DelaySummary delay;
  std::optional<HeldBy> held_by;  ///< absent: nothing waits, or flows wait for buckets of their own
  RecentPackets recent;
  DelayCounts delay_counts;
};

struct LinkSnapshot {
  LinkIndex index = 0;
  std::uint64_t detoured_packets = 0;  ///< super-packets and others sent to the split queue
  std::optional<ByteCount> depth;      ///< of the link's bucket
  std::optional<ByteCount> credit;
  ByteCount late_bytes;  ///< credit of the link lost because wake-ups came late
};

struct LimitSnapshot {
  LimitIndex index = 0;
  std::uint32_t keys = 0;           ///< buckets that exist; 1 for a limit without `by`
  DataRate rate;                    ///< measured on the wire over the last second, all keys together
  std::optional<ByteCount> depth;   ///< of the one bucket; absent with `by`, and where grants are spent
  std::optional<ByteCount> credit;  ///< or what is left of its grants
  ByteCount late_bytes;
  std::uint32_t other_flows = 0;  ///< of more keys than a limit over many hosts may have: they share one bucket
  ByteCount wire_bytes;           ///< sent by all keys together
};

/// What came of the search for owners of flows.
struct OwnerCounters {
  std::uint64_t found = 0;  ///< answers
  std::uint64_t late = 0;   ///< flows that waited for one in vain: unknown until it comes
};

struct CoreSnapshot {
  std::vector<LinkSnapshot> links;
  std::vector<LimitSnapshot> limits;
  std::vector<ClassSnapshot> classes;
  std::uint64_t flows = 0;
  std::uint64_t evicted_flows = 0;
  OwnerCounters owners;
  std::vector<OwnerTotal> owner_totals;
};

/// What a flow does at a moment, and what its packets wait for.
enum class FlowActivity : std::uint8_t {
  idle,     ///< holds nothing, and nothing has come for a second
  passing,  ///< holds nothing: what comes passes at once, or is dropped
  fresh,    ///< holds packets and has not used its quantum: it goes before bulk
  bulk,     ///< holds packets and takes turns with the other flows of its class
  limited,  ///< holds packets until a bucket of its own key has credit: of `each`, or of a limit with `by`
};

struct FlowSnapshot {
  ClassIndex class_index = 0;
  LinkIndex link = 0;
  Headers headers;  ///< addresses, ports, protocol and family of the flow
  std::optional<std::uint32_t> user;
  std::optional<Owner> owner;
  Traffic traffic;
  DataRate rate;
  std::uint64_t backlog_packets = 0;
  ByteCount backlog_bytes;
  DelaySummary delay;
  Instant first_seen;
  Instant last_seen;
  FlowActivity activity = FlowActivity::idle;
  std::optional<HeldBy> held_by;  ///< absent: nothing of it waits
};

/// A flow, and why it is no faster.
struct HoldSnapshot {
  FlowSnapshot flow;
  // Of the bucket that it waits for:
  std::optional<DataRate> rate;     ///< absent for a link without a limit, and where grants are spent
  std::optional<ByteCount> credit;  ///< absent for a link without a limit
  std::optional<ByteCount> depth;   ///< as `rate`
  std::optional<Instant> earliest;  ///< that its next packet may leave; absent: nothing waits, or not before a grant
  HoldTimes minute{};               ///< for how long it was held in about the last minute, by what
};

/// Where the next piece of a listing of classes begins.
struct ClassCursor {
  ClassIndex next = 0;
  bool done = false;
};

/// Where the next piece of a flow listing begins.
struct FlowCursor {
  std::size_t position = 0;
  bool done = false;
};

}  // namespace shaper
