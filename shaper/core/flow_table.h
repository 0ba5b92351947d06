// Finds the flow of a packet, and keeps the number of flows bounded.
//
// A flow that has been silent for a minute is forgotten; above the bound the one that has been silent for longest goes
// first. A flow is forgotten only while it holds no packet and its `each` bucket is full: a forgotten flow that comes
// back starts with a full bucket, and forgetting must give nothing away.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "shaper/core/flow.h"

namespace shaper {

class FlowTable {
 public:
  /// How long a silent flow stays listed.
  static constexpr Nanos kMemory = std::chrono::seconds{60};

  /// Nobody has so many sessions open that are not in the table yet; a flood of them fills it and no more.
  static constexpr std::uint32_t kReserve = 64;

  FlowTable(std::uint32_t max_flows, HashKey key);

  [[nodiscard]] Flow* find(const FlowKey& key);
  [[nodiscard]] const Flow* find(const FlowKey& key) const;

  /// Makes room: forgets flows that are silent for long, and one that is not if the table is full. False: it is full of
  /// flows that cannot be forgotten. `epoch` is that of the detours now.
  [[nodiscard]] bool make_room(Instant now, std::uint32_t epoch);

  Flow& insert(const FlowKey& key, Instant now);

  /// A few places beyond the bound are for flows that must have one while the table is full of others.
  [[nodiscard]] bool has_reserve() const { return in_reserve_ < kReserve; }
  /// The new flow takes one of them until it is erased.
  void take_reserve(Flow& flow) {
    flow.in_reserve = true;
    ++in_reserve_;
  }

  /// A packet of the flow was seen.
  void touch(Flow& flow, Instant now) {
    by_age_.remove(flow);
    by_age_.push_back(flow);
    flow.last_seen = now;
  }

  void erase(Flow& flow);

  /// Lists the flow under another key; false if that is taken. The flow keeps its address.
  [[nodiscard]] bool rename(Flow& flow, const FlowKey& key);

  /// Another bound. A smaller one is reached as flows fall silent.
  void set_max_flows(std::uint32_t max_flows);

  template <typename Image>
  void carry(Image& image) {
    image(evicted_, in_reserve_);
  }

  [[nodiscard]] std::size_t size() const { return flows_.size(); }
  [[nodiscard]] std::uint64_t evicted() const { return evicted_; }

  /// All flows, the longest silent first.
  [[nodiscard]] std::vector<Flow*> all() const;

  /// Calls `visit` for the flows in buckets from `position` on until `budget` flows were seen; returns the next
  /// position, or nothing at the end.
  template <typename Visit>
  std::optional<std::size_t> visit(std::size_t position, std::size_t budget, Visit visit) const;

  [[nodiscard]] std::uint64_t hash(const FlowKey& key) const { return flows_.hash_function()(key); }

 private:
  using ByAge = IntrusiveList<Flow, &Flow::older, &Flow::younger>;

  bool forget(Flow& flow, Instant now, std::uint32_t epoch);

  std::unordered_map<FlowKey, Flow, FlowKeyHash> flows_;
  ByAge by_age_;  // front: the longest silent
  std::uint32_t max_flows_ = 0;
  std::uint32_t in_reserve_ = 0;
  std::uint64_t evicted_ = 0;
};

template <typename Visit>
std::optional<std::size_t> FlowTable::visit(std::size_t position, std::size_t budget, Visit visit) const {
  // Empty places cost time too: sixteen of them count as a flow.
  std::size_t cost = 0;
  for (; position < flows_.bucket_count(); ++position) {
    if (cost >= 16 * budget) return position;
    for (auto flow = flows_.cbegin(position); flow != flows_.cend(position); ++flow) {
      visit(flow->second);
      cost += 16;
    }
    ++cost;
  }
  return std::nullopt;
}

}  // namespace shaper
