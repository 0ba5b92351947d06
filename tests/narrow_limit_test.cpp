// Limits that are for some flows of a class only.
#include <gtest/gtest.h>

#include "tests/sim.h"

namespace shaper::sim {
namespace {

/// One class without any rate, and a limit for what comes from port 1000.
Policy narrow(DataRate rate = 10_mbit) {
  Policy policy = policy_of(borrowing(default_class()));
  policy.classes[0].limits = {0};
  policy.limits.push_back(limit_named("live-1", rate, KeyPolicy{EachBy::all}));
  Match match;
  match.source_port = {{1000, 1000}};
  policy.limits[0].match = {match};
  return policy;
}

Policy without(Policy policy) {
  policy.classes[0].limits.clear();
  policy.limits.clear();
  return policy;
}

void expect_about(ByteCount seen, DataRate rate, Nanos time) {
  const std::uint64_t most = bytes_in(rate, time).value + 1'514 + bytes_in(rate, kDefaultBurst).value;
  EXPECT_LE(seen.value, most);
  EXPECT_GE(seen.value + 2 * 1'514, bytes_in(rate, time).value);
}

constexpr std::uint32_t kFirst = flow_of(1, 0), kSecond = flow_of(2, 0), kOther = flow_of(1, 1);

TEST(NarrowLimit, HoldsForItsFlowsTogetherAndForNoOthers) {
  Sim sim({.policy = narrow()});
  sim.add(greedy(packet_of(kFirst)));
  sim.add(greedy(packet_of(kSecond)));
  sim.add(constant(packet_of(kOther), 120us));
  sim.run_for(5s);
  const ByteCount both = sim.sent(kFirst) + sim.sent(kSecond);
  expect_about(both, 10_mbit, 5s);
  EXPECT_NEAR(static_cast<double>(sim.sent(kFirst).value) * 2, static_cast<double>(both.value), 0.01 * 6.25e6);
  for (const Nanos delay : sim.delays(kOther)) ASSERT_EQ(delay, 0ns) << "nothing else waits";
  EXPECT_GE(sim.sent(kOther).value / 1'514, 5s / 120us);
  EXPECT_EQ(sim.broken(), "");
}

TEST(NarrowLimit, NarrowsAClassThatHasARate) {
  Policy policy = narrow(4_mbit);
  policy.classes[0].rate = 10_mbit;
  policy.classes[0].ceil_is_link = false;
  Sim sim({.policy = policy});
  for (const std::uint32_t flow : {kFirst, kOther}) sim.add(greedy(packet_of(flow)));
  sim.run_for(5s);
  expect_about(sim.sent(kFirst), 4_mbit, 5s);
  expect_about(sim.sent(), 10_mbit, 5s);
  EXPECT_EQ(sim.broken(), "");
}

TEST(NarrowLimit, ComesAndGoesWhilePacketsAreHeld) {
  Sim sim({.policy = without(narrow())});
  sim.add(greedy(packet_of(kFirst)));
  sim.add(constant(packet_of(kOther), 1ms));
  for (int turn = 0; turn < 20; ++turn) {
    sim.run_for(20ms);
    sim.swap(narrow());
    const Instant begin = sim.now() + 1ns;
    sim.run_for(200ms);
    expect_about(sim.sent(kFirst, begin), 10_mbit, 200ms);
    sim.swap(without(narrow()));
  }
  EXPECT_EQ(sim.dropped(), 0U);
  EXPECT_EQ(sim.broken(), "");
}

TEST(NarrowLimit, IsKeptByAnotherPolicyAndByAnotherProcess) {
  Sim sim({.policy = narrow(1_mbit)});
  for (int n = 0; n < 10; ++n) {
    sim.send(packet_of(kFirst, 486));
    n % 2 == 0 ? sim.swap(narrow(1_mbit)) : static_cast<void>(sim.restart());
  }
  EXPECT_EQ(sim.sent().value, (1'514 + 500) / 500 * 500U) << "its credit does not refill";
  EXPECT_EQ(sim.broken(), "");
}

TEST(NarrowLimit, IsForAnOwnerWhoBecomesKnown) {
  Policy policy = narrow();
  policy.limits[0].match[0] = {};
  policy.limits[0].match[0].user.ids = {{1000, 1000}};
  Sim sim({.policy = policy});
  Packet packet = packet_of(kFirst);
  for (int n = 0; n < 100; ++n) sim.send(packet);
  EXPECT_EQ(sim.held(), 0U) << "nobody's";
  packet.user = 1000;
  for (int n = 0; n < 100; ++n) sim.send(packet);
  EXPECT_GT(sim.held(), 90U);
  sim.drain();
  packet.user = 1001;
  for (int n = 0; n < 100; ++n) sim.send(packet);
  EXPECT_EQ(sim.held(), 0U) << "a socket may have a new owner";
  EXPECT_EQ(sim.broken(), "");
}

TEST(NarrowLimit, AsksForNoOwnerWhereNoneIsNamed) {
  Sim sim({.policy = narrow(1_mbit)});
  Packet packet = packet_of(kFirst);
  for (int n = 0; n < 10; ++n) sim.send(packet);
  EXPECT_GT(sim.held(), 0U);
  packet.user = 1000;
  sim.send(packet);
  EXPECT_EQ(sim.flows().at(0).user, 1000U) << "it is known though packets wait";
  sim.drain();
  EXPECT_EQ(sim.broken(), "");
}

TEST(NarrowLimit, SplitsTheSuperPacketsOfItsFlowsOnly) {
  Sim sim({.policy = narrow()});
  sim.add(greedy(super_packet_of(kFirst), 3));
  sim.run_for(1s);
  const std::uint64_t split = sim.detours();
  EXPECT_GT(split, 10U);
  sim.add(constant(super_packet_of(kOther), 10ms));
  sim.run_for(1s);
  EXPECT_LE(sim.detours(), 2 * split + 5) << "but for those that teach";
  EXPECT_EQ(sim.broken(), "");
}

TEST(NarrowLimit, GivesItsFlowsTheTimeThatASlowRateNeeds) {
  // 100 frames take 12 s; a class without a rate lets nothing wait for more than 250 ms.
  Policy policy = narrow(100_kbit);
  policy.classes[0].aqm = false;
  Sim sim({.policy = policy});
  for (int n = 0; n < 100; ++n) sim.send(packet_of(kFirst));
  sim.drain();
  EXPECT_EQ(sim.dropped(), 0U);
  policy.classes[0].max_delay = 250ms;
  Sim strict({.policy = policy});
  for (int n = 0; n < 100; ++n) strict.send(packet_of(kFirst));
  strict.drain();
  EXPECT_GT(strict.dropped(DropReason::max_delay), 90U) << "the policy says so";
}

}  // namespace
}  // namespace shaper::sim
