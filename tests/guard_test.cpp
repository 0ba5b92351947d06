// The guard: what is sparse on the operator's ports keeps a share of its own, and a copy through the same port does not
// get around the policy.
#include "shaper/core/guard.h"

#include <gtest/gtest.h>

#include "tests/sim_guard.h"
#include "tests/sim_tree.h"

namespace shaper::sim {
namespace {

std::uint64_t most(DataRate rate, ByteCount depth, Nanos time) {
  return depth.value + bytes_in(rate, time).value;
}

// --- A share, not an exemption ---------------------------------------------------------------------------------------

TEST(Guard, KeystrokesPassBesideACopyThroughTheSamePort) {
  for (const Over over : {Over::drop, Over::delay}) {
    for (const std::uint32_t bytes : {100U, 1'500U}) {
      Sim sim({.policy = guarded(policy_of(all_at(8_kbit, over))), .lateness = random_lateness(5ms)});
      sim.add(keystrokes(kTyping));
      sim.add(greedy(tcp_packet_of(kCopy, bytes), 5));
      sim.run_for(5s);
      sim.add(keystrokes(kTypingLater));
      sim.run_for(5s);
      for (const std::uint32_t flow : {kTyping, kTypingLater}) {
        EXPECT_GE(sim.delays(flow).size(), 24U);
        EXPECT_LT(sim.delays(flow).back(), 100ms);
        EXPECT_EQ(sim.dropped({}, flow), 0U);
      }
      EXPECT_LE(sent(sim, kCopy, kByPolicy), most(8_kbit, {1'514 + 4}, 10s)) << "the class's law";
      EXPECT_LE(sent(sim, kCopy, kGuard), kGuardBurst.value) << "once: it never stops, so it never comes back";
      EXPECT_EQ(sim.broken(), "");
    }
  }
}

TEST(Guard, ARestartGivesACopyNoNewShare) {
  Sim sim({.policy = guarded(policy_of(all_at(8_kbit)))});
  for (int n = 0; n < 40; ++n) {
    sim.send(tcp_packet_of(kCopy, 1'000));
    ASSERT_TRUE(sim.restart());
  }
  EXPECT_LE(sent(sim, kCopy, kGuard), kGuardBurst.value);
  sim.drain();
  EXPECT_EQ(sim.broken(), "");
}

TEST(Guard, WithoutItTheSameKeystrokesAreLost) {
  Sim sim({.policy = policy_of(all_at(8_kbit, Over::drop))});
  sim.add(keystrokes(kTyping));
  sim.add(greedy(tcp_packet_of(kCopy, 100), 5));
  sim.run_for(5s);
  EXPECT_GT(sim.dropped({}, kTyping), 10U);
}

TEST(Guard, WhateverAFlowDoesItGetsNoMoreThanTheClassAndItsOwnBucket) {
  const Source sources[] = {greedy(tcp_packet_of(kCopy), 3), reno(tcp_packet_of(kCopy), 50ms),
                            bursts(tcp_packet_of(kCopy, 700), 11, 1s), poisson(tcp_packet_of(kCopy, 600), 75ms),
                            constant(tcp_packet_of(kCopy, 1486), 1300ms)};
  for (const Over over : {Over::drop, Over::delay}) {
    for (const Source& source : sources) {
      Sim sim({.policy = guarded(policy_of(all_at(8_kbit, over)))});
      sim.add(source);
      sim.run_for(100s);
      EXPECT_LE(sent(sim, kCopy, kGuard), most(kGuardedFlow.rate, kGuardBurst, 100s));
      EXPECT_LE(sent(sim, kCopy, kByPolicy), most(8_kbit, {1'514 + 4}, 100s));
      EXPECT_EQ(sim.broken(), "");
    }
  }
}

TEST(Guard, ManyFlowsTogetherKeepItsRate) {
  for (const std::optional<DataRate> link : {std::optional<DataRate>{}, std::optional{10_mbit}}) {
    Policy policy = policy_of(all_at(8_kbit));
    policy.links[0].rate = link;
    Sim sim({.policy = guarded(policy)});
    // Each stays sparse, all together are more than the guard has.
    for (std::uint32_t host = 0; host < 8; ++host) {
      sim.add(constant(tcp_packet_of(flow_of(host, 0), 486), time_for(60_kbit, {500})));
    }
    sim.run_for(20s);
    const Instant begin = sim.now();
    sim.run_for(10s);
    EXPECT_LE(sim.sent_by_class(kGuard, begin).value, most(kGuardRate, {1'514 + 8'000}, 10s));
    EXPECT_GE(sim.sent_by_class(kGuard, begin).value, bytes_in(kGuardRate, 10s).value - 1'514);
    EXPECT_EQ(sim.sent_by_class(kByPolicy).value, 0U);
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(Guard, ItGoesFirstOnALinkThatPromisedTooMuch) {
  ClassPolicy greedy_class = class_marked("bulk", 1, 50_mbit);
  greedy_class.priority = 0;
  Sim sim({.policy = guarded(link_of(1_mbit, all_at(8_kbit), greedy_class))});
  sim.add(greedy(packet_of(flow_of(9, 1), 1500, 1), 100));
  sim.add(keystrokes(kTyping));
  sim.run_for(20s);
  EXPECT_LT(sim.delays(kTyping).back(), 100ms);
  EXPECT_EQ(sim.snapshot().classes[2].guarantee, kGuardRate);
  EXPECT_EQ(sim.broken(), "");
}

// --- To and fro ------------------------------------------------------------------------------------------------------

TEST(Guard, AFlowThatWasTooMuchComesBackAfterASecondOfQuiet) {
  for (const Over over : {Over::drop, Over::delay}) {
    Sim sim({.policy = guarded(policy_of(all_at(1_mbit, over)))});
    for (int n = 0; n < 40; ++n) sim.send(tcp_packet_of(kCopy));
    sim.run_for(900ms);
    ASSERT_EQ(sim.held(), 0U);
    sim.send(tcp_packet_of(kCopy, 100));
    EXPECT_EQ(latest_class(sim, kCopy), kByPolicy) << "its bucket needs a second to be full";
    sim.run_for(150ms);
    sim.send(tcp_packet_of(kCopy, 100));
    EXPECT_EQ(latest_class(sim, kCopy), kGuard);
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(Guard, AFlowStaysWithThePolicyWhileItHoldsPackets) {
  Sim sim({.policy = guarded(policy_of(all_at(8_kbit)))});
  for (int n = 0; n < 10; ++n) sim.send(tcp_packet_of(kCopy));
  sim.run_for(3s);
  ASSERT_GT(sim.held(), 0U);
  sim.send(tcp_packet_of(kCopy, 100));
  sim.drain();
  EXPECT_EQ(latest_class(sim, kCopy), kByPolicy);
  EXPECT_EQ(sim.broken(), "");
}

/// The guard holds five packets of kCopy behind those of another flow.
void fill(Sim& sim) {
  for (int n = 0; n < 5; ++n) sim.send(tcp_packet_of(flow_of(9, 0)));
  for (int n = 0; n < 5; ++n) sim.send(tcp_packet_of(kCopy));
  ASSERT_GE(sim.snapshot().classes[kGuard].backlog_packets, 4U);
}

TEST(Guard, WhatAFlowHoldsGoesWithItInOrder) {
  Sim sim({.policy = guarded(policy_of(all_at(100_kbit)))});
  fill(sim);
  const std::uint64_t in_guard = sim.snapshot().classes[kGuard].in_packets;
  const std::uint64_t held = sim.snapshot().classes[kGuard].backlog_packets;
  for (int n = 0; n < 5; ++n) sim.send(tcp_packet_of(kCopy));
  sim.count();
  const CoreSnapshot moved = sim.snapshot();
  EXPECT_EQ(moved.classes[kGuard].backlog_packets, 0U);
  EXPECT_EQ(moved.classes[kGuard].in_packets, in_guard - held) << "what moved counts where it leaves";
  EXPECT_EQ(moved.classes[kByPolicy].in_packets, held + 5);
  sim.drain();
  EXPECT_EQ(sim.dropped(), 0U);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Guard, APolicerPolicesWhatComesFromIt) {
  Sim sim({.policy = guarded(policy_of(all_at(8_kbit, Over::drop)))});
  fill(sim);
  const std::uint64_t held = sim.snapshot().classes[kGuard].backlog_packets;
  sim.send(tcp_packet_of(kCopy));
  EXPECT_EQ(sim.held(), 0U);
  EXPECT_EQ(sim.dropped(DropReason::policed, kCopy), held) << "one of them all fits the class's bucket";
  EXPECT_EQ(sent(sim, kCopy, kByPolicy), 1'514U);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Guard, APolicerOnABusyLinkHoldsOnlyWhatConforms) {
  ClassPolicy policer = all_at(8_kbit, Over::drop);
  policer.burst = ByteCount{1'514};
  Sim sim({.policy = guarded(link_of(100_kbit, policer))});
  fill(sim);
  sim.send(tcp_packet_of(kCopy));
  EXPECT_EQ(sim.snapshot().classes[kByPolicy].backlog_packets, 2U);
  sim.drain();
  EXPECT_EQ(sent(sim, kCopy, kByPolicy), 2U * 1'514);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Guard, WhatHasWaitedTooLongForTheClassIsDropped) {
  ClassPolicy impatient = all_at(1_mbit);
  impatient.max_delay = 20ms;
  Sim sim({.policy = guarded(policy_of(impatient))});
  fill(sim);
  sim.run_for(40ms);
  const std::uint64_t held = sim.snapshot().classes[kGuard].backlog_packets;
  sim.send(tcp_packet_of(kCopy));
  EXPECT_EQ(sim.dropped(DropReason::max_delay, kCopy), held);
  sim.drain();
  EXPECT_EQ(sim.broken(), "");
}

TEST(Guard, ComingBackFillsNoBucketOfTheClass) {
  ClassPolicy policy = default_class();
  policy.each = each_of(EachBy::flow, 8_kbit);
  policy.over = Over::drop;
  Sim sim({.policy = guarded(policy_of(policy))});
  // After each pause the flow's bucket at the guard is full, that of the class is not.
  Source copy = constant(tcp_packet_of(kCopy), 1200ms);
  copy.together = 8;
  sim.add(copy);
  sim.run_for(200s);
  EXPECT_LE(sent(sim, kCopy, kByPolicy), most(8_kbit, {1'514 + 4}, 200s));
  EXPECT_EQ(sim.broken(), "");
}

TEST(Guard, ASuperPacketIsCutInItAndItsFlowKeepsItsOrder) {
  Sim sim({.policy = guarded(policy_of(all_at(1_gbit)))});
  sim.add(bursts(super_packet_of(kCopy, 20'000), 3, 2s));
  sim.add(keystrokes(kTyping));
  sim.run_for(60s);
  sim.drain();
  EXPECT_GT(sim.detours(), 20U);
  EXPECT_LT(sim.delays(kTyping).back(), 100ms);
  EXPECT_EQ(sim.broken(), "");
}

// --- Who is guarded --------------------------------------------------------------------------------------------------

TEST(Guard, OnlyTcpOfTheLocalPortWhereTheLinkHasIt) {
  const auto class_of = [](Policy policy, Packet packet) {
    Sim sim({.policy = guarded(std::move(policy), {22, 443, kSsh})});
    sim.send(packet);
    return sim.departures().front().class_index;
  };
  const Policy out = policy_of(all_at(1_mbit));
  Policy in = out, off = out;
  in.links[0].direction = Direction::ingress;
  off.links[0].guard = false;
  EXPECT_EQ(class_of(out, tcp_packet_of(kCopy)), kGuard);
  EXPECT_EQ(class_of(out, packet_of(kCopy)), kByPolicy) << "UDP";
  EXPECT_EQ(class_of(out, tcp_packet_of(flow_of(1, 1))), kByPolicy) << "443 is the remote port";
  EXPECT_EQ(class_of(in, tcp_packet_of(flow_of(1, 1))), kGuard) << "443 is the local port";
  EXPECT_EQ(class_of(off, tcp_packet_of(kCopy)), kByPolicy);
}

TEST(Guard, WhereNothingMakesPacketsWaitItDoesNotEither) {
  Sim sim({.policy = guarded(policy_of(default_class()))});
  for (int n = 0; n < 100; ++n) sim.send(tcp_packet_of(kCopy));
  EXPECT_EQ(sim.sent_by_class(kByPolicy).value, 100U * 1'514);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Guard, PortsAreSortedAndReplaceEarlierOnes) {
  Policy policy = policy_of(all_at(1_mbit));
  policy.links.push_back(link_named("unguarded"));
  policy.links[1].guard = false;
  set_guard_ports(policy, {2222, 22, 0, 22});
  EXPECT_EQ(policy.guard_ports, (std::vector<std::uint16_t>{22, 2222}));
  set_guard_ports(policy, {22});
  ASSERT_EQ(policy.classes.size(), 2U);
  EXPECT_EQ(policy.classes[kGuard].link, 0U);
  EXPECT_FALSE(policy.classes[kGuard].ecn) << "no class has CoDel here, so no rule sets CE";
  policy.classes[kByPolicy].aqm = true;
  set_guard_ports(policy, {22});
  EXPECT_TRUE(policy.classes[kGuard].ecn);
  set_guard_ports(policy, {});
  EXPECT_EQ(policy.classes.size(), 1U);
}

// --- Another policy --------------------------------------------------------------------------------------------------

TEST(Guard, ASwapKeepsItsFlowsAndWhatTheyHaveSpent) {
  const Policy policy = guarded(policy_of(all_at(8_kbit)));
  Sim sim({.policy = policy});
  for (int n = 0; n < 50; ++n) {
    sim.send(tcp_packet_of(kCopy));
    sim.swap(policy);
  }
  EXPECT_LE(sent(sim, kCopy, kGuard), kGuardBurst.value);
  sim.send(tcp_packet_of(kTyping, 100));
  sim.swap(policy);
  sim.send(tcp_packet_of(kTyping, 100));
  EXPECT_EQ(latest_class(sim, kTyping), kGuard);
  EXPECT_EQ(sim.snapshot().classes[kGuard].flows, 1U);
  sim.drain();
  EXPECT_EQ(sim.broken(), "");
}

TEST(Guard, SwitchedOffOrForOtherPortsItGivesItsFlowsBack) {
  Policy off = policy_of(all_at(100_kbit));
  off.links[0].guard = false;
  for (const Policy& next : {guarded(off), policy_of(all_at(100_kbit)), guarded(policy_of(all_at(100_kbit)), {22})}) {
    Sim sim({.policy = guarded(policy_of(all_at(100_kbit)))});
    fill(sim);
    const std::size_t held = sim.held();
    sim.swap(next);
    EXPECT_GE(sim.held() + 1, held) << "one of them fits the class's bucket";
    EXPECT_EQ(sim.snapshot().classes[kByPolicy].backlog_packets, sim.held());
    sim.send(tcp_packet_of(kCopy));
    sim.drain();
    EXPECT_EQ(latest_class(sim, kCopy), kByPolicy);
    EXPECT_EQ(sim.dropped(), 0U);
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(Guard, SwitchedOnItTakesSessionsThatWereThereBefore) {
  Sim sim({.policy = policy_of(all_at(8_kbit, Over::drop))});
  sim.add(keystrokes(kTyping));
  sim.add(greedy(tcp_packet_of(kCopy), 5));
  sim.run_for(2s);
  sim.swap(guarded(policy_of(all_at(8_kbit, Over::drop))));
  const std::size_t dropped = sim.dropped({}, kTyping);
  sim.run_for(5s);
  EXPECT_EQ(sim.dropped({}, kTyping), dropped);
  EXPECT_EQ(latest_class(sim, kTyping), kGuard);
  EXPECT_LE(sent(sim, kCopy, kGuard), kGuardBurst.value);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Guard, AClassOfThePolicyWithItsNameInheritsNothing) {
  Sim sim({.policy = guarded(policy_of(all_at(8_kbit)))});
  sim.send(tcp_packet_of(kTyping, 100));
  Policy next = policy_of(all_at(8_kbit), class_marked("guard", 7));
  next.links[0].guard = false;
  sim.swap(next);
  EXPECT_EQ(sim.snapshot().classes[1].in_packets, 0U);
  EXPECT_EQ(sim.broken(), "");
}

}  // namespace
}  // namespace shaper::sim
