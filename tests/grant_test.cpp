// Limits over many hosts: nothing leaves that was not granted, grants end, and they leave no faster than told.
#include <gtest/gtest.h>

#include "shaper/core/keyed_buckets.h"
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

/// A core without a kernel around it, with a limit of one bucket for each source.
struct ManySources {
  ManySources() : core(PreparedPolicy(clustered(KeyPolicy{EachBy::source})), StartCredit::full, {}, now) {}

  void send(std::uint32_t first, std::uint32_t last) {
    for (std::uint32_t host = first; host <= last; ++host) {
      Verdicts verdicts;
      core.on_packet(packet_of(flow_of(host, 0)), now, verdicts);
    }
  }
  std::size_t stirred() {
    std::vector<LimitKey> keys;
    core.stirred(keys);
    return keys.size();
  }

  /// Packets that leave for a grant to the bucket of those that have none of their own.
  std::size_t sent_for_others(std::uint64_t bytes) {
    Verdicts verdicts;
    core.on_grant({{0, kOtherKeys}, {bytes}, now + 1s, kAnyPace}, now, verdicts);
    core.release(now + 10ms, verdicts);
    return verdicts.size();
  }

  Instant now{1s};
  Shaper core;
};

TEST(Grants, KeysBeyondTheMostShareOneBucket) {
  ManySources sources;
  sources.send(1, kMostGrantedKeys);
  EXPECT_EQ(sources.core.snapshot(sources.now).limits[0].other_flows, 0U);
  sources.send(kMostGrantedKeys + 1, kMostGrantedKeys + 10);
  const CoreSnapshot snapshot = sources.core.snapshot(sources.now);
  EXPECT_EQ(snapshot.limits[0].other_flows, 10U);
  EXPECT_EQ(snapshot.limits[0].keys, kMostGrantedKeys + 1);
  const LimitKey others{0, kOtherKeys};
  EXPECT_EQ(sources.core.demand(others, sources.now)->waiting.value, 10U * 1'514);
  EXPECT_EQ(sources.sent_for_others(4 * 1'514), 4U) << "of ten that wait for it";
}

TEST(Grants, OthersSpendTheirsAlsoBehindAChangeOfPolicy) {
  ManySources sources;
  sources.send(1, kMostGrantedKeys + 10);
  Verdicts verdicts;
  sources.core.swap(PreparedPolicy(clustered(KeyPolicy{EachBy::source})), sources.now, verdicts);
  EXPECT_EQ(sources.core.snapshot(sources.now).limits[0].other_flows, 10U);
  EXPECT_EQ(sources.sent_for_others(20 * 1'514), 10U);
}

TEST(Grants, OnlyBucketsThatPacketsCameToAreTold) {
  ManySources sources;
  sources.send(1, 5);
  sources.send(1, 5);
  EXPECT_EQ(sources.stirred(), 5U) << "each once";
  EXPECT_EQ(sources.stirred(), 0U);
  sources.send(3, 4);
  EXPECT_EQ(sources.stirred(), 2U);
  EXPECT_EQ(sources.core.demand({0, kOtherKeys}, sources.now), std::nullopt) << "there is none";
}

TEST(Grants, TheOneBucketOfALimitIsToldToo) {
  Shaper core(PreparedPolicy(clustered()), StartCredit::full, {}, Instant{1s});
  std::vector<LimitKey> keys;
  core.stirred(keys);
  EXPECT_TRUE(keys.empty());
  Verdicts verdicts;
  core.on_packet(packet_of(1), Instant{1s}, verdicts);
  core.stirred(keys);
  EXPECT_EQ(keys.size(), 1U);
  core.stirred(keys);
  EXPECT_EQ(keys.size(), 1U);
}

}  // namespace
}  // namespace shaper::sim
