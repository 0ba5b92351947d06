// Policies and traffic for experiments with the guard: SSH of hosts that type, and of one that copies.
#pragma once

#include <utility>
#include <vector>

#include "shaper/core/guard.h"
#include "tests/sim.h"

namespace shaper::sim {

inline constexpr std::uint16_t kSsh = 1000;  // the source port of flow_of(host, 0)
inline constexpr ClassIndex kByPolicy = 0, kGuard = 1;
inline constexpr std::uint32_t kCopy = flow_of(1, 0), kTyping = flow_of(2, 0), kTypingLater = flow_of(3, 0);

inline Policy guarded(Policy policy, std::vector<std::uint16_t> ports = {kSsh}) {
  set_guard_ports(policy, std::move(ports));
  return policy;
}

inline ClassPolicy all_at(DataRate rate, Over over = Over::delay) {
  ClassPolicy policy = default_class();
  policy.ceil = rate;
  policy.over = over;
  return policy;
}

inline Source keystrokes(std::uint32_t flow) {
  return constant(tcp_packet_of(flow, 100), 200ms);
}

inline std::uint64_t sent(const Sim& sim, std::uint32_t flow, ClassIndex index) {
  std::uint64_t bytes = 0;
  for (const Departure& d : sim.departures()) {
    if (departs(d.decision) && d.flow == flow && d.class_index == index) bytes += d.wire_bytes.value;
  }
  return bytes;
}

/// The class that the flow's latest packet ended in.
inline ClassIndex latest_class(const Sim& sim, std::uint32_t flow) {
  for (auto d = sim.departures().rbegin(); d != sim.departures().rend(); ++d) {
    if (d->flow == flow) return d->class_index;
  }
  return ~ClassIndex{0};
}

}  // namespace shaper::sim
