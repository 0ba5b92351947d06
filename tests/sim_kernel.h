// The kernel's part in a simulation: packets come, are held until their verdict, and are cut if they take the detour.
//
// A detour is answered by cutting the super-packet into segments that stand behind everything that has arrived. What
// comes is planned ahead, first in first out at one instant.
#pragma once

#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tests/sim_experiment.h"
#include "tests/sim_traffic.h"

namespace shaper::sim {

using Order = std::pair<std::uint64_t, std::uint32_t>;  ///< number in its flow, segment of a super-packet

inline constexpr std::size_t kNoSource = ~std::size_t{0};

/// A packet that waits for its verdict.
struct Held {
  Packet packet;
  WireSize size;
  Instant arrival;
  Order order;
  std::size_t source = kNoSource;
};

/// What tells flows apart at least: the core may not ask for mark and DSCP.
inline std::uint64_t finest_flow(const Packet& packet) {
  return std::uint64_t{flow_number(packet.headers)} << 32 | (packet.mark & 0xff) << 24 |
         std::uint32_t{packet.headers.dscp} << 16 | std::uint32_t{packet.headers.protocol} << 8 | packet.link;
}

class Kernel {
 public:
  Kernel(const Policy& policy, std::uint64_t seed) : links_{policy.links}, mtu_(links_.size(), 1500), random_{seed} {}

  [[nodiscard]] Framing framing(LinkIndex link) const {
    return {mtu_[link], links_[link].overhead, links_[link].smallest_frame, links_[link].cells};
  }
  void set_mtu(LinkIndex link, std::uint32_t mtu) { mtu_[link] = mtu; }

  void add(const Source& source, Instant now) {
    sources_.push_back(source);
    const std::size_t index = sources_.size() - 1;
    Arrival first = fresh_packet(index);
    first.generates = true;
    plan(now + source.start, first);
    for (std::uint32_t n = 1; !source.gap && n < source.window; ++n) plan(now + source.start, fresh_packet(index));
  }

  void send(const Packet& packet, Instant now) { plan(now, {.packet = packet}); }

  void stop(std::size_t source) { sources_[source].stop = Nanos{0}; }
  void stop_all() {
    for (Source& source : sources_) source.stop = Nanos{0};
  }

  [[nodiscard]] std::optional<Instant> next_arrival() const {
    if (coming_.empty()) return std::nullopt;
    return coming_.begin()->first;
  }

  /// The next packet that has arrived by `now`, which is held from now on.
  const Held* read(Instant now) {
    while (!coming_.empty() && coming_.begin()->first <= now) {
      const Arrival arrival = std::move(coming_.extract(coming_.begin()).mapped());
      if (arrival.acknowledges) {
        hear(arrival, now);
        continue;
      }
      if (arrival.source != kNoSource && !arrival.order && stopped(arrival.source, now)) continue;
      if (arrival.generates && sources_[arrival.source].gap) plan_next(arrival.source, now);
      return &hold(arrival, now);
    }
    return nullptr;
  }

  /// Whether everything that has come by `now` was read.
  [[nodiscard]] bool dry(Instant now) const { return coming_.empty() || coming_.begin()->first > now; }

  /// Gives a packet away, to its verdict.
  std::optional<Held> take(PacketId id) {
    const auto found = held_.find(key_of(id));
    if (found == held_.end()) return std::nullopt;
    const Held held = found->second;
    held_.erase(found);
    return held;
  }

  /// What becomes of a packet that is sent to the split queue.
  void cut(const Held& held, Instant now) {
    const std::uint32_t header = std::uint32_t{held.packet.headers.network_bytes} + held.packet.headers.transport_bytes;
    const std::uint32_t room = held.packet.super ? mtu_[held.packet.link] - header : held.packet.ip_bytes;
    std::uint32_t payload = held.packet.super ? held.packet.ip_bytes - header : 0;
    Order order = held.order;
    do {
      Arrival segment{.packet = held.packet, .source = held.source, .order = order};
      segment.packet.queue = QueueKind::split;
      segment.packet.super = false;
      if (held.packet.super) segment.packet.ip_bytes = header + std::min(room, payload);
      payload -= std::min(room, payload);
      plan(now, segment);
      ++order.second;
    } while (payload > 0);
    if (held.source != kNoSource) sources_[held.source].in_flight += order.second - held.order.second - 1;
  }

