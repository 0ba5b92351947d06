// Named limits: buckets that classes and links share, for all together or one for each key.
// Limits of a cluster: grant_test.cpp.
#include <gtest/gtest.h>

#include "tests/sim.h"

namespace shaper::sim {
namespace {

constexpr double kFrame = 1514;

ClassPolicy limited(ClassPolicy policy, std::vector<LimitIndex> limits = {0}) {
  policy.limits = std::move(limits);
  return borrowing(policy);
}

/// Two links without a rate; both default classes are charged to one limit.
Policy two_links(const LimitPolicy& limit) {
  Policy policy = policy_of(limited(default_class()), limited(default_class()));
  policy.links.push_back(link_named("second"));
  policy.classes[1].link = 1;
  policy.limits.push_back(limit);
  return policy;
}

/// What a busy limit of this rate lets pass in this time: within one frame.
void expect_used_up(const Sim& sim, DataRate rate, Nanos time, double frames = 1) {
  const std::uint64_t most = bytes_in(rate, time).value + 1'514 + bytes_in(rate, kDefaultBurst).value;
  EXPECT_LE(sim.sent().value, most);
  EXPECT_GE(static_cast<double>(sim.sent().value) + frames * kFrame, static_cast<double>(most));
}

TEST(Limit, HoldsForAllClassesAndLinksTogether) {
  Sim sim({.policy = two_links(limit_named("total", 10_mbit))});
  sim.add(greedy(packet_of(flow_of(1, 0))));
  sim.add(greedy(on_link(packet_of(flow_of(2, 0)), 1)));
  sim.run_for(5s);
  expect_used_up(sim, 10_mbit, 5s);
  EXPECT_NEAR(static_cast<double>(sim.sent_by_class(0).value), static_cast<double>(sim.sent_by_class(1).value),
              6 * kFrame)
      << "but for the burst at the start";
  EXPECT_EQ(sim.broken(), "");
}

TEST(Limit, IsSharedInProportionToTheWeightsOfItsClasses) {
  Policy policy = two_links(limit_named("total", 12_mbit));
  policy.classes[0].rate = 10_mbit;
  policy.classes[1].rate = 20_mbit;
  Sim sim({.policy = policy});
  sim.add(greedy(packet_of(flow_of(1, 0), 400)));
  sim.add(greedy(on_link(packet_of(flow_of(2, 0)), 1)));
  sim.run_for(5s);
  expect_used_up(sim, 12_mbit, 5s);
  EXPECT_NEAR(2.0 * static_cast<double>(sim.sent_by_class(0).value), static_cast<double>(sim.sent_by_class(1).value),
              0.01 * static_cast<double>(sim.sent().value));
  EXPECT_EQ(sim.broken(), "");
}

TEST(Limit, ServesTheFirstPriorityFirst) {
  Policy policy = two_links(limit_named("total", 10_mbit));
  policy.classes[1].priority = 0;
  Sim sim({.policy = policy});
  sim.add(greedy(packet_of(flow_of(1, 0))));
  sim.run_for(1s);
  sim.add(constant(on_link(packet_of(flow_of(2, 0), 986), 1), 2ms));  // 4 Mbit/s
  const Instant begin = sim.now();
  sim.run_for(4s);
  EXPECT_NEAR(static_cast<double>(sim.sent_by_class(1, begin).value), 4.0 * 500'000, 3'000);
  EXPECT_LE(sim.delays(flow_of(2, 0)).back(), time_for(10_mbit, {1'514 + 1'000}));
  expect_used_up(sim, 10_mbit, 5s);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Limit, AClassThatWaitsForItsSlowLinkLeavesTheLimitToTheOthers) {
  Policy policy = two_links(limit_named("total", 10_mbit));
  policy.links[0].rate = 1_mbit;
  Sim sim({.policy = policy});
  sim.add(greedy(packet_of(flow_of(1, 0))));
  sim.add(greedy(on_link(packet_of(flow_of(2, 0)), 1)));
  sim.run_for(5s);
  EXPECT_NEAR(static_cast<double>(sim.sent_by_class(0).value), 625'000, 2 * kFrame);
  expect_used_up(sim, 10_mbit, 5s, 2);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Limit, ASmallLimitIsNotKeptWaitingByASlowLinkEither) {
  // One frame and 500 bytes deep: what the slow link's class needs is most of it.
  Policy policy = two_links(limit_named("total", 1_mbit));
  policy.links[0].rate = 100_kbit;
  Sim sim({.policy = policy});
  sim.add(greedy(packet_of(flow_of(1, 0))));
  sim.add(greedy(on_link(packet_of(flow_of(2, 0)), 1)));
  sim.run_for(20s);
  EXPECT_NEAR(static_cast<double>(sim.sent_by_class(0).value), 250'000, 3 * kFrame);
  expect_used_up(sim, 1_mbit, 20s, 2);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Limit, AClassThatWaitsForItsOwnCeilLeavesTheLimitToTheOthers) {
  Policy policy = two_links(limit_named("total", 10_mbit));
  policy.classes[0].ceil_is_link = false;
  policy.classes[0].ceil = 2_mbit;
  policy.classes[0].priority = 0;
  Sim sim({.policy = policy});
  sim.add(greedy(packet_of(flow_of(1, 0))));
  sim.add(greedy(on_link(packet_of(flow_of(2, 0)), 1)));
  sim.run_for(5s);
  EXPECT_NEAR(static_cast<double>(sim.sent_by_class(0).value), 1'250'000, 3 * kFrame);
  expect_used_up(sim, 10_mbit, 5s);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Limit, OneOfTwoLimitsThatHoldsDoesNotUseUpTheOther) {
  // Class 0 obeys both, class 1 only the wide one, class 2 only the narrow one.
  Policy policy = policy_of(limited(class_marked("both", 1), {0, 1}), limited(class_marked("wide", 2), {0}),
                            limited(class_marked("narrow", 3), {1}), default_class());
  policy.limits = {limit_named("wide", 10_mbit), limit_named("narrow", 2_mbit)};
  Sim sim({.policy = policy});
  for (const std::uint32_t mark : {1U, 2U, 3U}) sim.add(greedy(packet_of(flow_of(mark, 0), 1'500, mark)));
  sim.run_for(5s);
  const auto sent = [&sim](ClassIndex index) { return static_cast<double>(sim.sent_by_class(index).value); };
  EXPECT_NEAR(sent(0) + sent(1), 5 * 1.25e6 + 5'000, 3 * kFrame);
  EXPECT_NEAR(sent(0) + sent(2), 5 * 0.25e6 + 1'000, 3 * kFrame);
  EXPECT_NEAR(sent(0), sent(2), 3 * kFrame);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Limit, GivesEachKeyABucketOfItsOwn) {
  Sim sim({.policy = two_links(limit_named("hosts", 2_mbit, KeyPolicy{EachBy::source}))});
  for (std::uint32_t host = 1; host <= 5; ++host) {
    sim.add(greedy(packet_of(flow_of(host, 0))));
    sim.add(greedy(packet_of(flow_of(host, 1))));
    sim.add(greedy(on_link(packet_of(flow_of(host, 2)), 1)));
  }
  sim.run_for(5s);
  for (std::uint32_t host = 1; host <= 5; ++host) {
    std::uint64_t sent = 0;
    for (std::uint32_t port = 0; port < 3; ++port) sent += sim.sent(flow_of(host, port)).value;
    EXPECT_NEAR(static_cast<double>(sent), 5 * 0.25e6 + 1'000, 2 * kFrame) << "host " << host;
  }
  EXPECT_EQ(sim.snapshot().limits[0].keys, 5U);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Limit, CountsBothDirectionsOfALocalHostTogether) {
  Policy policy = two_links(limit_named("hosts", 2_mbit, KeyPolicy{EachBy::local}));
  policy.links[1].direction = Direction::ingress;
  Sim sim({.policy = policy});
  std::vector<std::uint32_t> of_host[3];
  for (std::uint32_t host = 1; host <= 2; ++host) {
    Packet down = on_link(packet_of(flow_of(100 + host, 0)), 1);
    down.headers.destination = host_address(host, Family::ipv4);
    sim.add(greedy(packet_of(flow_of(host, 0))));
    sim.add(greedy(down));
    of_host[host] = {flow_of(host, 0), flow_of(100 + host, 0)};
  }
  sim.run_for(5s);
  for (std::uint32_t host = 1; host <= 2; ++host) {
    const double up = static_cast<double>(sim.sent(of_host[host][0]).value);
    const double down = static_cast<double>(sim.sent(of_host[host][1]).value);
    EXPECT_NEAR(up + down, 5 * 0.25e6 + 1'000, 2 * kFrame) << "host " << host;
    EXPECT_NEAR(up, down, 0.1 * up) << "host " << host;
  }
  EXPECT_EQ(sim.broken(), "");
}

TEST(Limit, AFlowThatWaitsForItsSlowLinkLeavesItsKeyToOthers) {
  // One host, one bucket of 10 Mbit/s, a link of 1 Mbit/s and one without a rate.
  for (const Nanos burst : {Nanos{4ms}, Nanos{0}}) {
    Policy policy = two_links(limit_named("hosts", 10_mbit, KeyPolicy{EachBy::source}));
    policy.limits[0].burst = burst;
    policy.links[0].rate = 1_mbit;
    Sim sim({.policy = policy});
    sim.add(greedy(packet_of(flow_of(1, 0))));
    sim.add(greedy(on_link(packet_of(flow_of(1, 1)), 1)));
    sim.run_for(5s);
    EXPECT_GE(static_cast<double>(sim.sent().value) + 2 * kFrame, 5 * 1.25e6) << burst.count() << " ns of burst";
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(Limit, AFlowWhoseKeyIsUsedUpHoldsUpNobodyElse) {
  Sim sim({.policy = two_links(limit_named("hosts", 1_mbit, KeyPolicy{EachBy::source}))});
  for (std::uint32_t port = 0; port < 8; ++port) sim.add(greedy(packet_of(flow_of(1, port))));
  const std::uint32_t other = flow_of(2, 0);
  sim.add(constant(packet_of(other), 20ms));  // 0.6 Mbit/s
  sim.run_for(5s);
  EXPECT_EQ(sim.delays(other).back(), Nanos{0});
  EXPECT_EQ(sim.broken(), "");
}

TEST(Limit, EveryBucketOfThePathHoldsAtOnce) {
  // each 3, ceil 8, a limit of 10 with another class, a keyed limit of 5, a link of 20: the simulation checks them all.
  ClassPolicy policy = class_marked("busy", 1, 4_mbit);
  policy.ceil = 8_mbit;
  policy.each = each_of(EachBy::flow, 3_mbit);
  policy.limits = {0, 1};
  Policy whole = link_of(20_mbit, policy, limited(class_marked("other", 2)), borrowing(default_class()));
  whole.limits = {limit_named("total", 10_mbit), limit_named("hosts", 5_mbit, KeyPolicy{EachBy::source})};
  Sim sim({.policy = whole, .count_every = 4});
  for (std::uint32_t flow = 0; flow < 6; ++flow) sim.add(greedy(packet_of(flow_of(flow / 3, flow), 1'500, 1)));
  sim.add(greedy(packet_of(flow_of(5, 0), 900, 2)));
  sim.add(greedy(packet_of(flow_of(6, 0), 300)));
  sim.run_for(5s);
  const auto mbit = [&sim](ClassIndex index) { return static_cast<double>(sim.sent_by_class(index).value) * 8 / 5e6; };
  EXPECT_NEAR(mbit(0) + mbit(1), 10, 0.1);
  EXPECT_LE(mbit(0), 8.05);
  EXPECT_NEAR(mbit(0) + mbit(1) + mbit(2), 20, 0.1);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Limit, WhatALinkHoldsBackIsNotChargedToTheLimit) {
  // Ten packets wait for the link; the limit still has its whole burst for another link.
  Policy policy = two_links(limit_named("total", 8_mbit));
  policy.limits[0].burst = ByteCount{20'000};
  policy.links[0].rate = 100_kbit;
  Sim sim({.policy = policy});
  for (int n = 0; n < 11; ++n) sim.send(packet_of(flow_of(1, 0)));
  ASSERT_EQ(sim.held(), 10U);
  EXPECT_EQ(sim.snapshot().limits[0].credit, std::optional{ByteCount{20'000}});
  for (int n = 0; n < 12; ++n) sim.send(on_link(packet_of(flow_of(2, 0)), 1));
  EXPECT_EQ(sim.held(), 10U) << "13 frames are 19.7 kB, and one is set aside";
  sim.drain();
  EXPECT_EQ(sim.broken(), "");
}

TEST(Limit, DoesNotRefillByASwap) {
  for (const bool keyed : {false, true}) {
    LimitPolicy limit = limit_named("total", 1_mbit);
    if (keyed) limit.by = KeyPolicy{EachBy::source};
    Sim sim({.policy = two_links(limit)});
    for (int n = 0; n < 10; ++n) {
      sim.send(on_link(packet_of(flow_of(1, 0), 486), static_cast<LinkIndex>(n % 2)));
      sim.swap(two_links(limit));
    }
    EXPECT_EQ(sim.sent().value, (1'514 + 500) / 500 * 500U);
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(Limit, AFullOneMakesNobodyWaitAlsoForALargePacket) {
  // Above the depth: delayed or policed, such packets pass now and then.
  for (const Over over : {Over::delay, Over::drop}) {
    for (const bool keyed : {false, true}) {
      LimitPolicy limit = limit_named("total", 1_mbit);
      limit.burst = ByteCount{0};
      if (keyed) limit.by = KeyPolicy{EachBy::source};
      Policy policy = two_links(limit);
      policy.classes[0].over = over;
      Sim sim({.policy = policy});
      sim.add(constant(packet_of(1, 9'000), 40ms));
      sim.run_for(20s);
      EXPECT_GT(sim.sent().value, bytes_in(1_mbit, 20s).value / 2) << (over == Over::drop ? "drop" : "delay");
      EXPECT_EQ(sim.broken(), "");
    }
  }
}

TEST(Limit, StartsEmptyAfterACrash) {
  for (const bool keyed : {false, true}) {
    LimitPolicy limit = limit_named("total", 1_mbit);
    if (keyed) limit.by = KeyPolicy{EachBy::source};
    Sim sim({.policy = two_links(limit), .credit = StartCredit::empty});
    sim.send(packet_of(1));
    sim.run_for(1s);
    ASSERT_EQ(sim.departures().size(), 1U);
    EXPECT_EQ(sim.departures()[0].delay(), time_for(1_mbit, {1'514}));
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(Limit, SmallPacketsOfAnotherClassUseWhatIsSavedForALargeOne) {
  // At a bucket that classes share the turn is by tags: a class that sends little does not wait for a full frame's
  // credit.
  Policy policy = two_links(limit_named("total", 1_mbit));
  policy.classes[1].priority = 0;
  Sim sim({.policy = policy});
  sim.add(greedy(packet_of(flow_of(1, 0))));
  sim.run_for(1s);
  sim.send(on_link(packet_of(flow_of(2, 0), 86), 1));
  sim.run_for(1s);
  ASSERT_EQ(sim.delays(flow_of(2, 0)).size(), 1U);
  EXPECT_LE(sim.delays(flow_of(2, 0))[0], time_for(1_mbit, {100}));
  EXPECT_EQ(sim.broken(), "");
}

TEST(Limit, TellsItsRateAndCredit) {
  Sim sim({.policy = two_links(limit_named("total", 10_mbit))});
  sim.add(constant(packet_of(flow_of(1, 0), 986), 4ms));              // 2 Mbit/s
  sim.add(constant(on_link(packet_of(flow_of(2, 0), 986), 1), 2ms));  // 4 Mbit/s
  sim.run_for(3s);
  const LimitSnapshot told = sim.snapshot().limits[0];
  EXPECT_NEAR(static_cast<double>(told.rate.bits_per_second), 6e6, 1e5);
  EXPECT_EQ(told.keys, 1U);
  EXPECT_EQ(told.depth, std::optional{ByteCount{1'514 + 5'000}});
  EXPECT_LE(told.credit, told.depth);
  EXPECT_EQ(sim.broken(), "");
}

}  // namespace
}  // namespace shaper::sim
