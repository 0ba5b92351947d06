// What the core tells about itself: counters, measured rates, delays, and the listing of flows.
#include <gtest/gtest.h>

#include <set>

#include "tests/sim.h"

namespace shaper::sim {
namespace {

const FlowSnapshot* find(const std::vector<FlowSnapshot>& flows, std::uint32_t flow) {
  for (const FlowSnapshot& entry : flows) {
    if (flow_number(entry.headers) == flow) return &entry;
  }
  return nullptr;
}

TEST(Statistics, CountersOfFlowAndClassAreWhatDeparted) {
  ClassPolicy policy = default_class(2_mbit);
  policy.backlog = ByteCount{30'000};
  Sim sim({.policy = policy_of(policy)});
  for (std::uint32_t host = 0; host < 5; ++host) {
    sim.add(bursts(packet_of(flow_of(host, 0), 200 + 300 * host), 4, 10ms));
  }
  sim.run_for(5s);
  sim.count();
  EXPECT_EQ(sim.broken(), "");
  ByteCount ip_bytes;
  for (std::uint32_t host = 0; host < 5; ++host) {
    const std::vector<FlowSnapshot> flows = sim.flows();
    const FlowSnapshot* flow = find(flows, flow_of(host, 0));
    ASSERT_NE(flow, nullptr);
    EXPECT_EQ(flow->traffic.wire_bytes, sim.sent(flow_of(host, 0)));
    EXPECT_EQ(flow->traffic.sent_packets * (200 + 300 * host), flow->traffic.sent_bytes.value) << "IP bytes";
    EXPECT_EQ(flow->traffic.sent_packets * (214 + 300 * host), flow->traffic.wire_bytes.value) << "and Ethernet's";
    EXPECT_EQ(flow->traffic.dropped_packets(), sim.dropped({}, flow_of(host, 0)));
    ip_bytes += flow->traffic.sent_bytes;
  }
  const ClassSnapshot entry = sim.snapshot().classes[0];
  EXPECT_EQ(entry.traffic.wire_bytes, sim.sent());
  EXPECT_EQ(entry.traffic.sent_bytes, ip_bytes);
  EXPECT_EQ(entry.flows, 5U);
  EXPECT_EQ(sim.snapshot().flows, 5U);
}

TEST(Statistics, ASuperPacketCountsItsFrames) {
  Sim sim({.policy = policy_of(default_class())});
  sim.send(super_packet_of(1, 52 + 10 * 1'448));
  sim.send(tcp_packet_of(1));
  const ClassSnapshot entry = sim.snapshot().classes[0];
  EXPECT_EQ(entry.in_packets, 11U);
  EXPECT_EQ(entry.traffic.sent_packets, 11U);
  EXPECT_EQ(entry.traffic.wire_bytes.value, 11U * 1'514);
  EXPECT_EQ(find(sim.flows(), 1)->traffic.sent_packets, 11U);
}

TEST(Statistics, TheRateIsThatOfTheLastSecond) {
  Sim sim({.policy = policy_of(default_class())});
  sim.add(constant(packet_of(1, 986), 1ms));  // 8 Mbit/s on the wire
  for (int n = 0; n < 7; ++n) {
    sim.run_for(n == 0 ? Nanos{2s} : Nanos{333ms});
    EXPECT_NEAR(static_cast<double>(sim.snapshot().classes[0].rate.bits_per_second), 8e6, 8e4);
    EXPECT_NEAR(static_cast<double>(find(sim.flows(), 1)->rate.bits_per_second), 8e6, 8e4);
  }
  sim.stop(0);
  sim.run_for(500ms);
  EXPECT_NEAR(static_cast<double>(sim.snapshot().classes[0].rate.bits_per_second), 4e6, 4.1e6) << "it falls";
  sim.run_for(1'501ms);
  EXPECT_EQ(sim.snapshot().classes[0].rate.bits_per_second, 0U);
  EXPECT_EQ(find(sim.flows(), 1)->rate.bits_per_second, 0U);
}

TEST(Statistics, TheRateOfASingleBurstIsNotForgottenWithinASecond) {
  Sim sim({.policy = policy_of(default_class())});
  sim.run_for(12'345'678us);
  for (int n = 0; n < 100; ++n) sim.send(packet_of(1, 986));
  sim.run_for(900ms);
  EXPECT_GT(sim.snapshot().classes[0].rate.bits_per_second, 700'000U);
  sim.run_for(1'200ms);
  EXPECT_EQ(sim.snapshot().classes[0].rate.bits_per_second, 0U);
}

TEST(Statistics, DelayPercentilesAreThoseOfThePackets) {
  for (const Nanos gap : {Nanos{900us}, Nanos{700us}, Nanos{1'500us}}) {
    Sim sim({.policy = policy_of(default_class(10_mbit)), .count_every = 256});
    sim.add(poisson(packet_of(1, 986), gap));
    sim.run_for(20s);
    sim.drain();
    EXPECT_EQ(sim.broken(), "");
    std::vector<Nanos> delays;
    for (const Departure& d : sim.departures()) {
      if (d.decision == Decision::accept) delays.push_back(d.delay());
    }
    std::sort(delays.begin(), delays.end());
    const auto exact = [&delays](std::size_t percent) { return delays[(delays.size() * percent + 99) / 100 - 1]; };
    const auto near = [](Nanos told, Nanos is) { return told + 2us >= is * 7 / 8 && told <= is * 9 / 8 + 2us; };
    const DelaySummary told[] = {sim.snapshot().classes[0].delay, find(sim.flows(), 1)->delay};
    for (const DelaySummary& delay : told) {
      EXPECT_TRUE(near(delay.p50, exact(50))) << delay.p50.count() << " for " << exact(50).count();
      EXPECT_TRUE(near(delay.p90, exact(90))) << delay.p90.count() << " for " << exact(90).count();
      EXPECT_TRUE(near(delay.p99, exact(99))) << delay.p99.count() << " for " << exact(99).count();
      EXPECT_EQ(delay.max, delays.back());
      EXPECT_LE(delay.p99, delay.max);
    }
  }
}

TEST(Statistics, DelayCountsAreExact) {
  Sim sim({.policy = policy_of(default_class(10_mbit))});
  sim.add(poisson(packet_of(1, 986), 900us));
  sim.run_for(20s);
  sim.drain();
  EXPECT_EQ(sim.broken(), "");
  const DelayCounts told = sim.snapshot().classes[0].delay_counts;
  std::uint64_t within = 0;
  for (std::size_t bound = 0; bound < kDelayBounds.size(); ++bound) {
    within += told.packets[bound];
    const auto is = std::count_if(sim.departures().begin(), sim.departures().end(), [&](const Departure& d) {
      return departs(d.decision) && d.delay() <= kDelayBounds[bound];
    });
    EXPECT_EQ(within, static_cast<std::uint64_t>(is)) << "within " << kDelayBounds[bound].count();
  }
  Nanos sum{0};
  for (const Departure& d : sim.departures()) {
    if (departs(d.decision)) sum += d.delay();
  }
  EXPECT_EQ(static_cast<std::uint64_t>(told.nanoseconds), static_cast<std::uint64_t>(sum.count()));
  EXPECT_EQ(told.total(), sim.snapshot().classes[0].traffic.sent_packets);
  EXPECT_GT(told.packets[4], 0U) << "some packets waited, or nothing was tested";
}

TEST(Statistics, DelayCountsNeverFall) {
  Sim sim({.policy = policy_of(default_class(1_mbit))});
  for (int n = 0; n < 3; ++n) sim.send(packet_of(1));
  const std::uint64_t before = sim.snapshot().classes[0].delay_counts.total();
  sim.lose_last();
  EXPECT_EQ(sim.snapshot().classes[0].traffic.sent_packets, before - 1);
  EXPECT_EQ(sim.snapshot().classes[0].delay_counts.total(), before);
}

TEST(Statistics, ADropThatTheKernelWasFasterWithStaysADrop) {
  ClassPolicy policy = default_class(1_mbit);
  policy.over = Over::drop;
  Sim sim({.policy = policy_of(policy)});
  for (int n = 0; n < 30; ++n) sim.send(packet_of(1));
  const std::uint64_t dropped = sim.snapshot().classes[0].traffic.dropped_packets();
  ASSERT_GT(dropped, 0U);
  sim.lose_last();
  EXPECT_EQ(sim.snapshot().classes[0].traffic.dropped_packets(), dropped);
  EXPECT_EQ(sim.snapshot().classes[0].lost_packets, 0U);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Statistics, PacketsThatNeverWaitedCountAsZero) {
  Sim sim({.policy = policy_of(default_class(1_mbit))});
  sim.add(constant(packet_of(1), 100ms));
  sim.run_for(10s);
  sim.send(packet_of(1));
  sim.send(packet_of(1));
  sim.drain();
  const DelaySummary delay = sim.snapshot().classes[0].delay;
  EXPECT_EQ(delay.p50, Nanos{0});
  EXPECT_EQ(delay.p90, Nanos{0});
  EXPECT_GT(delay.max, Nanos{5ms});
}

TEST(Statistics, TheBacklogOfAFlowIsShown) {
  Sim sim({.policy = policy_of(default_class(100_kbit))});
  for (int n = 0; n < 11; ++n) sim.send(packet_of(1));
  const std::vector<FlowSnapshot> flows = sim.flows();
  EXPECT_EQ(find(flows, 1)->backlog_packets, 10U);
  EXPECT_EQ(find(flows, 1)->backlog_bytes.value, 10U * 1'514);
}

TEST(Statistics, AFlowSaysWhatItWaitsFor) {
  ClassPolicy policy = default_class(100_kbit);
  Sim passing({.policy = policy_of(default_class())});
  passing.send(packet_of(1));
  EXPECT_EQ(find(passing.flows(), 1)->activity, FlowActivity::passing);
  passing.run_for(2s);
  EXPECT_EQ(find(passing.flows(), 1)->activity, FlowActivity::idle);

  Sim shared({.policy = policy_of(policy)});
  for (int n = 0; n < 20; ++n) shared.send(packet_of(1));
  shared.run_for(500ms);
  shared.send(packet_of(2));
  const std::vector<FlowSnapshot> flows = shared.flows();
  EXPECT_EQ(find(flows, 1)->activity, FlowActivity::bulk) << "it has used its quantum";
  EXPECT_EQ(find(flows, 2)->activity, FlowActivity::fresh);

  policy = default_class();
  policy.each = Each{{EachBy::flow}, 100_kbit, kDefaultBurst};
  Sim each({.policy = policy_of(policy)});
  for (int n = 0; n < 20; ++n) each.send(packet_of(1));
  EXPECT_EQ(find(each.flows(), 1)->activity, FlowActivity::limited) << "its own bucket is empty";
}

TEST(Statistics, FirstAndLastSeenAreArrivals) {
  Sim sim({.policy = policy_of(default_class(1_mbit))});
  sim.run_for(3s);
  const Instant first = sim.now();
  sim.send(packet_of(1));
  sim.run_for(5s);
  const Instant last = sim.now();
  sim.send(packet_of(1));
  sim.run_for(2s);
  const std::vector<FlowSnapshot> flows = sim.flows();
  EXPECT_EQ(find(flows, 1)->first_seen, first);
  EXPECT_EQ(find(flows, 1)->last_seen, last);
}

TEST(Statistics, TheListingInSmallPiecesSeesEachFlowOnce) {
  Sim sim({.policy = policy_of(default_class()), .count_every = 1'000});
  for (std::uint32_t n = 0; n < 1'000; ++n) sim.send(packet_of(n * 3));
  for (const std::size_t budget : {std::size_t{1}, std::size_t{7}, std::size_t{100}, std::size_t{10'000}}) {
    std::multiset<std::uint32_t> seen;
    FlowCursor cursor;
    for (int calls = 0; !cursor.done && calls < 1'000'000; ++calls) {
      std::vector<FlowSnapshot> piece;
      sim.core().flows(cursor, budget, sim.now(), piece);
      EXPECT_LE(piece.size(), budget + 4) << "flows of one place in the table come together";
      for (const FlowSnapshot& flow : piece) seen.insert(flow_number(flow.headers));
    }
    EXPECT_TRUE(cursor.done);
    EXPECT_EQ(seen.size(), 1'000U) << "budget " << budget;
    EXPECT_EQ(std::set<std::uint32_t>(seen.begin(), seen.end()).size(), 1'000U) << "budget " << budget;
  }
}

TEST(Statistics, TheSnapshotInPiecesIsTheWholeOne) {
  Policy policy = link_of(100_mbit, default_class(1_mbit));
  policy.limits.push_back(limit_named("total", 50_mbit));
  for (std::uint32_t mark = 1; mark < 100; ++mark) {
    policy.classes.push_back(class_marked("c" + std::to_string(mark), mark, 1_mbit));
    policy.classes.back().limits = {0};
  }
  Sim sim({.policy = policy});
  for (std::uint32_t mark = 0; mark < 100; ++mark) sim.send(packet_of(mark, 100 + mark, mark));
  const CoreSnapshot whole = sim.snapshot();
  for (const std::size_t budget : {std::size_t{1}, std::size_t{7}, std::size_t{1'000}}) {
    CoreSnapshot pieces;
    std::size_t calls = 0;
    for (ClassCursor cursor; !cursor.done && calls < 1'000; ++calls) {
      const std::size_t before = pieces.classes.size();
      sim.core().snapshot(cursor, budget, sim.now(), pieces);
      EXPECT_LE(pieces.classes.size(), before + budget);
      EXPECT_EQ(pieces.links.size(), 1U) << "with the first call, and not again";
      EXPECT_EQ(pieces.limits.size(), 1U);
    }
    EXPECT_GE(calls, 100 / budget);
    EXPECT_EQ(pieces.flows, whole.flows);
    ASSERT_EQ(pieces.classes.size(), whole.classes.size()) << "budget " << budget;
    for (ClassIndex index = 0; index < 100; ++index) {
      EXPECT_EQ(pieces.classes[index].index, index);
      EXPECT_EQ(pieces.classes[index].traffic.wire_bytes, whole.classes[index].traffic.wire_bytes);
    }
  }
}

TEST(Statistics, AnEndedFlowStaysListedForAMinute) {
  Sim sim({.policy = policy_of(default_class())});
  sim.send(packet_of(1));
  sim.run_for(59s);
  sim.send(packet_of(2));
  EXPECT_NE(find(sim.flows(), 1), nullptr);
  sim.run_for(2s);
  sim.send(packet_of(3));
  EXPECT_EQ(find(sim.flows(), 1), nullptr);
  EXPECT_NE(find(sim.flows(), 2), nullptr);
  EXPECT_EQ(sim.snapshot().evicted_flows, 0U) << "its time had come: nobody pushed it out";
}

TEST(Statistics, AFlowThatStillWaitsStaysListed) {
  ClassPolicy policy = default_class(DataRate{400});
  policy.max_delay = 10min;
  Sim sim({.policy = policy_of(policy), .credit = StartCredit::empty});
  for (int n = 0; n < 5; ++n) sim.send(packet_of(1));
  sim.run_for(90s);
  sim.send(packet_of(2, 100));
  EXPECT_NE(find(sim.flows(), 1), nullptr);
  EXPECT_EQ(sim.broken(), "");
}

TEST(MaxFlows, BoundsTheTableAndTellsWhatItForgot) {
  Policy policy = policy_of(default_class(100_mbit));
  policy.max_flows = 50;
  Sim sim({.policy = policy, .count_every = 100});
  for (std::uint32_t n = 0; n < 5'000; ++n) {
    sim.send(packet_of(n, 100));
    sim.run_for(1ms);
    ASSERT_LE(sim.snapshot().flows, 50U);
  }
  EXPECT_EQ(sim.broken(), "");
  EXPECT_EQ(sim.snapshot().evicted_flows, 5'000U - 50);
  EXPECT_EQ(sim.flows().size(), 50U);
}

TEST(MaxFlows, EachLimitsHoldAboveIt) {
  // A host with more flows than the table holds must not get its rate several times.
  for (const EachBy by : {EachBy::source, EachBy::destination}) {
    ClassPolicy policy = default_class();
    policy.each = each_of(by, 1_mbit, by == EachBy::source ? 16 : 32);
    Policy whole = policy_of(policy);
    whole.max_flows = 20;
    Sim sim({.policy = whole, .count_every = 100});
    for (std::uint32_t flow = 0; flow < 200; ++flow) sim.add(poisson(packet_of(flow), 50ms));
    sim.run_for(20s);
    EXPECT_EQ(sim.broken(), "");
    EXPECT_LE(sim.snapshot().flows, 20U);
    EXPECT_LE(sim.sent().value, bytes_in(1_mbit, 20s).value + 1'514 + 500);
  }
}

TEST(MaxFlows, AFlowStaysInTheQueueThatItSharesWhenItsAddressGetsABucket) {
  ClassPolicy policy = default_class(100_kbit);
  policy.each = each_of(EachBy::source, 1_mbit);
  Policy whole = policy_of(policy);
  whole.max_flows = 2;
  Sim sim({.policy = whole});
  const std::uint32_t sharing = flow_of(1, 0), with_bucket = flow_of(1, 1), at_bucket = flow_of(1, 2);
  for (const std::uint32_t host : {8U, 9U}) sim.send(packet_of(flow_of(host, 0), 100));
  for (int n = 0; n < 5; ++n) sim.send(packet_of(sharing));
  sim.run_for(50ms);
  ASSERT_EQ(sim.held(), 4U) << "the flows of the other hosts may be forgotten, and this one waits in a queue by hash";
  sim.send(packet_of(with_bucket));
  sim.send(packet_of(at_bucket));
  sim.send(packet_of(sharing));
  sim.drain();
  EXPECT_EQ(sim.broken(), "");
}

TEST(MaxFlows, ForgettingGivesNoCreditAway) {
  // A thousand flows, one bucket each, and a table of ten: whoever comes back must not find a full bucket.
  ClassPolicy policy = default_class();
  policy.each = each_of(EachBy::flow, 100_kbit);
  policy.over = Over::drop;
  Policy whole = policy_of(policy);
  whole.max_flows = 10;
  Sim sim({.policy = whole, .count_every = 100});
  for (int round = 0; round < 50; ++round) {
    for (std::uint32_t flow = 0; flow < 100; ++flow) sim.send(packet_of(flow));
    sim.run_for(10ms);
  }
  EXPECT_EQ(sim.broken(), "");
  for (std::uint32_t flow = 0; flow < 100; ++flow) {
    const std::uint64_t most = 1'514 + 50 + bytes_in(100_kbit, 500ms).value;
    EXPECT_LE(sim.sent(flow).value, most) << "flow " << flow;
  }
}

}  // namespace
}  // namespace shaper::sim
