// Which packets take the detour through the split queue, and that none of them is overtaken.
//
// Splitting is a property of a flow, and sticky: a super-packet of a flow with a slow rate on its path starts it; then
// every packet of the flow takes the detour, until the rate is fast and none of its packets is inside.
#include <gtest/gtest.h>

#include "tests/sim.h"

namespace shaper::sim {
namespace {

/// The core by hand: ids count up, each packet's own verdict is looked up.
class Hand {
 public:
  explicit Hand(const Policy& policy) : core_(policy, StartCredit::full, Sim::kKey, Sim::kStart) {}

  /// The verdict on a packet that arrives now; nothing if it is held.
  std::optional<Decision> send(Packet packet, QueueKind queue = QueueKind::fast) {
    packet.queue = queue;
    packet.id = {static_cast<std::uint16_t>(queue == QueueKind::fast ? 0 : 1), ++number_};
    Verdicts out;
    core_.on_packet(packet, now_, out);
    for (const Verdict& verdict : out) {
      if (verdict.id == packet.id) return verdict.decision;
    }
    return std::nullopt;
  }

  void swap(const Policy& policy) {
    Verdicts out;
    core_.swap(policy, now_, out);
  }

  void release() {
    Verdicts out;
    core_.release(now_, out);
  }

  void dry() { core_.on_queues_dry(); }
  void wait(Nanos time) { now_ += time; }
  [[nodiscard]] CoreSnapshot snapshot() const { return core_.snapshot(now_); }