  /// A packet has come to its end, decided upon at `decided`. A backlogged source sends the next one: soon if that had
  /// waited, else at a pace that a simulation bears; after a loss it waits.
  void ended(const Held& gone, Decision decision, Instant decided, Instant now) {
    if (gone.source == kNoSource || sources_[gone.source].gap) return;
    Source& source = sources_[gone.source];
    if (source.round_trip) {
      return plan(now + *source.round_trip, {.source = gone.source, .acknowledges = decision});
    }
    if (stopped(gone.source, now)) return;
    if (source.in_flight > 0) {
      --source.in_flight;  // a segment whose super-packet has more of them
      return;
    }
    const Nanos pause = decision == Decision::drop ? 1ms : gone.arrival == decided ? 100us : 1us;
    plan(now + pause, fresh_packet(gone.source));
  }

  [[nodiscard]] const std::unordered_map<std::uint64_t, Held>& held() const { return held_; }

 private:
  struct Arrival {
    Packet packet = {};
    std::size_t source = kNoSource;
    bool generates = false;                     // the next packets of its source follow
    std::optional<Order> order = {};            // of a segment; others get theirs when they arrive
    std::optional<Decision> acknowledges = {};  // no packet: a TCP hears of one that has gone
  };

  static std::uint64_t key_of(PacketId id) { return std::uint64_t{id.queue} << 32 | id.number; }

  void plan(Instant at, Arrival arrival) { coming_.emplace(at, std::move(arrival)); }

  [[nodiscard]] Arrival fresh_packet(std::size_t source) {
    ++sources_[source].unacknowledged;
    return {.packet = sources_[source].packet, .source = source};
  }

  [[nodiscard]] bool stopped(std::size_t source, Instant now) const {
    return sources_[source].stop && now >= kStart + *sources_[source].stop;
  }

  void plan_next(std::size_t source, Instant now) {
    for (std::uint32_t n = 1; n < sources_[source].together; ++n) plan(now, fresh_packet(source));
    Arrival next = fresh_packet(source);
    next.generates = true;
    plan(now + sources_[source].gap(random_), next);
  }

  void hear(const Arrival& arrival, Instant now) {
    Source& source = sources_[arrival.source];
    acknowledge(source, *arrival.acknowledges, now);
    if (stopped(arrival.source, now)) return;
    while (source.unacknowledged + 1.0 <= source.congestion_window) plan(now, fresh_packet(arrival.source));
  }

  const Held& hold(const Arrival& arrival, Instant now) {
    Held held{.packet = arrival.packet, .size = {}, .arrival = now, .order = {}, .source = arrival.source};
    Packet& packet = held.packet;
    const bool split = packet.queue == QueueKind::split;
    packet.id.queue = static_cast<std::uint16_t>(2 * packet.link + (split ? 1 : 0));
    packet.id.number = ++last_number_;
    held.size = wire_size(packet, framing(packet.link));
    held.order = arrival.order ? *arrival.order : Order{++arrived_[finest_flow(packet)], 0};
    return held_.insert_or_assign(key_of(packet.id), held).first->second;
  }

  std::vector<LinkPolicy> links_;
  std::vector<std::uint32_t> mtu_;
  Random random_;
  std::multimap<Instant, Arrival> coming_;
  std::vector<Source> sources_;
  std::unordered_map<std::uint64_t, Held> held_;
  std::unordered_map<std::uint64_t, std::uint64_t> arrived_;
  std::uint32_t last_number_ = 0;
};

}  // namespace shaper::sim
