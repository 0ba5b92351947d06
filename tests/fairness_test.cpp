// Who is served: equal shares among the flows of a class, sparse flows first, and no flow that holds up another.
#include <gtest/gtest.h>

#include "tests/sim.h"

namespace shaper::sim {
namespace {

/// Jain's index of what the flows sent from `begin` on: 1 when all are equal.
double jain(const Sim& sim, const std::vector<std::uint32_t>& flows, Instant begin = Sim::kStart) {
  double sum = 0, squares = 0;
  for (const std::uint32_t flow : flows) {
    const auto sent = static_cast<double>(sim.sent(flow, begin).value);
    sum += sent;
    squares += sent * sent;
  }
  return sum * sum / (static_cast<double>(flows.size()) * squares);
}

/// The delay that 99 % of the flow's packets do not exceed.
Nanos p99_delay(const Sim& sim, std::uint32_t flow) {
  const std::vector<Nanos> delays = sim.delays(flow);
  return delays.empty() ? Nanos::max() : delays[delays.size() * 99 / 100];
}

std::vector<std::uint32_t> hosts(std::uint32_t count, std::uint32_t first = 0) {
  std::vector<std::uint32_t> flows;
  for (std::uint32_t n = 0; n < count; ++n) flows.push_back(flow_of(first + n, 0));
  return flows;
}

TEST(Fairness, FlowsWithDifferentPacketSizesGetEqualShares) {
  Sim sim({.policy = policy_of(default_class(10_mbit))});
  const std::vector<std::uint32_t> flows = hosts(5);
  const std::uint32_t sizes[] = {1'500, 1'000, 576, 200, 86};
  for (std::size_t n = 0; n < flows.size(); ++n) sim.add(greedy(packet_of(flows[n], sizes[n]), 60));
  sim.run_for(20s);
  EXPECT_EQ(sim.broken(), "");
  EXPECT_GE(jain(sim, flows), 0.999);
}

TEST(Fairness, ThirtyTwoFlowsGetEqualSharesWhateverTheLateness) {
  for (const Lateness lateness : {Lateness{}, random_lateness(4ms), fixed_lateness(20ms)}) {
    Sim sim({.policy = policy_of(default_class(50_mbit)), .lateness = lateness});
    const std::vector<std::uint32_t> flows = hosts(32);
    for (const std::uint32_t flow : flows) sim.add(greedy(packet_of(flow), 30));
    sim.run_for(10s);
    EXPECT_EQ(sim.broken(), "");
    EXPECT_GE(jain(sim, flows), 0.999);
  }
}

TEST(Fairness, AFlowThatComesLaterGetsItsShareFromThenOn) {
  Sim sim({.policy = policy_of(default_class(10_mbit))});
  const std::vector<std::uint32_t> flows = hosts(2);
  sim.add(greedy(packet_of(flows[0])));
  sim.run_for(5s);
  sim.add(greedy(packet_of(flows[1])));
  const Instant begin = sim.now();
  sim.run_for(10s);
  EXPECT_EQ(sim.broken(), "");
  EXPECT_GE(jain(sim, flows, begin), 0.999);
}

TEST(Fairness, AnOnOffFlowDoesNotGetMoreThanABackloggedOne) {
  // A flow that empties and comes back at once must not be new each time: window 1 against window 30.
  Sim sim({.policy = policy_of(default_class(1_mbit))});
  const std::vector<std::uint32_t> flows = hosts(3);
  sim.add(greedy(packet_of(flows[0]), 1));
  sim.add(greedy(packet_of(flows[1]), 30));
  sim.add(greedy(packet_of(flows[2], 300), 1));
  sim.run_for(200s);
  EXPECT_EQ(sim.broken(), "");
  const auto share = [&sim, &flows](std::size_t n) { return sim.sent(flows[n]).value; };
  EXPECT_LE(share(0), share(1) * 101 / 100);
  EXPECT_LE(share(2), share(1) * 101 / 100);
}

TEST(Fairness, SparseFlowsGoFirst) {
  struct Case {
    DataRate rate;
    std::uint32_t bulk;
    Nanos most;
  };
  const Case cases[] = {{1_mbit, 1, 3ms}, {1_mbit, 8, 3ms}, {10_mbit, 1, 1ms}, {10_mbit, 8, 1ms}, {100_mbit, 8, 1ms}};
  for (const Case& test : cases) {
    Sim sim({.policy = policy_of(default_class(test.rate)), .lateness = random_lateness(200us)});
    const std::uint32_t echo = flow_of(500, 0);
    for (const std::uint32_t flow : hosts(test.bulk)) sim.add(greedy(packet_of(flow)));
    sim.add(poisson(packet_of(echo, 98), 20ms));
    sim.run_for(test.rate == 100_mbit ? Nanos{5s} : Nanos{30s});
    EXPECT_EQ(sim.broken(), "");
    EXPECT_LT(p99_delay(sim, echo), test.most) << test.rate.bits_per_second << " bit/s, " << test.bulk << " bulk flows";
  }
}

TEST(Fairness, BulkThatEmptiesBetweenItsPacketsIsNotFreshAtEachOfThem) {
  // A TCP with a short queue: what it sends next comes a little after its queue has become empty. Segments that fill
  // the frame, and such of a narrower path, which leave something of a quantum.
  for (const Fair fair : {Fair::host, Fair::flow}) {
    for (const std::uint32_t bytes : {1'500U, 1'400U, 900U}) {
      ClassPolicy policy = default_class();
      policy.fair = fair;
      Sim sim({.policy = link_of(1_mbit, policy), .lateness = random_lateness(200us)});
      const std::uint32_t bulk = flow_of(1, 0), echo = flow_of(1, 1), other_host = flow_of(2, 0);
      sim.add(greedy(packet_of(bulk, bytes), 1));
      sim.add(poisson(packet_of(echo, 118), 20ms));
      sim.add(poisson(packet_of(other_host, 118), 20ms));
      sim.run_for(30s);
      EXPECT_EQ(sim.broken(), "");
      EXPECT_LT(p99_delay(sim, echo), Nanos{3ms}) << bytes << " bytes";
      EXPECT_LT(p99_delay(sim, other_host), Nanos{3ms}) << bytes << " bytes";
      EXPECT_GE(sim.sent(bulk).value, bytes_in(1_mbit, 20s).value) << "there was bulk";
    }
  }
}

TEST(Fairness, ManySparseFlowsGoFirstTogether) {
  Sim sim({.policy = policy_of(default_class(10_mbit))});
  for (const std::uint32_t flow : hosts(8)) sim.add(greedy(packet_of(flow)));
  sim.run_for(100ms);
  const std::vector<std::uint32_t> sparse = hosts(20, 1'000);
  for (const std::uint32_t flow : sparse) sim.add(poisson(packet_of(flow, 98), 50ms));
  sim.run_for(10s);
  EXPECT_EQ(sim.broken(), "");
  for (const std::uint32_t flow : sparse) EXPECT_LT(p99_delay(sim, flow), Nanos{2ms});
}

TEST(Fairness, ASlowFlowWithItsOwnBucketNeverHoldsUpAnother) {
  ClassPolicy policy = default_class();
  policy.each = each_of(EachBy::source, 1_mbit);
  Sim sim({.policy = policy_of(policy)});
  const std::uint32_t quick = flow_of(9, 0);
  for (const std::uint32_t flow : hosts(4)) sim.add(greedy(packet_of(flow)));
  sim.add(constant(packet_of(quick), 20ms));  // 0.6 Mbit/s
  sim.run_for(20s);
  EXPECT_EQ(sim.broken(), "");
  EXPECT_EQ(p99_delay(sim, quick), Nanos{0});
  for (const std::uint32_t flow : hosts(4)) {
    const std::uint64_t wanted = bytes_in(1_mbit, 20s).value;
    EXPECT_NEAR(static_cast<double>(sim.sent(flow).value), static_cast<double>(wanted), 2.5 * 1514) << flow;
  }
}

TEST(Fairness, FlowsOfOneKeyShareItsBucketFairly) {
  ClassPolicy policy = default_class();
  policy.each = each_of(EachBy::source, 5_mbit, 24);
  Sim sim({.policy = policy_of(policy)});
  const std::vector<std::uint32_t> together = {flow_of(0, 0), flow_of(0, 1), flow_of(7, 0), flow_of(255, 3)};
  const std::uint32_t alone = flow_of(256, 0);
  for (const std::uint32_t flow : together) sim.add(greedy(packet_of(flow)));
  sim.add(greedy(packet_of(alone)));
  sim.run_for(20s);
  EXPECT_EQ(sim.broken(), "");
  EXPECT_GE(jain(sim, together), 0.999);
  std::uint64_t shared = 0;
  for (const std::uint32_t flow : together) shared += sim.sent(flow).value;
  EXPECT_NEAR(static_cast<double>(shared), static_cast<double>(sim.sent(alone).value), 1514 * 2.0);
  EXPECT_NEAR(static_cast<double>(shared), static_cast<double>(bytes_in(5_mbit, 20s).value), 1514 * 4.0);
}

TEST(Fairness, SparseFlowsGoFirstInsideOneBucketToo) {
  ClassPolicy policy = default_class();
  policy.each = each_of(EachBy::source, 1_mbit);
  Sim sim({.policy = policy_of(policy)});
  for (std::uint32_t port = 0; port < 8; ++port) sim.add(greedy(packet_of(flow_of(1, port))));
  const std::uint32_t echo = flow_of(1, 15);
  sim.add(poisson(packet_of(echo, 98), 20ms));
  sim.run_for(60s);
  EXPECT_EQ(sim.broken(), "");
  EXPECT_LT(p99_delay(sim, echo), Nanos{3ms});
}

TEST(Fairness, TotalAndEachHoldTogether) {
  // Six flows that may have 5 Mbit/s each, under a total of 10 Mbit/s.
  ClassPolicy policy = default_class(10_mbit);
  policy.each = each_of(EachBy::flow, 5_mbit);
  Sim sim({.policy = policy_of(policy)});
  const std::vector<std::uint32_t> flows = hosts(6);
  for (const std::uint32_t flow : flows) sim.add(greedy(packet_of(flow)));
  sim.run_for(20s);
  EXPECT_EQ(sim.broken(), "");
  EXPECT_GE(jain(sim, flows), 0.999);
  EXPECT_NEAR(static_cast<double>(sim.sent().value), static_cast<double>(bytes_in(10_mbit, 20s).value), 10'000);
}

TEST(Fairness, WhatALimitedFlowLeavesGoesToTheOthers) {
  // One flow stays at its 1 Mbit/s (it is alone in its key), the others share the rest of the total.
  ClassPolicy policy = default_class(10_mbit);
  policy.each = each_of(EachBy::source, 6_mbit);
  Sim sim({.policy = policy_of(policy)});
  sim.add(constant(packet_of(flow_of(1, 0)), 12'112us));  // 1 Mbit/s
  sim.add(greedy(packet_of(flow_of(2, 0))));
  sim.add(greedy(packet_of(flow_of(3, 0))));
  sim.run_for(20s);
  EXPECT_EQ(sim.broken(), "");
  EXPECT_NEAR(static_cast<double>(sim.sent().value), static_cast<double>(bytes_in(10_mbit, 20s).value), 10'000);
  EXPECT_GE(jain(sim, {flow_of(2, 0), flow_of(3, 0)}), 0.999);
  EXPECT_LE(p99_delay(sim, flow_of(1, 0)), Nanos{3ms});
}

TEST(Fairness, SleepersComeBackWithTheSameShareWhateverTheirPacketSize) {
  // Two keys under a total just below the sum of their rates: both buckets and the total hold back in turns.
  ClassPolicy policy = default_class(9_mbit);
  policy.each = each_of(EachBy::source, 5_mbit);
  Sim sim({.policy = policy_of(policy), .lateness = random_lateness(1ms)});
  sim.add(greedy(packet_of(flow_of(1, 0), 1'500), 60));
  sim.add(greedy(packet_of(flow_of(2, 0), 250), 60));
  sim.run_for(20s);
  EXPECT_EQ(sim.broken(), "");
  EXPECT_GE(jain(sim, {flow_of(1, 0), flow_of(2, 0)}), 0.999);
  EXPECT_NEAR(static_cast<double>(sim.sent().value), static_cast<double>(bytes_in(9_mbit, 20s).value), 10'000);
}

TEST(Fairness, ASlowClassAddsNothingToAnother) {
  Sim sim({.policy = policy_of(class_marked("slow", 1, 100_kbit), class_marked("quick", 2, 50_mbit), default_class())});
  for (const std::uint32_t flow : hosts(8)) sim.add(greedy(packet_of(flow, 1'500, 1)));
  const std::uint32_t quick = flow_of(300, 0), free = flow_of(301, 0);
  sim.add(constant(packet_of(quick, 1'500, 2), 1ms));
  sim.add(constant(packet_of(free, 1'500, 0), 1ms));
  sim.run_for(10s);
  EXPECT_EQ(sim.broken(), "");
  EXPECT_EQ(p99_delay(sim, quick), Nanos{0});
  EXPECT_EQ(p99_delay(sim, free), Nanos{0});
}

}  // namespace
}  // namespace shaper::sim
