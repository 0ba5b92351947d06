// Policers under a link or a limit, classes that only count, and leaky buckets: constant spacing and a bound on what
// waits.
#include <gtest/gtest.h>

#include "tests/sim.h"

namespace shaper::sim {
namespace {

constexpr std::uint64_t kFrame = 1514;

ClassPolicy policer(ClassPolicy policy) {
  policy.over = Over::drop;
  return policy;
}

ClassPolicy leaky(DataRate rate, ByteCount capacity) {
  ClassPolicy policy = default_class(rate);
  policy.discipline = Discipline::leaky;
  policy.burst = kLeakySlack;
  policy.backlog = capacity;
  policy.max_delay = 10s;
  return policy;
}

// --- Policers --------------------------------------------------------------------------------------------------------

TEST(Policer, WhatConformsMayWaitForTheLink) {
  // Ten packets conform at once; the link takes 12 ms for each of them.
  ClassPolicy policy = policer(default_class(8_mbit));
  policy.burst = ByteCount{9 * kFrame};
  Sim sim({.policy = link_of(1_mbit, policy)});
  for (int n = 0; n < 15; ++n) sim.send(packet_of(1));
  EXPECT_EQ(sim.dropped(DropReason::policed), 5U);
  EXPECT_EQ(sim.dropped(), 5U);
  sim.run_for(200ms);
  EXPECT_EQ(sim.sent().value, 10 * kFrame);
  EXPECT_GT(sim.delays().back(), Nanos{90ms});
  EXPECT_EQ(sim.broken(), "");
}

TEST(Policer, WhatWaitsForTheLinkUsesUpItsOwnBucket) {
  // The link is slower than the policer: what is held already counts against the bucket, so little ever waits.
  ClassPolicy policy = policer(default_class(2_mbit));
  policy.burst = ByteCount{4 * kFrame};
  Sim sim({.policy = link_of(1_mbit, policy)});
  sim.add(constant(packet_of(1), 2ms));  // 6 Mbit/s
  for (int step = 0; step < 200; ++step) {
    sim.run_for(10ms);
    ASSERT_LE(sim.snapshot().classes[0].backlog_bytes.value, 5 * kFrame);
  }
  EXPECT_GE(sim.sent().value + 2 * kFrame, bytes_in(1_mbit, 2s).value) << "the link is used";
  EXPECT_GT(sim.dropped(DropReason::policed), 500U);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Policer, APacketIsPolicedByALimitAsWell) {
  for (const bool keyed : {false, true}) {
    Policy policy = policy_of(policer(borrowing(default_class())));
    policy.classes[0].limits = {0};
    policy.limits.push_back(limit_named("total", 1_mbit));
    if (keyed) policy.limits[0].by = KeyPolicy{EachBy::source};
    Sim sim({.policy = policy});
    sim.add(constant(packet_of(1), 2ms));
    sim.run_for(10s);
    EXPECT_EQ(sim.held(), 0U);
    EXPECT_EQ(sim.delays().back(), Nanos{0});
    EXPECT_EQ(sim.dropped(), sim.dropped(DropReason::policed));
    EXPECT_GE(sim.sent().value + kFrame, bytes_in(1_mbit, 10s).value);
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(Policer, NextToADelayingClassTheLinkIsSharedAndOrderKept) {
  Policy policy = link_of(10_mbit, policer(class_marked("policed", 1, 4_mbit)), borrowing(default_class(6_mbit)));
  Sim sim({.policy = policy});
  sim.add(bursts(packet_of(flow_of(1, 0), 1'000, 1), 4, 4ms));  // 8 Mbit/s
  sim.add(greedy(packet_of(flow_of(2, 0))));
  sim.run_for(10s);
  EXPECT_NEAR(static_cast<double>(sim.sent().value), static_cast<double>(bytes_in(10_mbit, 10s).value), 10'000);
  EXPECT_GE(static_cast<double>(sim.sent_by_class(0).value), 0.7 * static_cast<double>(bytes_in(4_mbit, 10s).value));
  EXPECT_EQ(sim.broken(), "");
}

TEST(Count, ItsOwnRatesOnlyMeasureButTheLinkHolds) {
  ClassPolicy policy = default_class(1_mbit);
  policy.ceil = 2_mbit;
  policy.each = each_of(EachBy::flow, 100_kbit);
  policy.over = Over::count;
  Sim sim({.policy = link_of(10_mbit, policy)});
  sim.add(greedy(packet_of(1)));
  sim.run_for(5s);
  EXPECT_NEAR(static_cast<double>(sim.sent().value), static_cast<double>(bytes_in(10_mbit, 5s).value), 10'000);
  EXPECT_EQ(sim.dropped(), 0U);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Count, ALimitHoldsToo) {
  ClassPolicy policy = default_class(10_mbit);
  policy.over = Over::count;
  policy.limits = {0};
  Policy whole = policy_of(policy);
  whole.limits.push_back(limit_named("total", 1_mbit));
  Sim sim({.policy = whole});
  sim.add(greedy(packet_of(1)));
  sim.run_for(10s);
  EXPECT_NEAR(static_cast<double>(sim.sent().value), static_cast<double>(bytes_in(1_mbit, 10s).value), 3 * kFrame);
  EXPECT_EQ(sim.broken(), "");
}

// --- Leaky buckets ---------------------------------------------------------------------------------------------------

TEST(Leaky, SpacesPacketsEvenly) {
  // Whatever comes at once leaves one frame's time apart, but for the slack of a millisecond.
  Sim sim({.policy = policy_of(leaky(1_mbit, {100'000}))});
  for (int n = 0; n < 40; ++n) sim.send(packet_of(1));
  sim.drain();
  ASSERT_EQ(sim.departures().size(), 40U);
  for (std::size_t n = 2; n < 40; ++n) {
    const Nanos gap = sim.departures()[n].when - sim.departures()[n - 1].when;
    EXPECT_NEAR(static_cast<double>(gap.count()), static_cast<double>(time_for(1_mbit, {kFrame}).count()), 1.0);
  }
  EXPECT_LE(sim.law().total(0)->excess().value, kFrame + bytes_in(1_mbit, kLeakySlack).value);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Leaky, HoldsNoMoreThanItsCapacity) {
  for (const std::uint64_t frames : {1U, 5U, 50U}) {
    Sim sim({.policy = policy_of(leaky(1_mbit, {frames * kFrame}))});
    sim.add(bursts(packet_of(1), 20, 50ms));
    for (int step = 0; step < 1'000; ++step) {
      sim.run_for(5ms);
      ASSERT_LE(sim.snapshot().classes[0].backlog_bytes.value, (frames + 1) * kFrame);
    }
    EXPECT_GT(sim.dropped(DropReason::backlog), 0U) << frames;
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(Leaky, TellsWhatAPacketThatComesNowWillWait) {
  for (int before = 0; before < 30; ++before) {
    Sim sim({.policy = policy_of(leaky(1_mbit, {100'000}))});
    for (int n = 0; n < before; ++n) sim.send(packet_of(1));
    sim.run_for(5ms);
    const std::optional<Nanos> told = sim.snapshot().classes[0].wait;
    ASSERT_TRUE(told.has_value());
    sim.send(packet_of(1));
    sim.drain();
    EXPECT_EQ(sim.departures().back().delay(), *told) << before << " packets before it";
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(Leaky, SlackKeepsTheRateWhenWakeUpsAreLate) {
  Sim sim({.policy = policy_of(leaky(10_mbit, {100'000})), .lateness = random_lateness(1ms)});
  sim.add(greedy(packet_of(1), 30));
  sim.run_for(10s);
  EXPECT_GE(sim.sent().value + 2 * kFrame, bytes_in(10_mbit, 10s).value);
  EXPECT_EQ(sim.snapshot().classes[0].late_bytes.value, 0U);
  EXPECT_EQ(sim.broken(), "");
}

}  // namespace
}  // namespace shaper::sim