 private:
  Shaper core_;
  Instant now_ = Sim::kStart;
  std::uint32_t number_ = 0;
};

Policy at(DataRate rate) {
  return policy_of(default_class(rate));
}

TEST(Detour, StartsWithTheFirstSuperPacketOfASlowFlow) {
  Hand hand(at(100_mbit));
  EXPECT_EQ(hand.send(tcp_packet_of(1)), Decision::accept) << "a small packet of a flow that is not split";
  EXPECT_EQ(hand.send(super_packet_of(1)), Decision::detour);
  EXPECT_EQ(hand.send(tcp_packet_of(1, 52)), Decision::detour) << "small packets too: else they would overtake";
  EXPECT_EQ(hand.send(tcp_packet_of(1), QueueKind::split), Decision::accept) << "its second arrival";
  EXPECT_EQ(hand.send(tcp_packet_of(2)), Decision::accept) << "another flow";
}

TEST(Detour, IsSticky) {
  Hand hand(at(100_mbit));
  EXPECT_EQ(hand.send(super_packet_of(1)), Decision::detour);
  hand.dry();
  hand.wait(30s);
  EXPECT_EQ(hand.send(tcp_packet_of(1)), Decision::detour) << "the rate is still slow";
}

TEST(Detour, DependsOnTheSmallestConfiguredRateOfThePath) {
  struct Case {
    const char* sentence;
    std::optional<DataRate> rate;
    std::optional<DataRate> ceil;
    std::optional<DataRate> each;
    bool detours;
  };
  const Case cases[] = {
      {"no rate at all", {}, {}, {}, false},
      {"a slow total", 100_mbit, {}, {}, true},
      {"a fast total", 2_gbit, {}, {}, false},
      {"a slow each under a fast total", 2_gbit, {}, 5_mbit, true},
      {"a slow each alone", {}, {}, 5_mbit, true},
      {"a fast each alone", {}, {}, 1_gbit, false},
      {"a slow guarantee with a fast ceil is not a limit", 1_mbit, 2_gbit, {}, false},
      {"a slow ceil", 1_mbit, 10_mbit, {}, true},
      {"well below the threshold", 300_mbit, {}, {}, true},
      {"well above the threshold", 800_mbit, {}, {}, false},
  };
  for (const Case& test : cases) {
    ClassPolicy policy = default_class(test.rate);
    policy.ceil = test.ceil;
    if (test.each) policy.each = each_of(EachBy::flow, *test.each);
    Hand hand(policy_of(policy));
    EXPECT_EQ(hand.send(super_packet_of(1)) == Decision::detour, test.detours) << test.sentence;
  }
}

TEST(Detour, APolicerSplitsAndAClassThatOnlyCountsDoesNot) {
  for (const Over over : {Over::drop, Over::count}) {
    ClassPolicy policy = default_class(10_mbit);
    policy.over = over;
    Hand hand(policy_of(policy));
    EXPECT_EQ(hand.send(super_packet_of(1)) == Decision::detour, over == Over::drop);
  }
}

TEST(Detour, IsCountedOnceAtTheSecondArrival) {
  Hand hand(at(100_mbit));
  EXPECT_EQ(hand.send(super_packet_of(1, 52 + 3 * 1'448)), Decision::detour);
  EXPECT_EQ(hand.snapshot().classes[0].in_packets, 0U);
  EXPECT_EQ(hand.snapshot().classes[0].traffic.wire_bytes.value, 0U);
  EXPECT_EQ(hand.snapshot().links[0].detoured_packets, 1U);
  for (int segment = 0; segment < 3; ++segment) {
    EXPECT_EQ(hand.send(tcp_packet_of(1), QueueKind::split), Decision::accept);
  }
  EXPECT_EQ(hand.snapshot().classes[0].in_packets, 3U);
  EXPECT_EQ(hand.snapshot().classes[0].traffic.wire_bytes.value, 3U * 1'514);
}

TEST(Detour, DoesNotGrowTheBucketByThePacketThatIsCutThere) {
  Hand hand(at(10_mbit));
  const std::optional<ByteCount> before = hand.snapshot().classes[0].depth;
  EXPECT_EQ(hand.send(super_packet_of(1)), Decision::detour);
  EXPECT_EQ(hand.snapshot().classes[0].depth, before);
}

TEST(Detour, EndsAfterASwapToAFastClassOnceTheQueuesAreDry) {
  Hand hand(at(100_mbit));
  EXPECT_EQ(hand.send(super_packet_of(1, 52 + 2 * 1'448)), Decision::detour);
  hand.swap(at(10_gbit));
  EXPECT_EQ(hand.send(tcp_packet_of(1)), Decision::detour) << "two segments are still inside";
  EXPECT_EQ(hand.send(super_packet_of(1)), Decision::detour) << "a super-packet must stay behind them too";
  EXPECT_EQ(hand.send(tcp_packet_of(1), QueueKind::split), Decision::accept);
  EXPECT_EQ(hand.send(tcp_packet_of(1)), Decision::detour) << "one segment is still inside";
  hand.dry();
  EXPECT_EQ(hand.send(tcp_packet_of(1)), Decision::accept) << "nothing is inside";
  hand.wait(1s);
  EXPECT_EQ(hand.send(super_packet_of(1)), Decision::accept) << "a fast class takes super-packets whole";
}

TEST(Detour, StartsAgainAfterASwapBackToASlowClass) {
  Hand hand(at(10_gbit));
  EXPECT_EQ(hand.send(super_packet_of(1)), Decision::accept);
  hand.swap(at(100_mbit));
  hand.wait(1s);
  EXPECT_EQ(hand.send(tcp_packet_of(1)), Decision::accept) << "no super-packet was seen since";
  EXPECT_EQ(hand.send(super_packet_of(1)), Decision::detour);
}

TEST(Detour, ASwapDoesNotForgetAFlowThatHasOnlyDetouredSoFar) {
  // Flows are told apart by their mark here, which the swap must know of a flow that nothing has stayed of.
  const auto policy = [](DataRate rate) { return policy_of(class_marked("a", 1, rate), default_class(rate)); };
  Hand hand(policy(100_mbit));
  Packet small = tcp_packet_of(1, 52, 1);
  small.headers.dscp = 10;
  Packet large = super_packet_of(1, 64'000, 1);
  large.headers.dscp = 10;
  EXPECT_EQ(hand.send(large), Decision::detour);
  hand.swap(policy(10_gbit));
  EXPECT_EQ(hand.send(small), Decision::detour) << "its super-packet is still inside";
}

TEST(Detour, ForgettingAFlowDoesNotLetItOvertakeItself) {
  // The table holds one flow. The flow whose segments are inside must still be split when it comes back.
  Policy policy = at(100_mbit);
  policy.max_flows = 1;
  Hand hand(policy);
  hand.wait(1s);
  EXPECT_EQ(hand.send(super_packet_of(1)), Decision::detour);
  hand.send(tcp_packet_of(2));
  EXPECT_EQ(hand.send(tcp_packet_of(1)), Decision::detour) << "its super-packet is still inside";
}

TEST(Detour, AFlowThatLeavesASharedPlaceDoesNotOvertakeItself) {
  // The table is full of flows that wait; the flow detours in a shared place; then there is room for a flow of its own.
  Policy policy = at(10_mbit);
  policy.max_flows = 8;
  Hand hand(policy);
  for (std::uint32_t flow = 100; flow < 108; ++flow) {
    for (int n = 0; n < 5; ++n) hand.send(tcp_packet_of(flow));
  }
  EXPECT_EQ(hand.send(super_packet_of(1)), Decision::detour);
  hand.wait(1s);
  hand.release();
  EXPECT_EQ(hand.send(tcp_packet_of(1, 52)), Decision::detour) << "its super-packet is still inside";
}

TEST(Detour, KeepsTheOrderOfFlowsThatMixAllSizes) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Random random(seed);
    const DataRate rates[] = {5_mbit, 90_mbit, 450_mbit, 1_gbit};
    Policy policy = policy_of(class_marked("a", 1, rates[seed % 4]), default_class(90_mbit));
    Sim sim({.policy = policy, .lateness = random_lateness(2ms), .seed = seed, .count_every = 64});
    for (std::uint32_t flow = 0; flow < 4; ++flow) {
      const std::uint32_t mark = flow % 2;
      sim.add(poisson(super_packet_of(flow, 20'000, mark), 5ms));
      sim.add(poisson(tcp_packet_of(flow, 52, mark), 2ms));
      sim.add(bursts(tcp_packet_of(flow, 1'500, mark), 4, 5ms));
      sim.add(greedy(super_packet_of(flow + 4, 60'000, mark), 3));
    }
    for (int step = 0; step < 40; ++step) {
      sim.run_for(random.up_to(10ms));
      if (random.chance(50)) {
        policy.classes[random.below(2)].rate = rates[random.below(4)];
        sim.swap(policy);
      }
    }
    sim.drain();
    ASSERT_EQ(sim.broken(), "") << "seed " << seed;
    ASSERT_GT(sim.detours(), 0U);
  }
}

TEST(Detour, ASharedFlowThatAChangeOfPolicyMakesPartOfAnotherStaysOnIt) {
  // The table has room for one flow: others share one by their host's bucket, or one by hash where there is none.
  Policy policy = at(100_kbit);
  policy.classes[0].each = each_of(EachBy::source, 50_kbit);
  policy.max_flows = 1;
  Hand hand(policy);
  EXPECT_EQ(hand.send(tcp_packet_of(flow_of(1, 0))), Decision::accept);
  EXPECT_EQ(hand.send(super_packet_of(flow_of(1, 1))), Decision::detour);
  EXPECT_EQ(hand.send(packet_of(flow_of(2, 0))), std::nullopt) << "it waits, so what waits nowhere joins it";
  hand.swap(policy);
  EXPECT_EQ(hand.send(tcp_packet_of(flow_of(1, 1), 52)), Decision::detour);
}

}  // namespace
}  // namespace shaper::sim
