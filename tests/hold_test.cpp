// Why a flow is no faster: which bucket holds its packets, when it lets the next one go, and for how much of the last
// minute it was held by what.
#include <gtest/gtest.h>

#include "tests/sim.h"

namespace shaper::sim {
namespace {

constexpr std::size_t index_of(Holder holder) {
  return static_cast<std::size_t>(holder);
}

HoldSnapshot hold_of(const Sim& sim, const Packet& packet) {
  return sim.core().hold(packet, sim.now()).value();
}

/// The share of a minute that the flow was held by that.
double share(const HoldSnapshot& hold, Holder holder) {
  return static_cast<double>(hold.minute[index_of(holder)].count()) / 60e9;
}
double whole_share(const HoldSnapshot& hold) {
  double sum = 0;
  for (std::size_t i = 0; i < kHolders; ++i) sum += share(hold, static_cast<Holder>(i));
  return sum;
}

/// One link of 10 Mbit/s whose default class may have all of it.
Policy link_of(DataRate rate, ClassPolicy cls = borrowing(default_class())) {
  Policy policy = policy_of(std::move(cls));
  policy.links[0].rate = rate;
  return policy;
}

struct Case {
  const char* what;
  Policy policy;
  Holder holder;
  std::optional<LimitIndex> limit;
};

std::vector<Case> cases() {
  ClassPolicy limited = borrowing(default_class());
  limited.limits = {0};
  Policy by_limit = policy_of(limited);
  by_limit.limits.push_back(limit_named("tenant", 10_mbit));
  Policy by_key = by_limit;
  by_key.limits[0].by = KeyPolicy{EachBy::source};
  Policy by_grants = by_limit;
  by_grants.limits[0].scope = Scope::cluster;
  ClassPolicy own = default_class();
  own.each = each_of(EachBy::flow, 10_mbit);
  return {{"link", link_of(10_mbit), Holder::link, {}}, {"class", policy_of(default_class(10_mbit)), Holder::ceil, {}},
          {"limit", by_limit, Holder::limit, 0},        {"limit with by", by_key, Holder::limit, 0},
          {"grants", by_grants, Holder::cluster, 0},    {"each", policy_of(own), Holder::each, {}}};
}

TEST(Hold, EachKindOfBucketIsNamedWhileItHoldsAFlow) {
  for (const Case& each : cases()) {
    SCOPED_TRACE(each.what);
    Sim sim({.policy = each.policy});
    const Packet packet = packet_of(flow_of(1, 0));
    sim.add(greedy(packet));
    sim.run_for(120s);
    const HoldSnapshot hold = hold_of(sim, packet);
    ASSERT_TRUE(hold.flow.held_by);
    EXPECT_EQ(hold.flow.held_by->holder, each.holder);
    EXPECT_EQ(hold.flow.held_by->limit, each.limit);
    EXPECT_NEAR(share(hold, each.holder), 1, 0.01);
    EXPECT_NEAR(whole_share(hold), 1, 0.01) << "and by nothing else";
    ASSERT_TRUE(hold.credit);
    if (each.holder == Holder::cluster) {
      EXPECT_FALSE(hold.earliest) << "there was no grant";
      continue;
    }
    EXPECT_EQ(hold.rate, 10_mbit);
    ASSERT_TRUE(hold.earliest);
    EXPECT_LE(*hold.earliest - sim.now(), time_for(10_mbit, {1'514}));
    const std::size_t sent = sim.departures().size();
    sim.run_until(*hold.earliest + 1ns);
    EXPECT_GT(sim.departures().size(), sent) << "it has left by then";
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(Hold, TimeIsSharedAmongTheBucketsThatHeldAFlow) {
  // The flow's own bucket lets 2 Mbit/s through, and then the link has less.
  ClassPolicy own = borrowing(default_class());
  own.each = each_of(EachBy::flow, 2_mbit);
  Sim sim({.policy = link_of(10_mbit, own)});
  const Packet packet = packet_of(flow_of(1, 0));
  sim.add(greedy(packet));
  sim.run_for(60s);
  sim.swap(link_of(1_mbit, own));
  sim.run_for(30s);
  const HoldSnapshot hold = hold_of(sim, packet);
  // A frame every 12 ms; for 2 of them the flow's own bucket, which saves less than a frame, lacks credit too.
  EXPECT_NEAR(share(hold, Holder::each), 0.5 + 0.5 * 2 / 12, 0.02);
  EXPECT_NEAR(share(hold, Holder::link), 0.5 * 10 / 12, 0.02);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Hold, WhatPassesAtOnceWasNeverHeld) {
  Sim sim({.policy = link_of(10_mbit)});
  const Packet packet = packet_of(flow_of(1, 0));
  sim.send(packet);
  sim.run_for(1s);
  const HoldSnapshot hold = hold_of(sim, packet);
  EXPECT_FALSE(hold.flow.held_by);
  EXPECT_FALSE(hold.earliest);
  EXPECT_EQ(whole_share(hold), 0);
  EXPECT_FALSE(sim.core().hold(packet_of(flow_of(2, 0)), sim.now())) << "never seen";
  sim.run_for(70s);
  EXPECT_FALSE(sim.core().hold(packet, sim.now())) << "long ago";
}

TEST(Hold, LastsForAMinute) {
  Sim sim({.policy = link_of(10_mbit)});
  const Packet packet = packet_of(flow_of(1, 0));
  sim.add(greedy(packet));
  sim.run_for(40s);
  const double held = whole_share(hold_of(sim, packet));
  EXPECT_NEAR(held, 40.0 / 60, 0.01);
  sim.drain();
  sim.run_for(50s);
  EXPECT_LT(whole_share(hold_of(sim, packet)), held);
  EXPECT_GT(whole_share(hold_of(sim, packet)), 0);
  sim.send(packet);
  sim.run_for(59s);
  sim.send(packet);
  sim.run_for(59s);
  EXPECT_EQ(whole_share(hold_of(sim, packet)), 0);
}

TEST(Hold, OutlivesARestart) {
  Sim sim({.policy = link_of(10_mbit)});
  const Packet packet = packet_of(flow_of(1, 0));
  sim.add(greedy(packet));
  sim.run_for(30s);
  ASSERT_TRUE(sim.restart());
  sim.run_for(1s);
  EXPECT_NEAR(share(hold_of(sim, packet), Holder::link), 31.0 / 60, 0.01);
}

TEST(Recent, CountsThePacketsOfAboutAMinute) {
  ClassPolicy policed = default_class(1_mbit);
  policed.over = Over::drop;
  Sim sim({.policy = policy_of(policed)});
  sim.add(constant(packet_of(flow_of(1, 0)), 6'056us));  // 2 Mbit/s
  sim.run_for(120s);
  const ClassSnapshot busy = sim.snapshot().classes.at(0);
  const auto half = [](std::uint64_t packets) { return static_cast<double>(packets) / 2; };
  EXPECT_NEAR(static_cast<double>(busy.recent.sent), half(busy.traffic.sent_packets), 10);
  const auto policed_now = busy.recent.drops[static_cast<std::size_t>(DropReason::policed)];
  EXPECT_NEAR(static_cast<double>(policed_now), half(busy.traffic.dropped_packets()), 10);
  sim.drain();
  sim.run_for(121s);
  EXPECT_EQ(sim.snapshot().classes.at(0).recent.sent, 0U);
}

}  // namespace
}  // namespace shaper::sim
