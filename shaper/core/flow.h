// A flow and what hangs on it: its held packets, the `each` bucket it shares, its place in the round robin, its
// counters.
//
// These are plain records: FlowTable finds and forgets flows, ClassQueue moves them. A flow obeys one class at a time.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <optional>

#include "shaper/core/indexed_heap.h"
#include "shaper/core/intrusive_list.h"
#include "shaper/core/packet.h"
#include "shaper/core/siphash.h"
#include "shaper/core/statistics.h"
#include "shaper/core/token_bucket.h"
#include "shaper/core/verdict.h"

namespace shaper {

class ClassQueue;
struct EachBucket;

/// What the packets of a flow have in common. Mark and DSCP belong to it only where the policy asks for them, so that
/// they do not split a flow without need. Also the key of an `each` bucket, with only its own fields set.
struct FlowKey {
  Address source{};
  Address destination{};
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
  LinkIndex link = 0;
  Family family = Family::other;
  std::uint8_t protocol = 0;
  std::uint32_t mark = 0;
  std::uint32_t dscp = 0;

  using Words = std::array<std::uint64_t, 6>;
  [[nodiscard]] Words words() const { return std::bit_cast<Words>(*this); }
  friend bool operator==(const FlowKey& a, const FlowKey& b) { return a.words() == b.words(); }
};

struct FlowKeyHash {
  HashKey key;
  std::size_t operator()(const FlowKey& flow) const { return siphash(flow.words(), key); }
};

/// A packet that waits in a flow queue.
struct HeldPacket {
  PacketId id;
  std::uint32_t frames = 1;
  std::uint32_t ip_bytes = 0;
  ByteCount wire_bytes;
  Instant arrival;
  HeldPacket* behind = nullptr;
};

/// Where a flow stands. `fresh` and `old` are the two lists of the round robin (RFC 8290), for flows that may be
/// served; asleep: its `each` bucket lacks credit, and it waits there, fresh or old as before.
enum class FlowState : std::uint8_t { idle, fresh, old, asleep_fresh, asleep_old };

struct Flow {
  explicit Flow(const FlowKey& flow_key, Instant now) : key(flow_key), first_seen(now), last_seen(now) {}

  FlowKey key;
  std::optional<std::uint32_t> user;
  std::optional<std::uint32_t> group;
  std::uint32_t last_mark = 0;  ///< of the latest packet: what a new policy may ask for
  std::uint8_t last_dscp = 0;

  ClassQueue* owner = nullptr;
  EachBucket* each = nullptr;

  // Held packets, first in first out.
  HeldPacket* head = nullptr;
  HeldPacket* tail = nullptr;
  std::uint64_t backlog_packets = 0;  ///< frames
  ByteCount backlog;
  std::uint32_t place_fattest = 0;

  // Round robin.
  FlowState state = FlowState::idle;
  bool resumes = false;      ///< was put to sleep in the middle of its quantum
  std::uint32_t round = 0;   ///< in which it got its latest quantum
  std::int64_t deficit = 0;  ///< bytes left of its quanta
  Flow* queue_previous = nullptr;
  Flow* queue_next = nullptr;

  // The detour through the split queue.
  bool split = false;
  std::uint32_t detour_epoch = 0;  ///< when its latest packet was sent there

  // Age: the flow table forgets the oldest first.
  Flow* older = nullptr;
  Flow* younger = nullptr;
  Instant first_seen;
  Instant last_seen;

  Traffic traffic;
  RateMeter meter;
  std::unique_ptr<DelayHistogram> delays;  ///< allotted at the first delay

  [[nodiscard]] bool idle() const { return head == nullptr; }
  /// Whether packets of it may be between the fast and the split queue, in the `epoch` of now.
  [[nodiscard]] bool on_detour(std::uint32_t epoch) const { return split && detour_epoch == epoch; }
};

using FlowList = IntrusiveList<Flow, &Flow::queue_previous, &Flow::queue_next>;

struct FatterFlow {
  static bool before(const Flow& a, const Flow& b) { return a.backlog > b.backlog; }
  static std::uint32_t& place(Flow& flow) { return flow.place_fattest; }
};

/// The bucket of one `each` key, and its flows that wait for it. A class without `each` has one of these with no rate.
struct EachBucket {
  explicit EachBucket(TokenBucket start) : bucket(start) {}

  TokenBucket bucket;
  std::uint32_t flows = 0;  ///< that belong to it
  std::uint32_t awake = 0;  ///< of them in the class's lists
  FlowList fresh;           ///< sleepers that were fresh
  FlowList old;             ///< sleepers that were old
  ByteCount backlog;
  ByteCount spent;                  ///< charged for packets that may not have left yet
  Instant wake;                     ///< when the first sleeper is covered; meant while in the heap of sleepers
  std::uint32_t place_asleep = 0;   ///< in the heap of sleepers
  std::uint32_t place_fattest = 0;  ///< in the heap by backlog
  IndexedHeap<Flow, FatterFlow> fattest;

  [[nodiscard]] Flow* first_sleeper() const { return fresh.empty() ? old.front() : fresh.front(); }
};

}  // namespace shaper
