// How classes share a link: guarantees first, then what is left by priority, and within a priority in proportion to the
// weights. Nothing is left over while somebody waits.
#include <gtest/gtest.h>

#include "tests/sim.h"

namespace shaper::sim {
namespace {

constexpr double kFrame = 1514;

/// Bits per second of a class between `begin` and now.
double rate_of(const Sim& sim, ClassIndex index, Instant begin) {
  return static_cast<double>(sim.sent_by_class(index, begin).value) * 8e9 /
         static_cast<double>((sim.now() - begin).count());
}

/// Each class's rate between `begin` and now is that many Mbit/s, within `part` and two frames.
void expect_rates(const Sim& sim, Instant begin, const std::vector<double>& mbit, double part = 0.01) {
  const double seconds = static_cast<double>((sim.now() - begin).count()) / 1e9;
  for (ClassIndex index = 0; index < mbit.size(); ++index) {
    const double wanted = mbit[index] * 1e6;
    EXPECT_NEAR(rate_of(sim, index, begin), wanted, wanted * part + 2 * kFrame * 8 / seconds) << "class " << index;
  }
}

/// A class for `mark` with this guarantee that may borrow everything.
ClassPolicy sharing(std::uint32_t mark, std::optional<DataRate> rate = {}) {
  return borrowing(class_marked("c" + std::to_string(mark), mark, rate));
}

/// Keeps the class of `mark` busy with a few flows.
void keep_busy(Sim& sim, std::uint32_t mark, std::uint32_t bytes = 1'500) {
  for (std::uint32_t port = 0; port < 3; ++port) sim.add(greedy(packet_of(flow_of(mark, port), bytes, mark), 40));
}

Policy ten_twenty_thirty() {
  return link_of(60_mbit, sharing(1, 10_mbit), sharing(2, 20_mbit), sharing(3, 30_mbit), default_class());
}

TEST(Share, BusyClassesGetTheirGuarantees) {
  for (const Lateness lateness : {Lateness{}, random_lateness(3ms)}) {
    Sim sim({.policy = ten_twenty_thirty(), .lateness = lateness});
    for (const std::uint32_t mark : {1U, 2U, 3U}) keep_busy(sim, mark);
    sim.run_for(100ms);
    const Instant begin = sim.now();
    sim.run_for(5s);
    expect_rates(sim, begin, {10, 20, 30});
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(Share, PacketsOfDifferentSizesShareByBytes) {
  Sim sim({.policy = ten_twenty_thirty()});
  keep_busy(sim, 1, 1'500);
  keep_busy(sim, 2, 300);
  keep_busy(sim, 3, 86);
  sim.run_for(100ms);
  const Instant begin = sim.now();
  sim.run_for(3s);
  expect_rates(sim, begin, {10, 20, 30});
  EXPECT_EQ(sim.broken(), "");
}

TEST(Share, AGuaranteeIsNotLostToABetterPriorityThatComesBackWithAllItHasSaved) {
  // All is promised. Each time the first class comes back it sends what it has saved before the last one, which waits
  // longer than its bucket lasts; and what is free in between goes to the second.
  ClassPolicy often = sharing(1, 9_mbit), borrower = sharing(2), last = sharing(3, 1_mbit);
  often.priority = 0;
  borrower.priority = 1;
  last.priority = 7;
  for (const Lateness lateness : {Lateness{}, random_lateness(2ms)}) {
    Sim sim({.policy = link_of(10_mbit, often, borrower, last, default_class()), .lateness = lateness});
    Source burst = constant(packet_of(flow_of(1, 0), 1'500, 1), 62ms);
    burst.together = 46;  // 9 Mbit/s
    sim.add(burst);
    keep_busy(sim, 2);
    keep_busy(sim, 3);
    sim.run_for(1s);
    const Instant begin = sim.now();
    sim.run_for(20s);
    // But for what two guarantees may have saved, three frames each, and what the link lends in a late wake-up.
    EXPECT_GE(static_cast<double>(sim.sent_by_class(2, begin).value) + 2 * 3 * kFrame,
              static_cast<double>(bytes_in(1_mbit, 20s).value));
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(Share, WhatAnIdleClassLeavesGoesToTheOthersInProportionWithin200Milliseconds) {
  for (ClassIndex idle = 0; idle < 3; ++idle) {
    Sim sim({.policy = ten_twenty_thirty()});
    for (const std::uint32_t mark : {1U, 2U, 3U}) keep_busy(sim, mark);
    sim.run_for(1s);
    for (std::size_t source = 0; source < 3; ++source) sim.stop(3 * idle + source);
    sim.run_for(200ms);
    const Instant begin = sim.now();
    sim.run_for(2s);
    std::vector<double> wanted{10, 20, 30};
    const double busy = 60 - wanted[idle];
    for (double& rate : wanted) rate *= 60 / busy;
    wanted[idle] = 0;
    expect_rates(sim, begin, wanted);
    keep_busy(sim, idle + 1);
    sim.run_for(200ms);
    const Instant again = sim.now();
    sim.run_for(2s);
    expect_rates(sim, again, {10, 20, 30});
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(Share, WhatIsLeftGoesToTheFirstPriorityUpToItsCeil) {
  struct Case {
    const char* sentence;
    std::optional<DataRate> ceil;  // of the first priority; absent: the link
    std::vector<double> mbit;
  };
  const Case cases[] = {
      {"it takes all that the other is not guaranteed", {}, {70, 30}},
      {"its ceil leaves something", 40_mbit, {40, 60}},
  };
  for (const Case& test : cases) {
    ClassPolicy first = sharing(1, 10_mbit), last = sharing(2, 30_mbit);
    first.priority = 0;
    last.priority = 7;
    if (test.ceil) first.ceil_is_link = false;
    first.ceil = test.ceil;
    Sim sim({.policy = link_of(100_mbit, first, last, default_class())});
    keep_busy(sim, 1);
    keep_busy(sim, 2);
    sim.run_for(100ms);
    const Instant begin = sim.now();
    sim.run_for(3s);
    SCOPED_TRACE(test.sentence);
    expect_rates(sim, begin, test.mbit);
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(Share, WithoutGuaranteesThePriorityDecidesAlone) {
  Policy policy = link_of(20_mbit, default_class());
  for (const std::uint32_t mark : {1U, 2U, 3U}) {
    policy.classes.push_back(sharing(mark));
    policy.classes.back().priority = static_cast<std::uint8_t>(mark);
  }
  Sim sim({.policy = policy});
  keep_busy(sim, 2);
  keep_busy(sim, 3);
  sim.run_for(1s);
  const Instant begin = sim.now();
  sim.run_for(2s);
  expect_rates(sim, begin, {0, 0, 20, 0});
  keep_busy(sim, 1);
  sim.run_for(100ms);
  const Instant later = sim.now();
  sim.run_for(2s);
  expect_rates(sim, later, {0, 20, 0, 0});
  EXPECT_EQ(sim.broken(), "");
}

TEST(Share, NoGuaranteeIsStarvedByBorrowersOfAHigherPriority) {
  // Looked at in every fifth of a second, whatever sizes the borrowers send.
  for (const std::uint32_t bytes : {86U, 1'500U}) {
    ClassPolicy low = sharing(9, 20_mbit);
    low.priority = 7;
    Policy policy = link_of(50_mbit, low, default_class());
    for (std::uint32_t mark = 1; mark <= 4; ++mark) {
      policy.classes.push_back(sharing(mark, 1_mbit));
      policy.classes.back().priority = 0;
    }
    Sim sim({.policy = policy});
    keep_busy(sim, 9);
    for (std::uint32_t mark = 1; mark <= 4; ++mark) keep_busy(sim, mark, bytes);
    for (int step = 0; step < 10; ++step) {
      const Instant begin = sim.now();
      sim.run_for(200ms);
      const std::uint64_t least = bytes_in(20_mbit, 200ms).value - 2 * 1'514;
      EXPECT_GE(sim.sent_by_class(0, begin).value, least) << "step " << step << ", " << bytes << " bytes";
    }
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(Share, AGuaranteedClassThatSendsLittleIsServedAtOnce) {
  // Its packet waits for the frame that is on its way, no more, although everybody else borrows at a higher priority.
  ClassPolicy low = sharing(9, 5_mbit), high = sharing(1, 1_mbit);
  low.priority = 7;
  high.priority = 0;
  Sim sim({.policy = link_of(20_mbit, low, high, default_class())});
  keep_busy(sim, 1);
  sim.add(poisson(packet_of(flow_of(9, 0), 500, 9), 10ms));
  sim.run_for(10s);
  const std::vector<Nanos> delays = sim.delays(flow_of(9, 0));
  EXPECT_LE(delays[delays.size() * 99 / 100], 2 * time_for(20_mbit, {1'514}));
  EXPECT_EQ(sim.broken(), "");
}

TEST(Share, GuaranteesAboveTheLinkScaleDownInProportion) {
  Sim sim({.policy = link_of(100_mbit, sharing(1, 60_mbit), sharing(2, 90_mbit), default_class())});
  keep_busy(sim, 1);
  keep_busy(sim, 2);
  sim.run_for(100ms);
  const Instant begin = sim.now();
  sim.run_for(3s);
  expect_rates(sim, begin, {40, 60});
  const CoreSnapshot told = sim.snapshot();
  EXPECT_EQ(told.classes[0].guarantee, std::optional{40_mbit});
  EXPECT_EQ(told.classes[1].guarantee, std::optional{60_mbit});
  EXPECT_EQ(sim.broken(), "");
}

TEST(Share, AScaledGuaranteeHoldsAgainstAHigherPriorityToo) {
  ClassPolicy high = sharing(1, 150_mbit), low = sharing(2, 50_mbit);
  high.priority = 0;
  low.priority = 7;
  Sim sim({.policy = link_of(100_mbit, high, low, default_class())});
  keep_busy(sim, 1);
  keep_busy(sim, 2);
  sim.run_for(100ms);
  const Instant begin = sim.now();
  sim.run_for(3s);
  expect_rates(sim, begin, {75, 25});
  EXPECT_EQ(sim.broken(), "");
}

TEST(Share, AClassWithoutARateWeighsOnePercentOfTheLink) {
  // 10 of 100 Mbit/s are promised; the weights of what is left are 10, 1 and 1.
  Sim sim({.policy = link_of(100_mbit, sharing(1, 10_mbit), sharing(2), sharing(3), default_class())});
  for (const std::uint32_t mark : {1U, 2U, 3U}) keep_busy(sim, mark);
  sim.run_for(100ms);
  const Instant begin = sim.now();
  sim.run_for(5s);
  expect_rates(sim, begin, {10 + 75, 7.5, 7.5});
  EXPECT_EQ(sim.broken(), "");
}

TEST(Share, TheDefaultsOfRateAndCeil) {
  struct Case {
    const char* sentence;
    std::optional<DataRate> rate;
    std::optional<DataRate> ceil;
    double mbit;  // of a 50 Mbit/s link that is idle otherwise
  };
  const Case cases[] = {
      {"neither: the link's rate", {}, {}, 50},         {"a rate is the ceil as well", 10_mbit, {}, 10},
      {"a ceil above the rate", 10_mbit, 20_mbit, 20},  {"a ceil without a rate", {}, 20_mbit, 20},
      {"a ceil above the link", 10_mbit, 200_mbit, 50},
  };
  for (const Case& test : cases) {
    ClassPolicy policy = default_class(test.rate);
    policy.ceil = test.ceil;
    Sim sim({.policy = link_of(50_mbit, policy)});
    keep_busy(sim, 0);
    sim.run_for(100ms);
    const Instant begin = sim.now();
    sim.run_for(2s);
    SCOPED_TRACE(test.sentence);
    expect_rates(sim, begin, {test.mbit});
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(Share, OnALinkWithoutARateClassesDoNotShare) {
  Sim sim({.policy = policy_of(sharing(1, 10_mbit), class_marked("limited", 2, 20_mbit), default_class())});
  sim.add(constant(packet_of(flow_of(1, 0), 1'500, 1), 100us));  // 121 Mbit/s
  keep_busy(sim, 2);
  sim.run_for(2s);
  EXPECT_EQ(sim.delays(flow_of(1, 0)).back(), Nanos{0}) << "what nothing limits passes at once";
  expect_rates(sim, kStart, {121.12, 20});
  EXPECT_EQ(sim.broken(), "");
}

TEST(Share, ABusyLinkIsUsedToTheLastFrame) {
  // Three classes that come and go, never all at once idle: what the bucket earned is sent, but for one frame.
  for (const DataRate rate : {1_mbit, 10_mbit, 300_mbit}) {
    Sim sim({.policy = link_of(rate, sharing(1, DataRate{rate.bits_per_second / 10}), sharing(2),
                               borrowing(default_class()))});
    keep_busy(sim, 0);
    const Nanos gap = time_for(rate, {60'000});
    sim.add(bursts(packet_of(flow_of(1, 0), 700, 1), 20, gap));
    sim.add(bursts(packet_of(flow_of(2, 0), 90, 2), 50, gap));
    const Nanos time = time_for(rate, {3'000'000});
    sim.run_for(time);
    const std::uint64_t most = sim.law().link(0)->depth().value + bytes_in(rate, time).value;
    EXPECT_LE(sim.sent().value, most);
    EXPECT_GE(sim.sent().value + 1'514, most) << rate.bits_per_second;
    EXPECT_EQ(sim.snapshot().links[0].late_bytes.value, 0U);
    EXPECT_EQ(sim.broken(), "");
  }
}

TEST(Share, WhatGoesBeyondTheGuaranteeIsToldAsBorrowed) {
  Sim sim({.policy = link_of(60_mbit, sharing(1, 10_mbit), sharing(2, 20_mbit), default_class())});
  keep_busy(sim, 1);
  keep_busy(sim, 2);
  sim.run_for(5s);
  const CoreSnapshot told = sim.snapshot();
  for (ClassIndex index = 0; index < 2; ++index) {
    const double sent = static_cast<double>(sim.sent_by_class(index).value);
    const double borrowed = static_cast<double>(told.classes[index].borrowed_bytes.value);
    const double guaranteed = static_cast<double>(bytes_in(index == 0 ? 10_mbit : 20_mbit, 5s).value);
    EXPECT_NEAR(borrowed, sent - guaranteed, 0.01 * sent + 15'000) << "class " << index;
  }
  EXPECT_EQ(sim.broken(), "");
}

TEST(Share, AThousandClassesGetTheirWeights) {
  // Guarantees of 100 to 400 kbit/s that are half of the link: the other half goes by the same weights.
  Random random(5);
  Policy policy = link_of(1_mbit, default_class());
  std::uint64_t sum = 0;
  for (std::uint32_t mark = 1; mark <= 1'000; ++mark) {
    const DataRate rate{random.between(100'000, 400'000)};
    policy.classes.push_back(sharing(mark, rate));
    policy.classes.back().max_delay = 10s;  // a quarter of a second is what five of its packets take
    sum += rate.bits_per_second;
  }
  policy.links[0].rate = DataRate{2 * sum};
  policy.max_flows = 4'096;
  Sim sim({.policy = policy, .count_every = 100'000});
  for (std::uint32_t mark = 1; mark <= 1'000; ++mark) sim.add(greedy(packet_of(flow_of(mark, 0), 1'500, mark), 8));
  sim.run_for(500ms);
  const Instant begin = sim.now();
  sim.run_for(6s);
  std::vector<std::uint64_t> sent(policy.classes.size());
  for (const Departure& departure : sim.departures()) {
    if (departure.when >= begin) sent[departure.class_index] += departure.wire_bytes.value;
  }
  for (std::size_t index = 1; index < sent.size(); ++index) {
    const double wanted = static_cast<double>(bytes_in({2 * policy.classes[index].rate->bits_per_second}, 6s).value);
    ASSERT_NEAR(static_cast<double>(sent[index]), wanted, 0.01 * wanted + 1.5 * kFrame) << "class " << index;
  }
  EXPECT_EQ(sim.broken(), "");
}

TEST(Share, VeryUnequalWeightsGetWhatTheyArePromised) {
  Sim sim({.policy = link_of(40_mbit, sharing(1, DataRate{400}), sharing(2, 39'900_kbit), default_class())});
  sim.add(greedy(packet_of(flow_of(1, 0), 100, 1), 3));
  sim.add(greedy(packet_of(flow_of(2, 0), 1'500, 2), 100));
  sim.run_for(20s);
  EXPECT_GE(sim.sent_by_class(0).value, bytes_in({400}, 20s).value);
  EXPECT_GE(sim.sent_by_class(1).value, bytes_in(39'900_kbit, 20s).value);
  EXPECT_EQ(sim.broken(), "");
}

}  // namespace
}  // namespace shaper::sim
