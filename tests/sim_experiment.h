// What an experiment is made of, and what it finds: the policy, how late things are, and the end of each packet.
#pragma once

#include "shaper/core/shaper.h"

namespace shaper::sim {

using namespace std::chrono_literals;

inline constexpr Instant kStart{1s};

/// How much later than asked a wake-up comes, evenly between the two.
struct Lateness {
  Nanos least{0};
  Nanos most{0};
};
inline constexpr Lateness fixed_lateness(Nanos time) {
  return {time, time};
}
inline constexpr Lateness random_lateness(Nanos most) {
  return {Nanos{0}, most};
}

struct Experiment {
  Policy policy;
  Lateness lateness{};
  std::uint64_t seed = 1;
  StartCredit credit = StartCredit::full;
  Nanos sending{0};           ///< the most that carrying out verdicts takes; the core is told when it is done
  unsigned count_every = 32;  ///< steps between two looks at all counters
};

/// The end of a packet.
struct Departure {
  Instant arrival;  ///< the second one, if it took the detour
  Instant when;
  std::uint32_t flow = 0;
  Decision decision = Decision::accept;
  DropReason reason = DropReason::policed;
  ClassIndex class_index = 0;
  std::uint32_t frames = 1;
  ByteCount wire_bytes;

  [[nodiscard]] Nanos delay() const { return when - arrival; }
  friend bool operator==(const Departure&, const Departure&) = default;
};

}  // namespace shaper::sim
