// A flow and what hangs on it: its held packets, its host, the buckets it shares, its place in the round robin, its
// counters.
//
// These are plain records: FlowTable finds and forgets flows, ClassQueue moves them. A flow obeys one class at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "shaper/core/codel.h"
#include "shaper/core/flow_key.h"
#include "shaper/core/indexed_heap.h"
#include "shaper/core/intrusive_list.h"
#include "shaper/core/owner_table.h"
#include "shaper/core/schedule.h"
#include "shaper/core/standing.h"
#include "shaper/core/statistics.h"
#include "shaper/core/verdict.h"

namespace shaper {

class ClassQueue;
struct Host;
struct KeyedBucket;
class KeyedBuckets;

/// Where a flow stands: it holds nothing; it takes part in the round robin; or it sleeps at a bucket that lacks credit.
enum class FlowState : std::uint8_t { idle, awake, asleep };

/// What is known of who sends it: nobody was asked; an answer is awaited, and the strictest class holds until then; it
/// did not come in time, but may still come; it came.
enum class OwnerState : std::uint8_t { unasked, pending, unknown, known };

struct Flow {
  explicit Flow(const FlowKey& flow_key, Instant now) : key(flow_key), first_seen(now), last_seen(now) {}

  FlowKey key;
  std::optional<std::uint32_t> user;
  std::optional<std::uint32_t> group;
  OwnerRef who;  ///< where the state is `known`
  OwnerState owner_state = OwnerState::unasked;
  Instant owner_asked;          ///< for the latest time
  std::uint32_t last_mark = 0;  ///< of the latest packet: what a new policy may ask for
  std::uint8_t last_dscp = 0;

  ClassQueue* owner = nullptr;
  Host* host = nullptr;
  std::vector<KeyedBucket*> buckets;  ///< `each` and limits with `by`, in the order of its class

  // Held packets, first in first out.
  HeldPacket* head = nullptr;
  HeldPacket* tail = nullptr;
  std::uint64_t backlog_packets = 0;  ///< frames
  ByteCount backlog;
  std::uint32_t place_in_host = 0;  ///< in its heap by backlog
  std::uint32_t place_in_each = 0;  ///< in the heap by backlog of its `each` bucket

  // Round robin.
  FlowState state = FlowState::idle;
  bool fresh = false;             ///< has not used its quantum of the round
  KeyedBucket* sleeps = nullptr;  ///< where it is asleep
  std::uint32_t round = 0;        ///< of its host, in which it got its latest quantum
  std::int64_t deficit = 0;       ///< bytes left of its quanta
  std::uint32_t place_by_arrival = 0;
  Flow* queue_previous = nullptr;
  Flow* queue_next = nullptr;
  Codel codel;

  // The detour through the split queue.
  bool split = false;
  std::uint32_t detour_epoch = 0;  ///< when its latest packet was sent there
  std::uint32_t segment = 0;       ///< IP length of its full segments, learnt from those that came back; 0: not known
  std::uint32_t supers = 0;        ///< super-packets since that was learnt

  std::optional<TokenBucket> guard_credit;  ///< of a guarded port: what it may send and still be sparse

  std::uint64_t busy_since = 0;  ///< of a shared flow: which packet it was that found it empty

  // Age: the flow table forgets the oldest first.
  Flow* older = nullptr;
  Flow* younger = nullptr;
  Instant first_seen;
  Instant last_seen;
  bool in_reserve = false;  ///< has one of the places beyond the table's bound

  Traffic traffic;
  RateMeter meter;
  std::unique_ptr<DelayHistogram> delays;  ///< allotted at the first delay
  std::unique_ptr<HoldMeter> holds;        ///< as soon as it waits

  /// All but its key, its packets and its places.
  template <typename Image>
  void carry(Image& image);

  [[nodiscard]] bool idle() const { return head == nullptr; }
  /// For packets of many flows, which have none of their own while the flow table is full.
  [[nodiscard]] bool is_shared() const { return key.protocol == kSharedFlow; }
  /// Whether packets of it may be between the fast and the split queue, in the `epoch` of now.
  [[nodiscard]] bool on_detour(std::uint32_t epoch) const { return split && detour_epoch == epoch; }
};

using FlowList = IntrusiveList<Flow, &Flow::queue_previous, &Flow::queue_next>;

struct FatterFlow {
  static bool before(const Flow& a, const Flow& b) { return a.backlog > b.backlog; }
  static std::uint32_t& place(Flow& flow) { return flow.place_in_host; }
};
struct FatterFlowOfBucket {
  static bool before(const Flow& a, const Flow& b) { return a.backlog > b.backlog; }
  static std::uint32_t& place(Flow& flow) { return flow.place_in_each; }
};

/// The flows of one host in a class, or of whatever `fair` tells apart; one for all where it tells nothing apart.
struct Host {
  explicit Host(const FlowKey& host_key = {}) : key(host_key) {}

  FlowKey key;
  FlowList fresh;  ///< awake flows that have not used their quantum
  FlowList old;    ///< the other awake flows
  std::uint32_t flows = 0;
  std::uint32_t flow_round = 1;  ///< of its flows
  std::uint32_t round = 0;       ///< of the class, in which it got its latest quantum
  std::int64_t deficit = 0;
  bool in_fresh = false;
  bool in_old = false;
  Host* fresh_previous = nullptr;
  Host* fresh_next = nullptr;
  Host* old_previous = nullptr;
  Host* old_next = nullptr;
  ByteCount backlog;
  std::uint32_t place_fattest = 0;
  IndexedHeap<Flow, FatterFlow> fattest;

  [[nodiscard]] bool awake() const { return !fresh.empty() || !old.empty(); }
};

/// The bucket of one key, of an `each` or of a limit with `by`, and its flows that wait for it.
struct KeyedBucket : Alarm {
  KeyedBucket(KeyedBuckets& owner, const FlowKey& bucket_key, Meter&& start)
      : Alarm(Of::bucket), home(&owner), key(bucket_key), meter(std::move(start)) {}

  KeyedBuckets* home;
  FlowKey key;
  Meter meter;
  std::uint32_t flows = 0;  ///< that belong to it
  FlowList fresh;           ///< sleepers that were fresh
  FlowList old;             ///< sleepers that were old
  bool stirred = false;     ///< listed in KeyedBuckets

  // Of an `each` bucket only:
  ByteCount backlog;
  IndexedHeap<Flow, FatterFlowOfBucket> fattest;

  [[nodiscard]] Flow* first_sleeper() const { return fresh.empty() ? old.front() : fresh.front(); }
};

}  // namespace shaper
