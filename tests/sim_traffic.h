// Traffic for experiments: sources that send by the clock, by chance, or whenever a packet of theirs has gone.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "tests/sim_policy.h"

namespace shaper::sim {

/// Sends `packet` again and again.
struct Source {
  Packet packet;
  std::function<Nanos(Random&)> gap;  ///< to the next arrival; absent: backlogged
  std::uint32_t together = 1;         ///< packets in one arrival
  std::uint32_t window = 0;           ///< of a backlogged source: packets that it has on the way
  Nanos start{0};                     ///< from when it is added
  std::optional<Nanos> stop;          ///< from the start of the simulation
  std::uint32_t in_flight = 0;        ///< segments of super-packets on the way, above one for each super-packet
};

/// One packet every `gap`.
inline Source constant(const Packet& packet, Nanos gap) {
  Source source;
  source.packet = packet;
  source.gap = [gap](Random&) { return gap; };
  return source;
}

/// Packets at random, `mean` apart in the mean.
inline Source poisson(const Packet& packet, Nanos mean) {
  Source source;
  source.packet = packet;
  source.gap = [mean](Random& random) { return random.exponential(mean); };
  return source;
}

/// `together` packets at once, at random, `mean` apart in the mean.
inline Source bursts(const Packet& packet, std::uint32_t together, Nanos mean) {
  Source source = poisson(packet, mean);
  source.together = together;
  return source;
}

/// As much as fits a window, like a local TCP: a packet arrives soon after one has gone.
inline Source greedy(const Packet& packet, std::uint32_t window = 30) {
  Source source;
  source.packet = packet;
  source.window = window;
  return source;
}

}  // namespace shaper::sim
