// Limits over many hosts: nothing leaves that was not granted, grants end, and they leave no faster than told.
#include <gtest/gtest.h>

#include "tests/sim_granter.h"

namespace shaper::sim {
namespace {

Policy clustered(std::optional<KeyPolicy> by = {}) {
  ClassPolicy policy = borrowing(default_class());
  policy.limits = {0};
  Policy whole = policy_of(policy);
  whole.limits.push_back(limit_named("tenant", 10_mbit, by));
  whole.limits[0].scope = Scope::cluster;
  return whole;
}

constexpr DataRate kAnyPace = 100_gbit;

/// A grant for the one bucket of limit 0.
Grant grant_of(const Sim& sim, std::uint64_t bytes, Nanos valid = 1s, DataRate pace = kAnyPace) {
  return {{}, {bytes}, sim.now() + valid, pace};
}

TEST(Grants, NothingPassesBeforeTheFirst) {
  Sim sim({.policy = clustered()});
  for (int n = 0; n < 3; ++n) sim.send(packet_of(1));
  sim.run_for(100ms);
  EXPECT_EQ(sim.held(), 3U);
  sim.grant(grant_of(sim, 2 * 1'514));
  sim.run_for(1us);
  EXPECT_EQ(sim.held(), 1U) << "two were paid for, and go";
  sim.grant(grant_of(sim, 1'514));
  sim.run_for(1us);
  EXPECT_EQ(sim.held(), 0U);
  EXPECT_EQ(sim.dropped(), 0U);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Grants, WhatIsLeftStaysUntilItsTime) {
  Sim sim({.policy = clustered()});
  sim.grant(grant_of(sim, 100'000, 200ms));
  sim.run_for(199ms);
  sim.send(packet_of(1));
  EXPECT_EQ(sim.held(), 0U);
  sim.run_for(1ms);
  sim.send(packet_of(1));
  EXPECT_EQ(sim.held(), 1U) << "nothing is left at its time";
  sim.run_for(50ms);
  sim.grant(grant_of(sim, 1'514, 200ms));
  EXPECT_EQ(sim.held(), 0U);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Grants, AddUpAndTheLatestTellsHowLong) {
  Sim sim({.policy = clustered()});
  sim.grant(grant_of(sim, 1'514, 100ms));
  sim.grant(grant_of(sim, 1'514, 300ms));
  sim.run_for(200ms);
  sim.send(packet_of(1));
  sim.send(packet_of(1));
  EXPECT_EQ(sim.held(), 0U);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Grants, LeaveNoFasterThanTheirPace) {
  Sim sim({.policy = clustered()});
  sim.add(greedy(packet_of(1), 50));
  sim.run_for(10ms);
  Meter pace(1_mbit, {1'514}, Nanos{0}, std::nullopt, sim.now());
  const Instant begin = sim.now();
  sim.grant(grant_of(sim, 1'000'000, 10s, 1_mbit));
  sim.run_for(2s);
  for (const Departure& departure : sim.departures()) {
    if (!departs(departure.decision)) continue;
    ASSERT_TRUE(pace.charge(departure.when, departure.wire_bytes));
  }
  EXPECT_GE(sim.sent({}, begin).value + 1'514, bytes_in(1_mbit, 2s).value);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Grants, AreKeptApartByKey) {
  Sim sim({.policy = clustered(KeyPolicy{EachBy::source})});
  for (std::uint32_t host = 1; host <= 2; ++host) {
    for (int n = 0; n < 3; ++n) sim.send(packet_of(flow_of(host, 0)));
  }
  std::vector<Demand> demands = sim.demand();
  ASSERT_EQ(demands.size(), 2U);
  for (const Demand& entry : demands) EXPECT_EQ(entry.waiting.value, 3U * 1'514);
  sim.grant({demands[0].from, {3 * 1'514}, sim.now() + 1s, kAnyPace});
  sim.run_for(1us);
  EXPECT_EQ(sim.held(), 3U);
  const std::vector<Nanos> first = sim.delays(flow_of(1, 0)), second = sim.delays(flow_of(2, 0));
  EXPECT_EQ(std::max(first.size(), second.size()), 3U) << "all of one host";
  EXPECT_EQ(sim.broken(), "");
}

TEST(Grants, ForABucketThatIsGoneAreIgnored) {
  Sim sim({.policy = clustered(KeyPolicy{EachBy::source})});
  FlowKey stranger;
  stranger.family = Family::ipv4;
  stranger.source = ipv4(1, 2, 3, 4);
  sim.grant({{0, stranger}, {100'000}, sim.now() + 1s, kAnyPace});
  sim.grant({{7, {}}, {100'000}, sim.now() + 1s, kAnyPace});
  sim.send(packet_of(flow_of(1, 0)));
  EXPECT_EQ(sim.held(), 1U);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Grants, ALocalLimitTakesNone) {
  Policy policy = clustered();
  policy.limits[0].scope = Scope::host;
  Sim sim({.policy = policy});
  sim.grant(grant_of(sim, 1'000'000));
  for (int n = 0; n < 100; ++n) sim.send(packet_of(1));
  EXPECT_GT(sim.held(), 90U);
  EXPECT_TRUE(sim.demand().empty());
  EXPECT_EQ(sim.broken(), "");
}

TEST(Grants, DemandTellsWhatCameWentAndWaits) {
  Sim sim({.policy = clustered()});
  sim.grant(grant_of(sim, 2'000));
  for (int n = 0; n < 4; ++n) sim.send(packet_of(1, 986));
  sim.run_for(1us);
  const std::vector<Demand> demands = sim.demand();
  ASSERT_EQ(demands.size(), 1U);
  EXPECT_EQ(demands[0].arrived.value, 4'000U);
  EXPECT_EQ(demands[0].spent.value, 2'000U);
  EXPECT_EQ(demands[0].waiting.value, 2'000U);
  EXPECT_EQ(demands[0].left.value, 0U);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Grants, CanBeTakenBackButNotMoreThanIsLeft) {
  Sim sim({.policy = clustered()});
  sim.grant(grant_of(sim, 5'000));
  EXPECT_EQ(sim.take_back({}, {2'000}).value, 2'000U);
  EXPECT_EQ(sim.take_back({}, {10'000}).value, 3'000U);
  EXPECT_EQ(sim.take_back({}, {1}).value, 0U);
  sim.send(packet_of(1));
  EXPECT_EQ(sim.held(), 1U);
  sim.grant(grant_of(sim, 10'000, 100ms));
  sim.run_for(100ms);
  EXPECT_EQ(sim.take_back({}, {10'000}).value, 0U) << "it has ended";
  EXPECT_EQ(sim.broken(), "");
}

TEST(Grants, MaxDelayDropsWithoutThem) {
  for (const bool keyed : {false, true}) {
    Policy policy = clustered(keyed ? std::optional{KeyPolicy{EachBy::source}} : std::nullopt);
    policy.classes[0].max_delay = 300ms;
    Sim sim({.policy = policy});
    for (int n = 0; n < 5; ++n) sim.send(packet_of(1));
    sim.run_for(299ms);
    EXPECT_EQ(sim.held(), 5U);
    sim.run_for(2ms);
    EXPECT_EQ(sim.held(), 0U);
    EXPECT_EQ(sim.dropped(DropReason::max_delay), 5U);
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(Grants, KeepOneRateOverAllKeysAndSpendNoMoreThanWasGiven) {
  for (const bool keyed : {false, true}) {
    Policy policy = clustered(keyed ? std::optional{KeyPolicy{EachBy::source}} : std::nullopt);
    Sim sim({.policy = policy});
    for (std::uint32_t host = 1; host <= 5; ++host) sim.add(greedy(packet_of(flow_of(host, 0)), 40));
    Granter granter(0, 10_mbit, 40ms, sim.now());
    granter.run(sim, 5s);
    EXPECT_LE(sim.sent().value, granter.given().value + 5 * 1'514) << "a packet of each key may be owed";
    EXPECT_GE(sim.sent().value, bytes_in(10_mbit, 5s).value * 95 / 100);
    EXPECT_LE(sim.sent().value, bytes_in(10_mbit, 5s).value + 5 * 1'514);
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(Grants, APacketLargerThanEveryGrantPassesAndIsPaidForLater) {
  Sim sim({.policy = clustered()});
  sim.add(greedy(packet_of(1), 5));
  for (int n = 0; n < 200; ++n) {
    sim.grant(grant_of(sim, 500, 100ms));
    sim.run_for(10ms);
  }
  EXPECT_GE(sim.sent().value, 200U * 500 - 1'514);
  EXPECT_LE(sim.sent().value, 200U * 500 + 1'514);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Grants, SurviveASwapOfThePolicy) {
  Sim sim({.policy = clustered()});
  sim.grant(grant_of(sim, 2 * 1'514));
  sim.swap(clustered());
  for (int n = 0; n < 3; ++n) sim.send(packet_of(1));
  sim.run_for(1us);
  EXPECT_EQ(sim.held(), 1U);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Grants, ALimitThatRefusesDropsWhatIsHeldAndWhatComes) {
  for (const bool keyed : {false, true}) {
    Policy policy = clustered(keyed ? std::optional<KeyPolicy>(KeyPolicy{EachBy::source}) : std::nullopt);
    policy.classes[0].aqm = false;
    Sim sim({.policy = policy});
    for (int n = 0; n < 5; ++n) sim.send(packet_of(1));
    const LimitKey bucket = sim.demand().at(0).from;
    EXPECT_EQ(sim.held(), 5U);
    sim.refuse(bucket, true);
    EXPECT_EQ(sim.held(), 0U);
    sim.send(packet_of(1));
    EXPECT_EQ(sim.dropped(DropReason::refused), 6U);
    EXPECT_EQ(sim.demand().at(0).waiting.value, 0U);
    sim.refuse(bucket, false);
    sim.send(packet_of(1));
    EXPECT_EQ(sim.held(), 1U);
    sim.count();
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(Grants, WhoeverGrantsBehindARestartSaysAnewWhatIsRefused) {
  Sim sim({.policy = clustered()});
  sim.refuse({}, true);
  ASSERT_TRUE(sim.restart());
  sim.send(packet_of(1));
  EXPECT_EQ(sim.held(), 1U);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Grants, OthersGoOnWhileALimitRefuses) {
  Policy policy = clustered(KeyPolicy{EachBy::source});
  Sim sim({.policy = policy});
  for (const std::uint32_t host : {1U, 2U}) {
    for (int n = 0; n < 3; ++n) sim.send(packet_of(flow_of(host, 0)));
  }
  const std::vector<Demand> demands = sim.demand();
  ASSERT_EQ(demands.size(), 2U);
  sim.refuse(demands[0].from, true);
  EXPECT_EQ(sim.held(), 3U);
  sim.grant({demands[1].from, {3 * 1'514}, sim.now() + 1s, kAnyPace});
  sim.run_for(1us);
  EXPECT_EQ(sim.held(), 0U);
  EXPECT_EQ(sim.dropped(), 3U);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Grants, WhatWaitsIsCountedOnceAfterASwapAndARestart) {
  Sim sim({.policy = clustered()});
  for (int n = 0; n < 3; ++n) sim.send(packet_of(1));
  const ByteCount waiting = sim.demand().at(0).waiting;
  EXPECT_EQ(waiting.value, 3U * 1'514);
  sim.swap(clustered());
  EXPECT_EQ(sim.demand().at(0).waiting, waiting);
  EXPECT_TRUE(sim.restart());
  EXPECT_EQ(sim.demand().at(0).waiting, waiting);
}

}  // namespace
}  // namespace shaper::sim
