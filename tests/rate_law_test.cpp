// The rate law as experiments: never more than depth + rate x t in any window, never less than the rate for long.
//
// Every simulation checks the law itself, over all windows (sim_law.h); the tests here add how much must pass, when the
// first packet may go, and thousands of random policies.
#include <gtest/gtest.h>

#include "tests/sim.h"
#include "tests/sim_tree.h"

namespace shaper::sim {
namespace {

constexpr std::uint32_t kFrame = 1514;  // 1500 bytes of IP on Ethernet

/// What departed in `time` after the bucket's start was used up, against rate x time, in parts per million.
std::int64_t deviation(const Sim& sim, DataRate rate, Instant begin, Nanos time) {
  const auto wanted = static_cast<std::int64_t>(bytes_in(rate, time).value);
  return (static_cast<std::int64_t>(sim.sent({}, begin).value) - wanted) * 1'000'000 / wanted;
}

TEST(RateLaw, ABackloggedClassSendsItsRateWithinOneFrame) {
  for (const DataRate rate : {100_kbit, 1_mbit, 10_mbit, 100_mbit}) {
    Sim sim({.policy = policy_of(default_class(rate))});
    sim.add(greedy(packet_of(1)));
    sim.run_for(2s);
    const ByteCount depth = sim.law().total(0)->depth();
    const std::uint64_t most = depth.value + bytes_in(rate, 2s).value;
    EXPECT_EQ(sim.broken(), "");
    EXPECT_LE(sim.sent().value, most) << rate.bits_per_second;
    EXPECT_GE(sim.sent().value + kFrame, most) << rate.bits_per_second;
  }
}

TEST(RateLaw, TheDepthIsOneFramePlusTheBurst) {
  struct Case {
    const char* sentence;
    Burst burst;
    std::uint64_t depth;
  };
  const Case cases[] = {
      {"the default is 4 ms: 5000 bytes at 10 Mbit/s", kDefaultBurst, kFrame + 5'000},
      {"a time", Nanos{10ms}, kFrame + 12'500},
      {"bytes", ByteCount{3'000}, kFrame + 3'000},
      {"no burst leaves the frame", Nanos{0}, kFrame},
  };
  for (const Case& test : cases) {
    ClassPolicy policy = default_class(10_mbit);
    policy.burst = test.burst;
    Sim sim({.policy = policy_of(policy)});
    sim.add(bursts(packet_of(1, 86), 2'000, 10s));  // frames of 100 bytes
    sim.run_for(0s);
    EXPECT_EQ(sim.broken(), "");
    EXPECT_EQ(sim.sent().value, test.depth / 100 * 100) << test.sentence;
    EXPECT_EQ(sim.snapshot().classes[0].depth, ByteCount{test.depth}) << test.sentence;
    EXPECT_EQ(sim.snapshot().classes[0].credit, ByteCount{test.depth % 100}) << test.sentence;
  }
}

TEST(RateLaw, AfterACrashTheFirstPacketWaitsForItsCredit) {
  for (const bool each : {false, true}) {
    ClassPolicy policy = default_class(each ? std::optional<DataRate>{} : 1_mbit);
    if (each) policy.each = each_of(EachBy::source, 1_mbit);
    Sim sim({.policy = policy_of(policy), .credit = StartCredit::empty});
    sim.send(packet_of(1));
    sim.run_for(1s);
    ASSERT_EQ(sim.departures().size(), 1U);
    EXPECT_EQ(sim.departures()[0].delay(), time_for(1_mbit, {kFrame})) << (each ? "each" : "total");
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(RateLaw, APauseEarnsOneDepthAndNotMore) {
  Sim sim({.policy = policy_of(default_class(8_mbit))});
  for (int round = 0; round < 5; ++round) {
    const Instant begin = sim.now();
    for (int n = 0; n < 100; ++n) sim.send(packet_of(1, 486));
    EXPECT_EQ(sim.sent({}, begin).value, (kFrame + 4'000) / 500 * 500);
    sim.run_for(1h);
  }
  EXPECT_EQ(sim.broken(), "");
}

TEST(RateLaw, SmallPacketsUseWhatIsSavedForALargeOne) {
  // Credit is chosen for at departure: next to a waiting large packet a small one of a new flow waits for its own size.
  Sim sim({.policy = policy_of(default_class(1_mbit))});
  sim.add(greedy(packet_of(1)));
  sim.run_for(1s);
  sim.send(packet_of(flow_of(5, 0), 86));
  sim.run_for(1s);
  const auto& all = sim.departures();
  const auto small = std::find_if(all.begin(), all.end(), [](const Departure& d) { return d.wire_bytes.value == 100; });
  ASSERT_NE(small, all.end());
  EXPECT_LE(small->delay(), time_for(1_mbit, {100}));
  EXPECT_EQ(sim.broken(), "");
}

TEST(RateLaw, APacketLargerThanTheDepthPassesAndTheDepthGrows) {
  // 9000-byte packets where the MTU was thought to be 1500 are counted as fragments: one "packet" of 9 kB on the wire.
  ClassPolicy policy = default_class(1_mbit);
  policy.burst = Nanos{0};
  Sim sim({.policy = policy_of(policy), .lateness = fixed_lateness(0ms)});
  sim.add(greedy(packet_of(1, 9'000), 5));
  sim.run_for(60s);
  EXPECT_EQ(sim.broken(), "");
  EXPECT_LE(std::abs(deviation(sim, 1_mbit, Sim::kStart, 60s)), 2'000);
  const std::uint64_t large = wire_size(packet_of(1, 9'000), {}).bytes.value;
  EXPECT_EQ(sim.snapshot().classes[0].depth, ByteCount{large});
}

TEST(RateLaw, WakeUpsLateByTheBurstCostNoRate) {
  for (const DataRate rate : {1_mbit, 10_mbit, 100_mbit}) {
    for (const std::uint32_t bytes : {100U, 1'500U, 9'000U}) {
      // Between one frame and the depth a packet's own time is missing from what may be late.
      const Nanos most = rate == 100_mbit && bytes == 9'000 ? Nanos{3ms} : Nanos{4ms};
      for (const Lateness lateness : {fixed_lateness(most), random_lateness(most)}) {
        Sim sim({.policy = policy_of(default_class(rate)), .lateness = lateness, .count_every = 256});
        sim.add(greedy(packet_of(1, bytes), 4 + 120'000 / bytes));  // more than departs at one wake-up
        sim.run_for(100ms);
        const Instant begin = sim.now();
        const Nanos time = time_for(rate, {2'000'000});
        sim.run_for(time);
        EXPECT_EQ(sim.broken(), "");
        // Within one depth: what was sent late before belongs to it.
        const auto slack = static_cast<std::int64_t>(sim.law().total(0)->depth().value);
        const auto wanted = static_cast<std::int64_t>(bytes_in(rate, time).value);
        EXPECT_LE(std::abs(static_cast<std::int64_t>(sim.sent({}, begin).value) - wanted), wanted / 1'000 + slack)
            << rate.bits_per_second << " bit/s, " << bytes << " bytes";
        EXPECT_EQ(sim.snapshot().classes[0].late_bytes.value, 0U) << rate.bits_per_second << " bit/s, " << bytes;
      }
    }
  }
}

TEST(RateLaw, LatenessAboveTheBurstShowsInLateBytes) {
  Sim sim({.policy = policy_of(default_class(10_mbit)), .lateness = fixed_lateness(10ms)});
  sim.add(greedy(packet_of(1), 200));
  sim.run_for(10s);
  const std::uint64_t missing = bytes_in(10_mbit, 10s).value - sim.sent().value;
  const std::uint64_t late = sim.snapshot().classes[0].late_bytes.value;
  EXPECT_EQ(sim.broken(), "");
  EXPECT_GT(late, 0U);
  // What is missing is told: all of it, but for the bucket's content at both ends.
  EXPECT_NEAR(static_cast<double>(late), static_cast<double>(missing), 2 * (kFrame + 5'000.0));
}

TEST(RateLaw, AnIdleBucketLosesNothingToLateWakeUps) {
  Sim sim({.policy = policy_of(default_class(10_mbit)), .lateness = fixed_lateness(20ms)});
  sim.add(constant(packet_of(1), 50ms));
  sim.run_for(10s);
  EXPECT_EQ(sim.snapshot().classes[0].late_bytes.value, 0U);
  EXPECT_EQ(sim.broken(), "");
}

TEST(RateLaw, HoldsForRealDeparturesThatComeLate) {
  // Carrying out verdicts takes up to 1.5 ms: what counts is when the packets leave, and the rate does not suffer.
  for (const DataRate rate : {1_mbit, 20_mbit}) {
    Sim sim({.policy = policy_of(default_class(rate)), .sending = 1'500us});
    sim.add(greedy(packet_of(1), 60));
    sim.run_for(5s);
    EXPECT_EQ(sim.broken(), "");
    EXPECT_LE(std::abs(deviation(sim, rate, Sim::kStart, 5s)), 10'000);
  }
}

TEST(RateLaw, NothingIsRoundedAtShortGaps) {
  // A policer that rounds its refill down to whole bytes delivers 0.012 of 1 Mbit/s at gaps of 5 us.
  for (const Nanos gap : {Nanos{5us}, Nanos{1us}, Nanos{7'777ns}}) {
    ClassPolicy policy = default_class(1_mbit);
    policy.over = Over::drop;
    Sim sim({.policy = policy_of(policy), .count_every = 1'000});
    sim.add(constant(packet_of(1, 86), gap));
    sim.run_for(100ms);
    EXPECT_EQ(sim.broken(), "");
    const std::uint64_t most = bytes_in(1_mbit, 100ms).value + sim.law().total(0)->depth().value;
    EXPECT_GE(sim.sent().value + 100, most) << gap.count();
  }
}

TEST(RateLaw, AFlowDoesNotMultiplyItsBucketByDscpOrMark) {
  // Some class asks for both; this flow varies them and stays in one class all the same.
  ClassPolicy asks = class_marked("asks", 99);
  asks.match[0].dscp = {63};
  ClassPolicy policy = default_class();
  policy.each = each_of(EachBy::flow, 1_mbit);
  Sim sim({.policy = policy_of(asks, policy)});
  for (std::uint8_t dscp = 0; dscp < 8; ++dscp) {
    Packet packet = packet_of(1, 1'500, dscp % 2);
    packet.headers.dscp = dscp;
    sim.add(poisson(packet, 12ms));
  }
  sim.run_for(5s);
  EXPECT_EQ(sim.broken(), "");
}

TEST(RateLaw, SlowestAndFastestRate) {
  Sim slow({.policy = policy_of(default_class(kSlowestRate))});
  slow.add(greedy(packet_of(1), 4));
  slow.run_for(24h);
  EXPECT_EQ(slow.broken(), "");
  EXPECT_LE(std::abs(deviation(slow, kSlowestRate, Sim::kStart, 24h)), 1'000);

  Sim fast({.policy = policy_of(default_class(kFastestRate))});
  fast.add(greedy(super_packet_of(1, 60'000), 10'000));
  fast.run_for(20ms);
  EXPECT_EQ(fast.broken(), "");
  EXPECT_LE(fast.sent().value, bytes_in(kFastestRate, 24ms).value + 65'000);
  EXPECT_GE(fast.sent().value, bytes_in(kFastestRate, 20ms).value);
}

TEST(RateLaw, HoldsForLinksAndLimitsAsForClasses) {
  // The same rate, once as a class's, once as the link's, once as a limit's: the same departures.
  std::vector<std::vector<Departure>> stories;
  for (int kind = 0; kind < 3; ++kind) {
    Policy policy = policy_of(default_class());
    policy.limits.push_back(limit_named("limit", 5_mbit));
    if (kind == 0) policy.classes[0].rate = 5_mbit;
    if (kind == 1) policy.links[0].rate = 5_mbit;
    if (kind == 2) policy.classes[0].limits = {0};
    Sim sim({.policy = policy, .lateness = random_lateness(2ms)});
    for (std::uint32_t host = 0; host < 3; ++host) sim.add(greedy(packet_of(flow_of(host, 0), 500 + 500 * host)));
    sim.run_for(2s);
    EXPECT_EQ(sim.broken(), "");
    stories.push_back(sim.departures());
  }
  EXPECT_EQ(stories[0], stories[1]);
  EXPECT_EQ(stories[0], stories[2]);
}

/// Feeds every class of a random policy between a fraction and a multiple of its rate, then lets all of it depart.
void run_random(std::uint64_t seed, std::size_t packets) {
  Random random(seed);
  Experiment experiment{.policy = random_policy(random), .lateness = {}, .seed = seed};
  if (random.chance(30)) experiment.lateness = fixed_lateness(random.up_to(5ms));
  if (random.chance(30)) experiment.lateness = random_lateness(random.up_to(100ms));
  if (random.chance(20)) experiment.credit = StartCredit::empty;
  if (random.chance(30)) experiment.sending = random.up_to(2ms);
  Sim sim(experiment);
  for (const Source& source : random_traffic(experiment.policy, random)) sim.add(source);
  sim.run_for_packets(packets);
  sim.drain();
  ASSERT_EQ(sim.broken(), "") << "seed " << seed;
}

TEST(RateLaw, HoldsForRandomPoliciesAndArrivals) {
  for (const std::uint64_t seed : seeds(1'000)) {
    run_random(seed, 100);
    if (HasFatalFailure()) break;
  }
}

TEST(RateLaw, HoldsForRandomPoliciesOverLongRuns) {
  for (std::uint64_t seed = 100'001; seed <= 100'010 && !HasFatalFailure(); ++seed) run_random(seed, 5'000);
}

}  // namespace
}  // namespace shaper::sim
