// A restart: another process goes on with the core's image. Nobody who looks can tell, but for turns among equals.
#include <gtest/gtest.h>

#include "tests/sim.h"
#include "tests/sim_tree.h"

namespace shaper::sim {
namespace {

TEST(Image, NothingChangesForOneBacklog) {
  // One backlogged flow, so that what departs when is told by the buckets alone.
  for (const bool each : {false, true}) {
    ClassPolicy policy = default_class(10_mbit);
    if (each) policy.each = each_of(EachBy::source, 3_mbit);
    Sim quiet({.policy = policy_of(policy)}), restarted({.policy = policy_of(policy)});
    for (Sim* sim : {&quiet, &restarted}) sim->add(greedy(packet_of(1)));
    Random random(7);
    for (int step = 0; step < 500; ++step) {
      const Nanos time = random.up_to(5ms);
      quiet.run_for(time);
      restarted.run_for(time);
      ASSERT_TRUE(restarted.restart());
    }
    EXPECT_EQ(quiet.broken() + restarted.broken(), "");
    EXPECT_EQ(quiet.departures(), restarted.departures());
  }
}

Policy busy_policy() {
  ClassPolicy bulk = class_marked("bulk", 1, 5_mbit);
  bulk.each = each_of(EachBy::source, 2_mbit);
  ClassPolicy shared = default_class(20_mbit);
  shared.limits = {0};
  Policy policy = policy_of(bulk, shared);
  policy.links[0].rate = 15_mbit;
  policy.limits.push_back(limit_named("limit", 10_mbit));
  return policy;
}

void load(Sim& sim) {
  for (std::uint32_t flow = 0; flow < 6; ++flow) sim.add(greedy(packet_of(flow_of(flow, 0), 1'000, flow % 2), 10));
  sim.add(greedy(super_packet_of(flow_of(9, 0), 20'000, 1), 2));
  sim.add(poisson(packet_of(flow_of(7, 0), 100), 3ms));
}

/// Everything that a reader of the core sees, in order of nothing but its contents.
std::vector<std::string> everything_seen(const Sim& sim) {
  std::vector<std::string> lines;
  const auto line = [&](std::string_view what, auto... numbers) {
    std::string text(what);
    ((text += ' ' + std::to_string(numbers)), ...);
    lines.push_back(std::move(text));
  };
  const auto traffic = [&](std::string_view whose, std::uint64_t index, const Traffic& t) {
    line(whose, index, t.sent_packets, t.marked_packets, t.sent_bytes.value, t.wire_bytes.value, t.dropped_packets(),
         t.dropped_bytes.value);
  };
  const auto delays = [&](std::string_view whose, std::uint64_t index, const DelaySummary& d) {
    line(whose, index, d.p50.count(), d.p90.count(), d.p99.count(), d.max.count());
  };
  const CoreSnapshot core = sim.snapshot();
  for (const ClassSnapshot& c : core.classes) {
    traffic("class", c.index, c.traffic);
    delays("class", c.index, c.delay);
    line("class", c.index, c.in_packets, c.lost_packets, c.passed_packets, c.backlog_packets, c.backlog_bytes.value,
         c.rate.bits_per_second, c.credit.value_or(ByteCount{}).value, c.late_bytes.value, c.borrowed_bytes.value,
         c.flows);
    for (const std::uint64_t packets : c.delay_counts.packets) line("delays", c.index, packets);
    line("sum", c.index, static_cast<std::uint64_t>(c.delay_counts.nanoseconds));
  }
  for (const LinkSnapshot& l : core.links) {
    line("link", l.index, l.detoured_packets, l.depth.value_or(ByteCount{}).value, l.credit.value_or(ByteCount{}).value,
         l.late_bytes.value);
  }
  for (const LimitSnapshot& l : core.limits) {
    line("limit", l.index, l.keys, l.rate.bits_per_second, l.credit.value_or(ByteCount{}).value, l.late_bytes.value,
         l.wire_bytes.value);
  }
  line("core", core.flows, core.evicted_flows);
  for (const FlowSnapshot& f : sim.flows()) {
    const std::uint32_t number = flow_number(f.headers);
    traffic("flow", number, f.traffic);
    delays("flow", number, f.delay);
    line("flow", number, f.class_index, f.rate.bits_per_second, f.backlog_packets, f.backlog_bytes.value,
         f.first_seen.time_since_epoch().count(), f.last_seen.time_since_epoch().count());
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST(Image, EverythingThatIsShownStays) {
  Sim sim({.policy = busy_policy()});
  load(sim);
  sim.run_for(1s);
  sim.sleep(30ms);  // for bytes that are late
  sim.run_for(2s);
  const std::vector<std::string> before = everything_seen(sim);
  ASSERT_TRUE(sim.restart());
  EXPECT_EQ(everything_seen(sim), before);
  sim.drain();
  EXPECT_EQ(sim.broken(), "");
}

TEST(Image, ADetourThatIsOnItsWayIsNotForgotten) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    Sim sim({.policy = policy_of(default_class(90_mbit)), .lateness = random_lateness(2ms), .seed = seed});
    for (std::uint32_t flow = 0; flow < 4; ++flow) {
      sim.add(poisson(super_packet_of(flow, 20'000), 5ms));
      sim.add(poisson(tcp_packet_of(flow, 52), 2ms));
    }
    for (int step = 0; step < 60; ++step) {
      sim.run_for(random.up_to(5ms));
      ASSERT_TRUE(sim.restart());
    }
    sim.drain();
    ASSERT_EQ(sim.broken(), "") << "seed " << seed;
    ASSERT_GT(sim.detours(), 0U);
  }
}

TEST(Image, OfAnotherPolicyIsRefused) {
  Sim sim({.policy = busy_policy()});
  load(sim);
  sim.run_for(100ms);
  ImageWriter writer;
  Shaper other(policy_of(default_class(10_mbit)), StartCredit::full, Sim::kKey, sim.now());
  other.save(writer, sim.now());
  EXPECT_FALSE(sim.restart([&](std::string& bytes) { bytes = writer.bytes(); }));
}

TEST(Image, ThatIsCutShortIsRefused) {
  Sim sim({.policy = busy_policy()});
  load(sim);
  sim.run_for(100ms);
  Random random(3);
  for (int n = 0; n < 100; ++n) {
    EXPECT_FALSE(sim.restart([&](std::string& bytes) { bytes.resize(random.below(bytes.size())); }));
  }
  EXPECT_FALSE(sim.restart([](std::string& bytes) { bytes += '\0'; }));
  EXPECT_TRUE(sim.restart());
}

}  // namespace
}  // namespace shaper::sim
