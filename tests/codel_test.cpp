// CoDel seen from outside: a standing queue is brought to about the target, a burst is left alone, ECN marks instead.
//
// The senders here answer: reno() halves its window at a loss or a mark.
#include <gtest/gtest.h>

#include "tests/sim.h"

namespace shaper::sim {
namespace {

constexpr std::uint64_t kFrame = 1514;
constexpr std::uint8_t kEct0 = 2;
constexpr std::uint8_t kEct1 = 1;
constexpr std::uint8_t kCe = 3;

ClassPolicy managed(DataRate rate) {
  ClassPolicy policy = default_class(rate);
  policy.aqm = true;
  return policy;
}

Packet with_ecn(Packet packet, std::uint8_t ecn) {
  packet.headers.ecn = ecn;
  return packet;
}

Nanos median_delay(const Sim& sim, Instant begin) {
  const std::vector<Nanos> delays = sim.delays({}, begin);
  return delays.empty() ? Nanos::max() : delays[delays.size() / 2];
}

TEST(CoDel, BringsAStandingQueueToAboutItsTargetAndKeepsTheRate) {
  struct Case {
    DataRate rate;
    Nanos most;  // median delay: twice the target, and at 1 Mbit/s the target is 1.5 frames of 12 ms
  };
  for (const Case& test : {Case{1_mbit, 45ms}, Case{10_mbit, 10ms}, Case{50_mbit, 10ms}}) {
    for (const std::uint8_t ecn : {std::uint8_t{0}, kEct0}) {
      Sim sim({.policy = policy_of(managed(test.rate))});
      sim.add(reno(with_ecn(packet_of(1), ecn), 20ms, 100));
      sim.run_for(10s);
      const Instant begin = sim.now();
      sim.run_for(20s);
      EXPECT_LE(median_delay(sim, begin), test.most) << test.rate.bits_per_second << " bit/s, ECN " << int{ecn};
      EXPECT_GE(sim.sent({}, begin).value, bytes_in(test.rate, 20s).value * 9 / 10) << test.rate.bits_per_second;
      EXPECT_EQ(sim.broken(), "");
    }
  }
}

TEST(CoDel, WithoutItTheQueueStands) {
  // Or the test above proves nothing.
  Sim sim({.policy = policy_of(default_class(10_mbit))});
  sim.add(reno(packet_of(1), 20ms, 100));
  sim.run_for(30s);
  EXPECT_GE(median_delay(sim, kStart + 10s), Nanos{60ms});
  EXPECT_EQ(sim.dropped(DropReason::aqm), 0U);
  EXPECT_EQ(sim.broken(), "");
}

TEST(CoDel, MarksWhatKnowsEcnAndDropsTheRest) {
  struct Case {
    const char* sentence;
    bool ecn;  // of the class
    std::uint8_t packet;
    bool marks;
  };
  const Case cases[] = {
      {"ECT(0)", true, kEct0, true},
      {"ECT(1)", true, kEct1, true},
      {"CE already: it passes, and counts", true, kCe, true},
      {"not ECT", true, 0, false},
      {"a class that must not mark", false, kEct0, false},
  };
  for (const Case& test : cases) {
    ClassPolicy policy = managed(10_mbit);
    policy.ecn = test.ecn;
    Sim sim({.policy = policy_of(policy)});
    sim.add(reno(with_ecn(packet_of(1), test.packet), 20ms, 100));
    sim.run_for(10s);
    sim.count();
    EXPECT_EQ(sim.marked() > 5, test.marks) << test.sentence;
    EXPECT_EQ(sim.dropped(), sim.dropped(DropReason::aqm)) << test.sentence;
    EXPECT_EQ(sim.dropped() == 0, test.marks) << test.sentence;
    EXPECT_EQ(sim.snapshot().classes[0].traffic.marked_packets, sim.marked()) << test.sentence;
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(CoDel, LeavesABurstAlone) {
  // 60 ms of packets at once, again and again: each time the queue is gone within an interval.
  Sim sim({.policy = policy_of(managed(10_mbit))});
  for (int round = 0; round < 50; ++round) {
    for (int n = 0; n < 50; ++n) sim.send(packet_of(1));
    sim.run_for(150ms);
  }
  EXPECT_EQ(sim.dropped(), 0U);
  EXPECT_EQ(sim.broken(), "");
}

TEST(CoDel, IsOffWhereThePolicySaysSo) {
  Sim sim({.policy = policy_of(default_class(1_mbit))});
  for (std::uint32_t flow = 0; flow < 4; ++flow) {
    sim.add(greedy(with_ecn(packet_of(flow), flow % 2 == 0 ? kEct0 : std::uint8_t{0}), 30));
  }
  sim.run_for(30s);
  EXPECT_EQ(sim.dropped(), 0U);
  EXPECT_EQ(sim.marked(), 0U);
  EXPECT_EQ(sim.broken(), "");
}

TEST(CoDel, KeepsTheLastPacketOfAFlow) {
  // Many flows with one packet each: each waits for far longer than the target, and none has a queue.
  for (const DataRate rate : {100_kbit, 1_mbit}) {
    Sim sim({.policy = policy_of(managed(rate))});
    for (std::uint32_t flow = 0; flow < 20; ++flow) sim.add(greedy(packet_of(flow), 1));
    sim.run_for(60s);
    EXPECT_GT(median_delay(sim, kStart), Nanos{100ms});
    EXPECT_EQ(sim.dropped(), 0U) << rate.bits_per_second;
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(CoDel, ItsTargetGrowsWithTheTimeOfAFrame) {
  // Two packets of a flow wait for up to two frames, at any rate; that is not too long.
  for (const DataRate rate : {50_kbit, 200_kbit, 1_mbit}) {
    Sim sim({.policy = policy_of(managed(rate))});
    sim.add(constant(packet_of(1), time_for(rate, {kFrame}) + 1us));
    sim.run_for(60s);
    EXPECT_EQ(sim.dropped(), 0U) << rate.bits_per_second;
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(CoDel, WatchesEachFlowAlone) {
  // A flow that keeps to its share is not dropped for the sake of one that does not.
  Sim sim({.policy = policy_of(managed(10_mbit))});
  const std::uint32_t modest = flow_of(2, 0);
  sim.add(reno(packet_of(flow_of(1, 0)), 20ms, 200));
  sim.add(constant(packet_of(modest, 500), 4ms));  // 1 Mbit/s
  sim.run_for(20s);
  EXPECT_EQ(sim.dropped({}, modest), 0U);
  EXPECT_GT(sim.dropped({}, flow_of(1, 0)), 0U);
  EXPECT_EQ(sim.broken(), "");
}

TEST(CoDel, TheSmallestRateOnTheWayCounts) {
  // The class may send 100 Mbit/s, but its link only 1 Mbit/s: 1.5 frames are 18 ms there.
  ClassPolicy policy = managed(100_mbit);
  Sim sim({.policy = link_of(1_mbit, policy)});
  sim.add(reno(packet_of(1), 20ms, 50));
  sim.run_for(30s);
  EXPECT_LE(median_delay(sim, kStart + 10s), Nanos{45ms});
  EXPECT_GE(sim.sent({}, kStart + 10s).value, bytes_in(1_mbit, 20s).value * 9 / 10);
  EXPECT_EQ(sim.broken(), "");
}

TEST(CoDel, HoldsTheDelayOfAClassThatWaitsForItsLinkOrALimit) {
  // Nothing in the class itself limits it: the queue stands all the same.
  for (const bool by_limit : {false, true}) {
    ClassPolicy policy = borrowing(default_class());
    policy.aqm = true;
    Policy whole = policy_of(policy);
    if (by_limit) {
      whole.limits.push_back(limit_named("total", 10_mbit));
      whole.classes[0].limits = {0};
    } else {
      whole.links[0].rate = 10_mbit;
    }
    Sim sim({.policy = whole});
    sim.add(reno(packet_of(1), 20ms, 100));
    sim.run_for(20s);
    EXPECT_LE(median_delay(sim, kStart + 10s), Nanos{10ms});
    EXPECT_GE(sim.sent({}, kStart + 10s).value, bytes_in(10_mbit, 10s).value * 9 / 10);
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(CoDel, ASenderThatDoesNotAnswerIsHeldByTheBounds) {
  Sim sim({.policy = policy_of(managed(1_mbit))});
  sim.add(constant(packet_of(1), 4ms));  // three times the rate
  sim.run_for(60s);
  EXPECT_GT(sim.dropped(DropReason::aqm), 0U);
  EXPECT_GE(sim.sent().value + 4 * kFrame, bytes_in(1_mbit, 60s).value) << "drops cost no rate";
  EXPECT_EQ(sim.broken(), "");
}

TEST(CoDel, DropsFromTheHead) {
  // What is dropped is the oldest that waits: everything behind it comes later.
  Sim sim({.policy = policy_of(managed(10_mbit))});
  sim.add(constant(packet_of(1), 1ms));
  sim.run_for(3s);
  Instant latest = kStart;
  std::size_t drops = 0;
  for (const Departure& departure : sim.departures()) {
    ASSERT_GE(departure.arrival, latest);
    latest = departure.arrival;
    drops += departure.decision == Decision::drop && departure.reason == DropReason::aqm ? 1 : 0;
  }
  EXPECT_GT(drops, 5U);
  EXPECT_EQ(sim.broken(), "");
}

}  // namespace
}  // namespace shaper::sim
