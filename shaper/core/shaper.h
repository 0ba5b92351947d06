// The shaper: a passive machine that is told the time.
//
// A packet came: on_packet(). Time has passed: release(). When to call again: next_departure(). Each packet gets
// exactly one verdict, in `out`, from one of these calls; a packet without a verdict yet is held by whoever holds
// packets (the kernel, a replay, a test). No clock, no descriptor, no thread, no callback; nothing is allotted per
// packet once the containers have grown. Time given to the calls must not go backwards.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "shaper/core/policy.h"
#include "shaper/core/siphash.h"
#include "shaper/core/snapshot.h"
#include "shaper/core/units.h"
#include "shaper/core/verdict.h"

namespace shaper {

/// Buckets start full at the first start and empty after a crash, so that a crash gives nobody a burst.
enum class StartCredit : std::uint8_t { full, empty };

class Shaper {
 public:
  Shaper(const Policy& policy, StartCredit credit, HashKey key, Instant now);
  Shaper(Shaper&&) noexcept;
  Shaper& operator=(Shaper&&) noexcept;
  ~Shaper();

  /// A packet arrived. `out` gets its verdict if that is known now, and those of others that depart or lose with it.
  void on_packet(const Packet& packet, Instant now, Verdicts& out);

  /// Time has passed: everything that may depart by `now` does.
  void release(Instant now, Verdicts& out);

  /// When release() has something to do next; nothing if nothing waits.
  [[nodiscard]] std::optional<Instant> next_departure() const;

  /// The accepted packets of all calls so far have left by `at`. Optional: without it they left when they were told to.
  /// With it the rate law holds for real departures, also where the driver was late in carrying out a decision.
  void on_departed(Instant at);

  /// The driver has read its queues dry after all detours were sent: none is on its way any more.
  void on_queues_dry();

  /// The kernel had cleared the packet of this accepted or dropped verdict.
  void on_lost(const Verdict& verdict);

  /// The link's largest IP packet has changed.
  void set_mtu(LinkIndex link, std::uint32_t mtu);

  /// Obeys another policy from now on. Counters, flows and credit stay where link and class keep their names; held
  /// packets go to the class that their flow has now, in order.
  void swap(const Policy& policy, Instant now, Verdicts& out);

  /// Lets everything go unmetered, in order of arrival inside each flow.
  void pass_all(Instant now, Verdicts& out);

  /// Which class a packet gets, and which of its `match` tables held (absent: the class matches all, or by default).
  struct Explanation {
    ClassIndex class_index = 0;
    std::optional<std::size_t> match;
  };
  [[nodiscard]] Explanation explain(const Packet& packet) const;

  [[nodiscard]] CoreSnapshot snapshot(Instant now) const;

  /// Appends about `budget` flows to `flows` and moves the cursor; flows that come or go meanwhile may be missed.
  void flows(FlowCursor& cursor, std::size_t budget, Instant now, std::vector<FlowSnapshot>& flows) const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace shaper
