// Traffic for experiments: sources that send by the clock, by chance, whenever a packet of theirs has gone, or as a
// TCP.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "shaper/core/verdict.h"
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
  std::optional<Nanos> round_trip;    ///< of a TCP: from a departure to the packet that it allows
  double congestion_window = 0;       ///< of a TCP, in packets
  std::uint32_t unacknowledged = 0;   ///< of a TCP
  Instant recovered;                  ///< of a TCP: congestion told of before this is the same congestion
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

/// A TCP without slow start (RFC 5681): one packet more each round trip, half the window at a loss or a mark.
inline Source reno(const Packet& packet, Nanos round_trip, std::uint32_t window = 10) {
  Source source = greedy(packet, window);
  source.round_trip = round_trip;
  source.congestion_window = window;
  return source;
}

/// What becomes of a TCP's window when it hears of the end of a packet.
inline void acknowledge(Source& source, Decision decision, Instant now) {
  --source.unacknowledged;
  if (decision == Decision::accept || decision == Decision::pass) {
    source.congestion_window += 1.0 / source.congestion_window;
  } else if (now >= source.recovered) {
    source.congestion_window = std::max(2.0, source.congestion_window / 2);
    source.recovered = now + *source.round_trip;
  }
}

}  // namespace shaper::sim
