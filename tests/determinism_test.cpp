// Same input, same output, to the bit: what a replay of an event log rests on.
#include <gtest/gtest.h>

#include "tests/sim.h"
#include "tests/sim_tree.h"

namespace shaper::sim {
namespace {

struct Story {
  std::vector<Departure> departures;
  std::string broken;
  std::uint64_t detours = 0;
  std::vector<std::uint64_t> counters;

  friend bool operator==(const Story&, const Story&) = default;
};

/// A random policy under random load, with swaps of policy.
Story tell(std::uint64_t seed) {
  Random random(seed);
  const Policy first = random_policy(random);
  Sim sim({.policy = first, .lateness = random_lateness(3ms), .seed = seed});
  for (std::uint32_t n = 0; n < 30; ++n) {
    const auto flow = static_cast<std::uint32_t>(random.below(100'000));
    const auto mark = static_cast<std::uint32_t>(random.below(4));
    Packet packet = random.chance(20) ? super_packet_of(flow, 20'000, mark) : packet_of(flow, 1'000, mark);
    packet.link = static_cast<LinkIndex>(random.below(first.links.size()));
    sim.add(bursts(packet, 3, 10ms));
  }
  for (int step = 0; step < 10; ++step) {
    sim.run_for(random.up_to(20ms));
    sim.swap(random_successor(first, random));
  }
  sim.drain();
  Story story{sim.departures(), sim.broken(), sim.detours(), {}};
  for (const ClassSnapshot& entry : sim.snapshot().classes) {
    for (const std::uint64_t value : {entry.in_packets, entry.traffic.wire_bytes.value, entry.late_bytes.value,
                                      entry.credit.value_or(ByteCount{}).value, entry.rate.bits_per_second}) {
      story.counters.push_back(value);
    }
    story.counters.push_back(static_cast<std::uint64_t>(entry.delay.p99.count()));
  }
  for (const FlowSnapshot& flow : sim.flows()) story.counters.push_back(flow.traffic.wire_bytes.value);
  return story;
}

TEST(Determinism, TheSameInputGivesTheSameOutput) {
  for (const std::uint64_t seed : seeds(40)) {
    const Story first = tell(seed), second = tell(seed);
    EXPECT_EQ(first.broken, "") << "seed " << seed;
    ASSERT_TRUE(first == second) << "seed " << seed;
  }
}

TEST(Determinism, DifferentInputGivesDifferentOutput) {
  EXPECT_FALSE(tell(1) == tell(2)) << "or the test above proves nothing";
}

/// What departs when, under the given key of the flow table's hash.
std::vector<Verdict> verdicts(HashKey key, std::uint64_t seed) {
  Random random(seed);
  const Policy policy = policy_of(class_marked("a", 1, 5_mbit), [] {
    ClassPolicy each = default_class(20_mbit);
    each.each = each_of(EachBy::source, 3_mbit, 24);
    return each;
  }());
  Shaper core(policy, StartCredit::full, key, Sim::kStart);
  Verdicts all;
  Instant now = Sim::kStart;
  for (std::uint32_t number = 1; number <= 3'000; ++number) {
    now += random.exponential(300us);
    Packet packet = packet_of(static_cast<std::uint32_t>(random.below(40)) * 700, 1'000, number % 2);
    packet.id = {0, number};
    core.release(now, all);
    core.on_packet(packet, now, all);
    if (number % 500 == 0) core.swap(policy, now, all);
  }
  return all;
}

TEST(Determinism, TheKeyOfTheHashChangesNothing) {
  // The live key is random and not in the event log: a replay has another one.
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    EXPECT_TRUE(verdicts(Sim::kKey, seed) == verdicts({1, 2}, seed)) << "seed " << seed;
  }
}

TEST(Determinism, ReadingChangesNothing) {
  for (const bool reads : {false, true}) {
    static std::vector<Departure> quiet;
    ClassPolicy policy = default_class(10_mbit);
    policy.each = each_of(EachBy::source, 3_mbit);
    Policy whole = policy_of(policy);
    whole.max_flows = 1'000;
    Sim sim({.policy = whole});
    for (std::uint32_t host = 0; host < 6; ++host) sim.add(poisson(packet_of(flow_of(host, 0)), 4ms));
    for (int step = 0; step < 500; ++step) {
      sim.run_for(1ms);
      if (reads) {
        static_cast<void>(sim.flows(3));
        static_cast<void>(sim.snapshot());
        static_cast<void>(sim.core().explain(packet_of(1)));
      }
    }
    if (reads) {
      EXPECT_EQ(quiet, sim.departures());
    } else {
      quiet = sim.departures();
    }
  }
}

}  // namespace
}  // namespace shaper::sim
