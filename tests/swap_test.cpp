// Another policy under load: nothing is lost, reordered or counted twice, and no bucket is filled by it.
#include <gtest/gtest.h>

#include "tests/sim.h"
#include "tests/sim_tree.h"

namespace shaper::sim {
namespace {

const ClassSnapshot& class_at(const CoreSnapshot& snapshot, ClassIndex index) {
  const auto found = std::find_if(snapshot.classes.begin(), snapshot.classes.end(),
                                  [index](const ClassSnapshot& entry) { return entry.index == index; });
  return found == snapshot.classes.end() ? snapshot.classes.front() : *found;
}

TEST(Swap, TheSamePolicyChangesNothing) {
  // One backlogged flow, so that what departs when is told by the bucket alone.
  for (const bool each : {false, true}) {
    ClassPolicy policy = default_class(10_mbit);
    if (each) policy.each = each_of(EachBy::source, 3_mbit);
    Sim quiet({.policy = policy_of(policy)}), swapped({.policy = policy_of(policy)});
    for (Sim* sim : {&quiet, &swapped}) sim->add(greedy(packet_of(1)));
    Random random(7);
    for (int step = 0; step < 500; ++step) {
      const Nanos time = random.up_to(5ms);
      quiet.run_for(time);
      swapped.run_for(time);
      swapped.swap(policy_of(policy));
    }
    EXPECT_EQ(quiet.broken() + swapped.broken(), "");
    EXPECT_EQ(quiet.departures(), swapped.departures());
    EXPECT_EQ(class_at(quiet.snapshot(), 0).credit, class_at(swapped.snapshot(), 0).credit);
  }
}

TEST(Swap, CreditDoesNotRefill) {
  Sim sim({.policy = policy_of(default_class(1_mbit))});
  for (int n = 0; n < 10; ++n) {
    sim.send(packet_of(1, 486));
    sim.swap(policy_of(default_class(1_mbit)));
  }
  EXPECT_EQ(sim.sent().value, (1'514 + 500) / 500 * 500U);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Swap, CreditOfEachBucketsDoesNotRefill) {
  ClassPolicy policy = default_class();
  policy.each = each_of(EachBy::source, 1_mbit);
  Sim sim({.policy = policy_of(policy)});
  for (int n = 0; n < 10; ++n) {
    sim.send(packet_of(1, 486));
    sim.swap(policy_of(policy));
  }
  EXPECT_EQ(sim.sent().value, (1'514 + 500) / 500 * 500U);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Swap, ALimitThatIsTakenAwayAndPutBackGivesNoBurst) {
  // Without a rate there is no bucket; the new one may be full, but what it lets pass then is one depth.
  Sim sim({.policy = policy_of(default_class(1_mbit))});
  sim.add(greedy(packet_of(1), 5));
  sim.run_for(1s);
  const Instant begin = sim.now();
  for (int n = 0; n < 100; ++n) {
    ClassPolicy other = default_class(1_mbit);
    other.burst = n % 2 == 0 ? Burst{Nanos{100ms}} : Burst{kDefaultBurst};
    sim.swap(policy_of(other));
  }
  sim.run_for(0s);
  EXPECT_LE(sim.sent({}, begin).value, 2U * 1'514) << "a deeper bucket does not start full";
  EXPECT_EQ(sim.broken(), "");
}

TEST(Swap, ALowerRateIsObeyedAtOnceAndAHigherOneToo) {
  Sim sim({.policy = policy_of(default_class(100_mbit))});
  sim.add(greedy(packet_of(1), 100));
  for (const DataRate rate : {1_mbit, 50_mbit, 500_kbit, 20_mbit}) {
    sim.run_for(200ms);
    sim.swap(policy_of(default_class(rate)));
    const Instant begin = sim.now();
    sim.run_for(2s);
    const std::uint64_t depth = 1'514 + bytes_in(rate, 4ms).value;
    EXPECT_LE(sim.sent({}, begin).value, bytes_in(rate, 2s).value + depth) << rate.bits_per_second;
    EXPECT_GE(sim.sent({}, begin).value + 2 * 1'514, bytes_in(rate, 2s).value) << rate.bits_per_second;
  }
  EXPECT_EQ(sim.broken(), "");
}

TEST(Swap, HeldPacketsStayInOrderAndAreNotLost) {
  Sim sim({.policy = policy_of(default_class(1_mbit))});
  for (std::uint32_t flow = 0; flow < 3; ++flow) {
    for (int n = 0; n < 20; ++n) sim.send(packet_of(flow));
  }
  const std::size_t held = sim.held();
  ASSERT_GT(held, 50U);
  sim.swap(policy_of(default_class(2_mbit)));
  EXPECT_EQ(sim.held(), held);
  sim.drain();
  EXPECT_EQ(sim.dropped(), 0U);
  EXPECT_EQ(sim.sent().value, 60U * 1'514);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Swap, HeldPacketsOfAClassThatLosesItsRateGoAtOnce) {
  for (const Over over : {Over::delay, Over::count}) {
    Sim sim({.policy = policy_of(default_class(100_kbit))});
    for (int n = 0; n < 10; ++n) sim.send(packet_of(1));
    ASSERT_GT(sim.held(), 5U);
    ClassPolicy free = default_class(over == Over::count ? std::optional{100_kbit} : std::nullopt);
    free.over = over;
    sim.swap(policy_of(free));
    sim.run_for(0s);
    EXPECT_EQ(sim.held(), 0U);
    EXPECT_EQ(sim.dropped(), 0U);
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(Swap, ADelayingClassThatBecomesAPolicerKeepsNothingWaiting) {
  Sim sim({.policy = policy_of(default_class(100_kbit))});
  for (int n = 0; n < 10; ++n) sim.send(packet_of(1));
  ClassPolicy policer = default_class(100_kbit);
  policer.over = Over::drop;
  sim.swap(policy_of(policer));
  sim.drain();
  EXPECT_EQ(sim.held(), 0U);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Swap, APolicerDoesNotOvertakeWhatWaitedBeforeIt) {
  for (const bool free : {false, true}) {
    Sim sim({.policy = policy_of(default_class(1_mbit))});
    for (int n = 0; n < 10; ++n) sim.send(packet_of(1));
    ClassPolicy other = default_class(free ? std::nullopt : std::optional{1_mbit});
    if (!free) other.over = Over::drop;
    sim.swap(policy_of(other));
    for (int n = 0; n < 50; ++n) {
      sim.send(packet_of(1, 100));
      sim.run_for(1ms);
    }
    sim.drain();
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(Swap, FlowsThatTheNewPolicyDoesNotTellApartStillWait) {
  // One 5-tuple with two marks is two flows as long as a class asks for marks, and one flow then.
  Sim sim({.policy = policy_of(class_marked("a", 9), default_class(1_mbit))});
  for (std::uint32_t n = 0; n < 20; ++n) sim.send(packet_of(1, 1'500, n % 2));
  const std::size_t held = sim.held();
  sim.swap(policy_of(default_class(1_mbit)));
  EXPECT_EQ(sim.held(), held) << "they must not pass unmetered";
  sim.drain();
  sim.count();
  EXPECT_EQ(sim.broken(), "");
}

TEST(Swap, ATableThatGetsSmallerKeepsWhatWaits) {
  Policy policy = policy_of(default_class(10_mbit));
  Sim sim({.policy = policy});
  for (std::uint32_t n = 0; n < 100; ++n) sim.send(packet_of(n));
  const std::size_t held = sim.held();
  policy.max_flows = 10;
  sim.swap(policy);
  EXPECT_EQ(sim.held(), held);
  for (std::uint32_t n = 0; n < 100; ++n) sim.send(packet_of(n));
  sim.drain();
  sim.count();
  EXPECT_EQ(sim.broken(), "");
}

TEST(Swap, AFloodThatSharesFlowsStillWaits) {
  // More flows than the table holds share some: their packets are held by the limit too.
  Policy policy = policy_of(default_class(1_mbit));
  policy.max_flows = 4;
  Sim sim({.policy = policy});
  for (std::uint32_t n = 0; n < 100; ++n) sim.send(packet_of(n, 500));
  const std::size_t held = sim.held();
  ASSERT_GT(held, 50U);
  sim.swap(policy);
  EXPECT_EQ(sim.held(), held) << "they must not pass unmetered";
  sim.count();
  EXPECT_EQ(sim.broken(), "");
}

TEST(Swap, PacketsOfARemovedClassGoToTheClassOfTheirFlow) {
  Sim sim({.policy = policy_of(class_marked("a", 1, 100_kbit), default_class(10_mbit))});
  for (int n = 0; n < 10; ++n) sim.send(packet_of(1, 1'500, 1));
  ASSERT_GT(sim.held(), 5U);
  const Instant begin = sim.now();
  sim.swap(policy_of(default_class(10_mbit)));
  sim.run_for(100ms);
  EXPECT_EQ(sim.held(), 0U) << "they go at the rate of their new class";
  EXPECT_EQ(sim.dropped(), 0U);
  for (const Departure& departure : sim.departures()) {
    if (departure.when > begin) {
      EXPECT_EQ(departure.class_index, 0U);
    }
  }
  sim.count();
  EXPECT_EQ(sim.broken(), "");
}

TEST(Swap, PacketsOfAFlowThatAnEarlierClassTakesNowMoveThere) {
  Sim sim({.policy = policy_of(class_marked("unused", 9, 1_mbit), default_class(100_kbit))});
  for (int n = 0; n < 10; ++n) sim.send(packet_of(1, 1'500, 1));
  sim.swap(policy_of(class_marked("unused", 9, 1_mbit), class_marked("new", 1, 10_mbit), default_class(100_kbit)));
  sim.run_for(100ms);
  EXPECT_EQ(sim.held(), 0U);
  EXPECT_EQ(sim.departures().back().class_index, 1U);
  sim.count();
  EXPECT_EQ(sim.broken(), "");
}

TEST(Swap, StatisticsFollowTheNameNotThePosition) {
  Sim sim({.policy = policy_of(class_marked("a", 1, 10_mbit), class_marked("b", 2), default_class())});
  sim.add(greedy(packet_of(1, 1'500, 1)));
  sim.add(constant(packet_of(2, 700, 2), 10ms));
  sim.add(constant(packet_of(3, 300, 0), 10ms));
  sim.run_for(1s);
  const CoreSnapshot before = sim.snapshot();
  const std::vector<FlowSnapshot> flows_before = sim.flows();
  sim.swap(policy_of(class_marked("new", 7), default_class(), class_marked("b", 2), class_marked("a", 1, 10_mbit)));
  const CoreSnapshot after = sim.snapshot();
  const std::pair<ClassIndex, ClassIndex> same[] = {{0, 3}, {1, 2}, {2, 1}};
  for (const auto& [was, is] : same) {
    EXPECT_EQ(class_at(before, was).in_packets, class_at(after, is).in_packets);
    EXPECT_EQ(class_at(before, was).traffic.wire_bytes, class_at(after, is).traffic.wire_bytes);
    EXPECT_EQ(class_at(before, was).backlog_packets, class_at(after, is).backlog_packets);
    EXPECT_EQ(class_at(before, was).credit, class_at(after, is).credit);
    EXPECT_EQ(class_at(before, was).delay.max, class_at(after, is).delay.max);
    EXPECT_EQ(class_at(before, was).delay_counts.packets, class_at(after, is).delay_counts.packets);
  }
  EXPECT_EQ(class_at(after, 0).in_packets, 0U);
  ASSERT_EQ(sim.flows().size(), flows_before.size());
  std::map<std::uint32_t, std::uint64_t> sent;
  for (const FlowSnapshot& flow : flows_before) sent[flow_number(flow.headers)] = flow.traffic.sent_packets;
  for (const FlowSnapshot& flow : sim.flows()) EXPECT_EQ(flow.traffic.sent_packets, sent[flow_number(flow.headers)]);
  sim.run_for(1s);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Swap, WhatTheKernelLostBeforeCountsForTheClassThatFollows) {
  Sim sim({.policy = policy_of(class_marked("a", 1), class_marked("b", 2), default_class())});
  for (int n = 0; n < 3; ++n) sim.send(packet_of(3, 700, 2));
  for (int n = 0; n < 3; ++n) sim.send(packet_of(1, 700, 1));
  sim.swap(policy_of(class_marked("b", 2), class_marked("a", 1), default_class()));
  sim.lose_last();
  EXPECT_EQ(class_at(sim.snapshot(), 1).lost_packets, 1U);
  EXPECT_EQ(class_at(sim.snapshot(), 1).traffic.sent_packets, 2U);
  EXPECT_EQ(class_at(sim.snapshot(), 0).lost_packets, 0U);
  sim.send(packet_of(1, 700, 1));
  sim.swap(policy_of(class_marked("b", 2), default_class()));
  sim.lose_last();
  for (const ClassSnapshot& entry : sim.snapshot().classes) EXPECT_EQ(entry.lost_packets, 0U) << entry.index;
  EXPECT_EQ(sim.broken(), "");
}

TEST(Swap, RandomPoliciesUnderLoadKeepEveryRule) {
  for (const std::uint64_t seed : seeds(80)) {
    Random random(seed);
    Policy policy = random_policy(random);
    Experiment experiment{.policy = policy, .lateness = {}, .seed = seed};
    if (random.chance(50)) experiment.lateness = random_lateness(5ms);
    Sim sim(experiment);
    for (std::uint32_t n = 0; n < 8; ++n) {
      const auto mark = static_cast<std::uint32_t>(random.below(4));
      const auto bytes = static_cast<std::uint32_t>(random.between(40, 1'500));
      Packet packet = random.chance(25) ? super_packet_of(n * 9, 30'000, mark) : packet_of(n * 9, bytes, mark);
      packet.link = static_cast<LinkIndex>(random.below(policy.links.size()));
      if (random.chance(50)) {
        sim.add(bursts(packet, 5, 5ms));
      } else {
        sim.add(greedy(packet, 5));
      }
    }
    for (int step = 0; step < 20; ++step) {
      sim.run_for(random.up_to(10ms));
      sim.swap(random_successor(policy, random));
    }
    sim.drain();
    ASSERT_EQ(sim.broken(), "") << "seed " << seed;
  }
}

TEST(PassAll, LetsEverythingGoUnmeteredAndInOrder) {
  ClassPolicy policy = default_class(100_kbit);
  policy.each = each_of(EachBy::source, 50_kbit);
  Sim sim({.policy = policy_of(policy)});
  for (std::uint32_t flow = 0; flow < 40; ++flow) sim.send(packet_of(flow * 7, 1'500));
  for (std::uint32_t flow = 0; flow < 40; ++flow) sim.send(packet_of(flow * 7, 100));
  const std::size_t held = sim.held();
  sim.pass_all();
  EXPECT_EQ(sim.held(), 0U);
  EXPECT_EQ(sim.snapshot().classes[0].passed_packets, held);
  sim.count();
  EXPECT_EQ(sim.broken(), "");
}

TEST(PassAll, GivesNoCreditForTimeThatWasCountedBefore) {
  ClassPolicy policy = default_class();
  policy.each = each_of(EachBy::source, 100_kbit);
  Sim sim({.policy = policy_of(policy)});
  for (int n = 0; n < 3; ++n) sim.send(packet_of(1));
  sim.run_for(60ms);
  sim.pass_all();
  sim.add(greedy(packet_of(1)));
  sim.run_for(2s);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Swap, WhatWaitsInASharedFlowIsNotOvertakenByWayOfItsAddress) {
  // The table has room for one flow. After the swap others of its host share the bucket of their address.
  Policy policy = policy_of(default_class(100_kbit));
  policy.max_flows = 1;
  Policy next = policy;
  next.classes[0].each = each_of(EachBy::source, 1_mbit);
  Sim sim({.policy = policy});
  for (int n = 0; n < 5; ++n) sim.send(packet_of(flow_of(1, 0)));
  for (int n = 0; n < 20; ++n) sim.send(packet_of(flow_of(1, 1)));
  sim.swap(next);
  for (std::uint32_t port = 2; port < 6; ++port) sim.send(packet_of(flow_of(1, port)));
  for (int n = 0; n < 5; ++n) sim.send(packet_of(flow_of(1, 1)));
  sim.drain();
  EXPECT_EQ(sim.broken(), "");
}

}  // namespace
}  // namespace shaper::sim
