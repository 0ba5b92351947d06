// The guard while the flow table is full: new connections have places, so many and no more, and no flow is reordered.
#include <gtest/gtest.h>

#include "shaper/core/flow_table.h"
#include "tests/sim_guard.h"

namespace shaper::sim {
namespace {

/// Three hundred flows wait, far more than the table holds.
void flood(Sim& sim) {
  for (std::uint32_t host = 1'000; host < 1'300; ++host) sim.send(packet_of(flow_of(host, 1)));
}

TEST(Guard, ANewConnectionIsGuardedWhileTheTableIsFull) {
  Policy policy = guarded(policy_of(all_at(8_kbit)));
  policy.max_flows = 10;
  Sim sim({.policy = policy});
  flood(sim);
  sim.add(keystrokes(kTyping));
  sim.run_for(2s);
  sim.swap(policy);
  ASSERT_TRUE(sim.restart());
  flood(sim);
  sim.add(keystrokes(kTypingLater));
  sim.run_for(2s);
  for (const std::uint32_t flow : {kTyping, kTypingLater}) {
    ASSERT_GE(sim.delays(flow).size(), 10U);
    EXPECT_EQ(latest_class(sim, flow), kGuard);
    EXPECT_LT(sim.delays(flow).back(), 100ms);
  }
  sim.drain();
  EXPECT_EQ(sim.broken(), "");
}

TEST(Guard, ItKeepsABoundedNumberOfPlacesInAFullTable) {
  Policy policy = guarded(policy_of(all_at(8_kbit)));
  policy.max_flows = 10;
  Sim sim({.policy = policy, .count_every = 100});
  flood(sim);
  const std::uint64_t others = sim.snapshot().flows;
  for (int n = 0; n < 3; ++n) {
    for (std::uint32_t host = 0; host < 500; ++host) sim.send(tcp_packet_of(flow_of(host, 0)));
    EXPECT_EQ(sim.snapshot().classes[kGuard].flows, FlowTable::kReserve);
    EXPECT_LE(sim.snapshot().flows, others + 2 * FlowTable::kReserve) << "and as many that are shared";
    sim.swap(policy);
  }
  sim.drain();
  EXPECT_EQ(sim.broken(), "");
  for (std::uint32_t host = 0; host < 500; ++host) {
    sim.send(tcp_packet_of(flow_of(host, 0), 100));
    sim.run_for(1s);
    if (host < 100) continue;  // each new flow makes room for some
    ASSERT_EQ(latest_class(sim, flow_of(host, 0)), kGuard) << "places are free again";
  }
}

TEST(Guard, WhatSharesAFlowKeepsItsOrderWhenItsPortBecomesGuarded) {
  for (const bool before : {false, true}) {
    Policy off = policy_of(all_at(100_kbit)), on = guarded(policy_of(all_at(100_kbit)));
    off.max_flows = on.max_flows = 10;
    Sim sim({.policy = before ? on : off});
    flood(sim);
    const std::uint32_t hosts = FlowTable::kReserve + 100;
    for (std::uint32_t host = 0; host < hosts; ++host) sim.send(tcp_packet_of(flow_of(host, 0)));
    sim.swap(before ? off : on);
    for (std::uint32_t host = 0; host < hosts; ++host) sim.send(tcp_packet_of(flow_of(host, 0), 100));
    sim.drain();
    EXPECT_EQ(sim.broken(), "");
  }
}

}  // namespace
}  // namespace shaper::sim
