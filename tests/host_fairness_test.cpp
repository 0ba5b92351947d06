// Who is served inside a class: an even share for each host (or whatever `fair` names), and only then for each flow.
#include <gtest/gtest.h>

#include "tests/sim.h"

namespace shaper::sim {
namespace {

constexpr std::uint64_t kFrame = 1514;

ClassPolicy fair_class(Fair fair, DataRate rate = 10_mbit) {
  ClassPolicy policy = default_class(rate);
  policy.fair = fair;
  policy.backlog = ByteCount{10'000'000};
  policy.max_delay = 60s;
  return policy;
}

/// Bytes that `count` flows of a host sent, from its port `first` on.
std::uint64_t sent_by_host(const Sim& sim, std::uint32_t host, std::uint32_t count, Instant begin = kStart) {
  std::uint64_t sum = 0;
  for (std::uint32_t port = 0; port < count; ++port) sum += sim.sent(flow_of(host, port), begin).value;
  return sum;
}

Nanos p99(const std::vector<Nanos>& delays) {
  return delays.empty() ? Nanos::max() : delays[delays.size() * 99 / 100];
}

TEST(HostFairness, ManyFlowsOfAHostGetNoMoreThanOneOfAnother) {
  for (const Lateness lateness : {Lateness{}, random_lateness(4ms)}) {
    for (const std::uint32_t bytes : {1'500U, 200U}) {
      Sim sim({.policy = policy_of(fair_class(Fair::host)), .lateness = lateness});
      sim.add(greedy(packet_of(flow_of(1, 0)), 60));
      for (std::uint32_t port = 0; port < 32; ++port) sim.add(greedy(packet_of(flow_of(2, port), bytes), 20));
      sim.run_for(10s);
      const double one = static_cast<double>(sent_by_host(sim, 1, 1));
      const double many = static_cast<double>(sent_by_host(sim, 2, 32));
      EXPECT_NEAR(one / (one + many), 0.5, 0.005) << bytes << " bytes";
      for (std::uint32_t port = 0; port < 32; ++port) {
        EXPECT_NEAR(static_cast<double>(sim.sent(flow_of(2, port)).value), many / 32, 0.02 * many / 32 + 2 * kFrame);
      }
      EXPECT_EQ(sim.broken(), "");
    }
  }
}

TEST(HostFairness, GoesByTheLocalSideOfTheLink) {
  // Egress: the source. Ingress: the destination; here two remote hosts send to one local host, and a third to another.
  for (const Direction direction : {Direction::egress, Direction::ingress}) {
    Policy policy = policy_of(fair_class(Fair::host));
    policy.links[0].direction = direction;
    Sim sim({.policy = policy});
    for (std::uint32_t host = 1; host <= 3; ++host) {
      Packet packet = packet_of(flow_of(host, 0));
      packet.headers.destination = ipv4(192, 168, 0, host == 3 ? 2 : 1);
      sim.add(greedy(packet));
    }
    sim.run_for(10s);
    const double third = static_cast<double>(sent_by_host(sim, 3, 1));
    EXPECT_NEAR(third / static_cast<double>(sim.sent().value), direction == Direction::egress ? 1.0 / 3 : 0.5, 0.005);
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(HostFairness, EachWordOfFairTellsOthersApart) {
  // One flow of host 1 against three: of host 2, user 7 and one destination, each.
  struct Case {
    const char* sentence;
    Fair fair;
    double part;  // of the single flow
  };
  const Case cases[] = {
      {"host: the source, on egress", Fair::host, 0.5}, {"source", Fair::source, 0.5},
      {"destination", Fair::destination, 0.5},          {"user", Fair::user, 0.5},
      {"flow: nobody is told apart", Fair::flow, 0.25},
  };
  for (const Case& test : cases) {
    Sim sim({.policy = policy_of(fair_class(test.fair))});
    Packet single = packet_of(flow_of(1, 0));
    single.headers.destination = ipv4(192, 168, 0, 1);
    single.user = 6;
    sim.add(greedy(single));
    for (std::uint32_t port = 0; port < 3; ++port) {
      Packet packet = packet_of(flow_of(2, port));
      packet.headers.destination = ipv4(192, 168, 0, 2);
      packet.user = 7;
      sim.add(greedy(packet));
    }
    sim.run_for(10s);
    EXPECT_NEAR(static_cast<double>(sim.sent(flow_of(1, 0)).value) / static_cast<double>(sim.sent().value), test.part,
                0.005)
        << test.sentence;
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(HostFairness, PacketsWithoutAUserAreOneUser) {
  Sim sim({.policy = policy_of(fair_class(Fair::user))});
  Packet known = packet_of(flow_of(1, 0));
  known.user = 0;
  sim.add(greedy(known));
  for (std::uint32_t port = 0; port < 4; ++port) sim.add(greedy(packet_of(flow_of(2, port))));
  sim.run_for(5s);
  EXPECT_NEAR(static_cast<double>(sim.sent(flow_of(1, 0)).value) / static_cast<double>(sim.sent().value), 0.5, 0.01);
  EXPECT_EQ(sim.broken(), "");
}

TEST(HostFairness, OffKeepsTheOrderOfArrival) {
  for (const Lateness lateness : {Lateness{}, random_lateness(2ms)}) {
    Sim sim({.policy = policy_of(fair_class(Fair::off, 1_mbit)), .lateness = lateness});
    Random random(3);
    for (int n = 0; n < 300; ++n) {
      const auto flow = static_cast<std::uint32_t>(random.below(40));
      sim.send(packet_of(flow * 7, static_cast<std::uint32_t>(random.between(60, 1'500))));
      if (random.chance(30)) sim.run_for(random.up_to(10ms));
    }
    sim.drain();
    Instant latest = kStart;
    for (const Departure& departure : sim.departures()) {
      if (!departs(departure.decision)) continue;
      ASSERT_GE(departure.arrival, latest);
      latest = departure.arrival;
    }
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(HostFairness, WithOffAFlowThatSendsMoreGetsMore) {
  ClassPolicy policy = fair_class(Fair::off);
  policy.max_delay = 200ms;
  Sim sim({.policy = policy_of(policy)});
  sim.add(constant(packet_of(flow_of(1, 0)), 1ms));  // 12 Mbit/s
  sim.add(constant(packet_of(flow_of(2, 0)), 4ms));  // 3 Mbit/s
  sim.run_for(10s);
  const double many = static_cast<double>(sim.sent(flow_of(1, 0)).value);
  const double few = static_cast<double>(sim.sent(flow_of(2, 0)).value);
  EXPECT_GT(many, 2.5 * few);
  EXPECT_EQ(sim.broken(), "");
}

TEST(HostFairness, ASparseFlowOfABusyHostIsQuick) {
  struct Case {
    DataRate rate;
    Nanos gap;  // between its packets: less than its share of its host's half
    Nanos most;
  };
  // At 1 Mbit/s a full frame takes 12 ms: a host that has had its turn waits for one of the other host's, or two.
  for (const Case& test : {Case{1_mbit, 100ms, 26ms}, Case{10_mbit, 20ms, 3ms}, Case{100_mbit, 20ms, 1ms}}) {
    Sim sim({.policy = policy_of(fair_class(Fair::host, test.rate)), .lateness = random_lateness(200us)});
    for (std::uint32_t port = 0; port < 16; ++port) sim.add(greedy(packet_of(flow_of(1, port)), 10));
    sim.add(greedy(packet_of(flow_of(2, 0))));
    const std::uint32_t echo = flow_of(1, 40);
    sim.add(poisson(packet_of(echo, 98), test.gap));
    sim.run_for(test.rate == 100_mbit ? Nanos{5s} : Nanos{30s});
    EXPECT_LT(p99(sim.delays(echo)), test.most) << test.rate.bits_per_second;
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(HostFairness, ASparseFlowIsQuickNextToBulkOfItsOwnHost) {
  // The only host, or one of two of which the other is idle: nobody else's turn is waited for.
  struct Case {
    DataRate rate;
    std::uint32_t bulk;
    Nanos most;
  };
  for (const Case& test : {Case{1_mbit, 1, 3ms}, Case{1_mbit, 8, 3ms}, Case{10_mbit, 8, 1ms}, Case{100_mbit, 8, 1ms}}) {
    Sim sim({.policy = policy_of(fair_class(Fair::host, test.rate)), .lateness = random_lateness(200us)});
    for (std::uint32_t port = 0; port < test.bulk; ++port) sim.add(greedy(packet_of(flow_of(1, port)), 10));
    const std::uint32_t echo = flow_of(1, 40);
    sim.add(poisson(packet_of(echo, 98), 20ms));
    sim.run_for(test.rate == 100_mbit ? Nanos{5s} : Nanos{30s});
    EXPECT_LT(p99(sim.delays(echo)), test.most)
        << test.rate.bits_per_second << " bit/s, " << test.bulk << " bulk flows";
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(HostFairness, ASparseHostIsQuickNextToBusyOnes) {
  Sim sim({.policy = policy_of(fair_class(Fair::host))});
  for (std::uint32_t host = 1; host <= 4; ++host) {
    for (std::uint32_t port = 0; port < 8; ++port) sim.add(greedy(packet_of(flow_of(host, port)), 10));
  }
  const std::uint32_t echo = flow_of(9, 0);
  sim.add(poisson(packet_of(echo, 98), 20ms));
  sim.run_for(20s);
  EXPECT_LT(p99(sim.delays(echo)), Nanos{1ms});
  EXPECT_EQ(sim.broken(), "");
}

TEST(HostFairness, AFloodOfNewFlowsDoesNotTakeAnotherHostsHalf) {
  // Every packet of host 2 is a flow of its own (by its destination port), and new flows go first.
  Policy policy = policy_of(fair_class(Fair::host));
  policy.max_flows = 60'000;
  policy.classes[0].backlog = ByteCount{300'000};
  Sim sim({.policy = policy, .count_every = 500});
  sim.add(greedy(packet_of(flow_of(1, 0)), 60));
  Random random(1);
  for (std::uint32_t n = 0; n < 20'000; ++n) {
    Packet packet = packet_of(flow_of(2, n % 64), n % 3 == 0 ? 100 : 1'500);
    packet.headers.destination_port = static_cast<std::uint16_t>(n);
    packet.headers.dscp = static_cast<std::uint8_t>(n / 64 % 64);  // the simulation tells such flows apart by this
    sim.send(packet);
    sim.run_for(random.exponential(500us));
  }
  const double half = static_cast<double>(sim.sent().value) / 2;
  EXPECT_NEAR(static_cast<double>(sim.sent(flow_of(1, 0)).value), half, 0.02 * half);
  EXPECT_EQ(sim.broken(), "");
}

TEST(HostFairness, OverTheBacklogBoundTheFattestHostLoses) {
  // Host 1 fills the class with many flows of a few packets each, host 2 has one flow with more packets than any of
  // them.
  ClassPolicy policy = fair_class(Fair::host, 1_mbit);
  policy.backlog = ByteCount{60 * kFrame};
  Sim sim({.policy = policy_of(policy)});
  for (int n = 0; n < 10; ++n) sim.send(packet_of(flow_of(2, 0)));
  for (std::uint32_t n = 0; n < 200; ++n) sim.send(packet_of(flow_of(1, n % 50)));
  EXPECT_EQ(sim.dropped({}, flow_of(2, 0)), 0U);
  EXPECT_GT(sim.dropped(DropReason::backlog), 130U);
  EXPECT_LE(sim.snapshot().classes[0].backlog_bytes.value, 61 * kFrame);
  EXPECT_EQ(sim.broken(), "");
}

TEST(HostFairness, HostsThatComeAndGoKeepTheirShares) {
  // On and off: what a host did not use while it was away is not owed to it.
  Sim sim({.policy = policy_of(fair_class(Fair::host))});
  sim.add(greedy(packet_of(flow_of(1, 0)), 30));
  for (int round = 0; round < 20; ++round) {
    const Instant begin = sim.now();
    for (std::uint32_t port = 0; port < 4; ++port) {
      for (int n = 0; n < 30; ++n) sim.send(packet_of(flow_of(2, port)));
    }
    sim.run_for(100ms);  // 125 kB in all, host 2 has 180 kB
    const double both = static_cast<double>(sim.sent({}, begin).value);
    EXPECT_NEAR(static_cast<double>(sent_by_host(sim, 2, 4, begin)), both / 2, 3.0 * kFrame) << "round " << round;
    sim.run_for(400ms);
  }
  EXPECT_EQ(sim.broken(), "");
}

TEST(HostFairness, HostsOfBothFamiliesAreHosts) {
  Sim sim({.policy = policy_of(fair_class(Fair::host))});
  sim.add(greedy(packet_of(flow_of(1, 0))));
  for (std::uint32_t port = 0; port < 4; ++port) sim.add(greedy(packet_of(flow_of(1, port) | kIpv6Flow)));
  sim.run_for(5s);
  EXPECT_NEAR(static_cast<double>(sim.sent(flow_of(1, 0)).value) / static_cast<double>(sim.sent().value), 0.5, 0.01);
  EXPECT_EQ(sim.broken(), "");
}

TEST(HostFairness, ASwapOfFairIsObeyedFromThenOn) {
  Sim sim({.policy = policy_of(fair_class(Fair::flow))});
  sim.add(greedy(packet_of(flow_of(1, 0))));
  for (std::uint32_t port = 0; port < 4; ++port) sim.add(greedy(packet_of(flow_of(2, port))));
  for (const Fair fair : {Fair::host, Fair::flow, Fair::off, Fair::source}) {
    sim.swap(policy_of(fair_class(fair)));
    sim.run_for(500ms);
    const Instant begin = sim.now();
    sim.run_for(3s);
    const double part =
        static_cast<double>(sim.sent(flow_of(1, 0), begin).value) / static_cast<double>(sim.sent({}, begin).value);
    const bool hosts = fair == Fair::host || fair == Fair::source;
    EXPECT_NEAR(part, hosts ? 0.5 : 0.2, 0.02) << static_cast<int>(fair);
  }
  EXPECT_EQ(sim.broken(), "");
}

}  // namespace
}  // namespace shaper::sim
