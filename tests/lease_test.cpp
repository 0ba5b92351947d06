// A host's lease of a cluster limit, rule by rule: what it asks for, and what becomes of the answers.
#include <gtest/gtest.h>

#include "tests/sim_lease.h"

namespace shaper::sim {
namespace {

constexpr std::uint64_t kTwoFrames = 2 * 1'514;

TEST(LeaseAsking, WithoutTrafficThereIsNoAsk) {
  Bench bench;
  EXPECT_EQ(bench.next_ask(60s), std::nullopt);
  EXPECT_EQ(bench.lease.state(), LeaseState::cold);
  EXPECT_EQ(bench.lease.next_call(), std::nullopt);
}

TEST(LeaseAsking, TwoFramesPassAtOnceAndTheRestAsks) {
  Bench bench;
  EXPECT_EQ(bench.core.left.value, kTwoFrames);
  bench.pass(5s);
  bench.arrive(10'000);
  EXPECT_EQ(bench.core.spent.value, kTwoFrames);
  const auto ask = bench.call();
  ASSERT_TRUE(ask);
  EXPECT_EQ(ask->sequence, 100U);
  EXPECT_EQ(ask->bucket, "tenant");
  EXPECT_EQ(ask->config, 7U);
  EXPECT_EQ(ask->interval, 40ms);
  EXPECT_EQ(ask->lease, 120ms);
  EXPECT_GE(ask->need.value, 10'000U) << "what waits, and the first two";
}

TEST(LeaseAsking, FirstPacketsArePaidForByTheFirstGrant) {
  Bench bench;
  bench.arrive(kTwoFrames);
  const auto ask = bench.call();
  bench.answer(*ask, ask->need.value);
  bench.call();
  EXPECT_EQ(bench.core.left + bench.core.spent, ask->need) << "all that passes or may pass was granted";
}

TEST(LeaseAsking, TheAllowanceComesAgainAfterASecondAndOnlyIfPaid) {
  Bench bench;
  bench.become_leased(0);
  bench.pass(100ms);
  const auto goodbye = bench.next_ask();
  ASSERT_TRUE(goodbye && goodbye->leaving);
  bench.answer(*goodbye, 0);
  EXPECT_EQ(bench.next_ask(850ms), std::nullopt);
  EXPECT_EQ(bench.core.left.value, 0U);
  EXPECT_EQ(bench.next_ask(100ms), std::nullopt);
  EXPECT_EQ(bench.core.left.value, kTwoFrames);

  Bench poor;
  poor.arrive(kTwoFrames);
  poor.answer(*poor.call(), 0);
  const auto leaving = [&] {
    auto ask = poor.next_ask();
    while (ask && !ask->leaving) {
      poor.answer(*ask, 0);
      ask = poor.next_ask();
    }
    return ask;
  }();
  ASSERT_TRUE(leaving);
  poor.answer(*leaving, 0);
  EXPECT_EQ(poor.next_ask(5s), std::nullopt);
  EXPECT_EQ(poor.core.left.value, 0U) << "the first two were never granted";
}

TEST(LeaseAsking, TheAllowanceWaitsForABucketWithoutDebt) {
  Bench bench;
  bench.become_leased(0);
  bench.pass(100ms);
  LeaseAnswer poor = Bench::answer_of(0);
  poor.tokens = -1;
  bench.answer(*bench.next_ask(), poor);
  EXPECT_EQ(bench.next_ask(5s), std::nullopt);
  EXPECT_EQ(bench.core.left.value, 0U);
}

TEST(LeaseAsking, WantsWhatCameInAPeriodAndWhatWaits) {
  Bench bench;
  bench.become_leased(200'000);
  bench.arrive(20'000);
  bench.pass(20ms);
  bench.arrive(20'000);
  bench.call();
  bench.pass(22ms);
  const auto even = bench.call();
  ASSERT_TRUE(even);
  EXPECT_NEAR(static_cast<double>(even->want.bits_per_second), 40'000 * 8.0 / 0.04, 500'000.0);
  EXPECT_EQ(even->need.value, 0U) << "the wallet holds more";
}

TEST(LeaseAsking, WantsAQuarterMoreWhereTheLimitHeldUp) {
  Bench bench;
  bench.become_leased(0);
  const auto ask = bench.next_ask();
  ASSERT_TRUE(ask);
  // 43,028 came in the last period, and were held up; nothing waits any more.
  EXPECT_EQ(ask->want.bits_per_second / 1'000, std::uint64_t{43'028 + 43'028 / 4} * 8 * 25 / 1'000);
  EXPECT_EQ(ask->need.value, 43'028U + 43'028 / 4);
}

TEST(LeaseAsking, TicksAreAPeriodApartGiveOrTakeOneInTwenty) {
  Nanos least = 1s, most{0};
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Bench bench(tenant_limit(), seed);
    bench.become_leased(150'000);
    const Instant before = bench.sent;
    ASSERT_TRUE(bench.next_ask());
    least = std::min(least, bench.sent - before);
    most = std::max(most, bench.sent - before);
  }
  EXPECT_GE(least, 38ms);
  EXPECT_LE(most, 42ms);
  EXPECT_GT(most - least, 2ms) << "they differ";
}

TEST(LeaseAsking, AnEmptyWalletAsksAfterTenMilliseconds) {
  Bench bench;
  bench.become_leased(5'000);
  const Instant before = bench.sent;
  bench.arrive(20'000);
  bench.call();
  ASSERT_TRUE(bench.next_ask());
  EXPECT_EQ(bench.sent - before, 10ms);
}

TEST(LeaseAsking, OnlyOneIsOnItsWay) {
  Bench bench;
  bench.arrive(50'000);
  ASSERT_TRUE(bench.call());
  for (int n = 0; n < 49; ++n) {
    bench.pass(1ms);
    bench.arrive(1'000);
    EXPECT_EQ(bench.call(), std::nullopt);
  }
}

TEST(LeaseAsking, ALostAnswerIsAskedForAgainWithTheSameSequenceAndGiveBack) {
  Bench bench;
  bench.become_leased(140'000);
  bench.arrive(1'000);
  bench.pass(42ms);
  const auto first = bench.call();
  ASSERT_TRUE(first);
  ASSERT_GT(first->give_back.value, 0U);
  bench.arrive(1'000);
  for (int n = 0; n < 3; ++n) {
    const auto again = bench.next_ask();
    ASSERT_TRUE(again);
    EXPECT_EQ(again->sequence, first->sequence);
    EXPECT_EQ(again->give_back, first->give_back);
  }
  EXPECT_EQ(bench.lease.counters().failures[static_cast<std::size_t>(LeaseReason::timeout)], 3U);
  EXPECT_EQ(bench.lease.counters().returned.value, 0U) << "not acknowledged";
  bench.answer(*first, 0);
  EXPECT_EQ(bench.lease.counters().returned, first->give_back);
}

TEST(LeaseAsking, AnOlderSequenceOfOursMakesAnotherOneThatKeepsTheGiveBack) {
  Bench bench;
  bench.become_leased(140'000);
  bench.arrive(1'000);
  bench.pass(42ms);
  const auto first = bench.call();
  LeaseAnswer stale;
  stale.status = LeaseAnswer::Status::stale;
  bench.answer(*first, stale);
  const auto second = bench.next_ask();
  ASSERT_TRUE(second);
  EXPECT_GT(second->sequence, first->sequence);
  EXPECT_GE(second->give_back, first->give_back);
}

TEST(LeaseAsking, RetriesComeSlowerAndAtOnceAfterAConnection) {
  Bench bench;
  bench.arrive(50'000);
  auto ask = bench.call();
  Nanos pause{0};
  for (const Nanos expected : {20ms, 40ms, 80ms, 160ms, 320ms, 500ms, 500ms}) {
    bench.fail(*ask);
    const Instant before = bench.now;
    ask = bench.next_ask();
    ASSERT_TRUE(ask);
    pause = bench.now - before;
    EXPECT_GE(pause, expected * 3 / 4);
    EXPECT_LE(pause, expected * 5 / 4);
  }
  bench.fail(*ask);
  bench.lease.on_connected(bench.now);
  EXPECT_TRUE(bench.call());
}

TEST(LeaseAnswers, ADoubledOneCountsOnce) {
  Bench bench;
  bench.arrive(50'000);
  const auto ask = bench.call();
  bench.answer(*ask, 20'000);
  bench.call();
  bench.answer(*ask, 20'000);
  bench.call();
  EXPECT_EQ(bench.granted, std::nullopt);
  EXPECT_EQ(bench.lease.counters().granted.value, 20'000U);
  EXPECT_EQ(bench.lease.counters().ignored, 1U);
}

TEST(LeaseAnswers, GrantsAreValidFromTheTimeOfSending) {
  Bench bench;
  bench.arrive(50'000);
  const auto ask = bench.call();
  const Instant sent = bench.sent;
  bench.pass(45ms);
  bench.answer(*ask, 20'000);
  bench.call();
  ASSERT_TRUE(bench.granted);
  EXPECT_EQ(bench.granted->valid_until, sent + 120ms);
}

TEST(LeaseAnswers, OneThatComesAfterItsLeaseIsHandedBack) {
  Bench bench;
  bench.arrive(50'000);
  const auto ask = bench.call();
  const Instant first = bench.sent;
  bench.next_ask(130ms);
  bench.pass(130ms);
  const LeaseAnswer late = Bench::answer_of(20'000);
  bench.lease.on_answer(late, ask->sequence, first, bench.now);
  EXPECT_EQ(bench.lease.counters().late, 1U);
  const auto next = bench.next_ask();
  ASSERT_TRUE(next);
  EXPECT_GT(next->sequence, ask->sequence);
  EXPECT_EQ(next->give_back.value, 20'000U);
}

TEST(LeaseAnswers, LeaveAtTwiceTheWalletInAPeriodAndLeakyOnesEvenly) {
  for (const Discipline discipline : {Discipline::token, Discipline::leaky}) {
    LeasePolicy policy = tenant_limit();
    policy.discipline = discipline;
    Bench bench(policy);
    bench.arrive(100'000);
    const auto ask = bench.call();
    bench.answer(*ask, 40'000 + kTwoFrames);
    bench.call();
    ASSERT_TRUE(bench.granted);
    EXPECT_EQ(bench.granted->pace, (discipline == Discipline::token ? 16_mbit : 8_mbit));
  }
}

TEST(LeaseAnswers, GiveNoMoreThanWasAskedFor) {
  Bench bench;
  bench.arrive(50'000);
  const auto ask = bench.call();
  bench.answer(*ask, std::uint64_t{1} << 60);
  bench.call();
  EXPECT_EQ(bench.lease.counters().granted, ask->need);
}

TEST(LeaseAnswers, WhatExceedsOneAndAHalfPeriodsGoesBack) {
  Bench bench;
  bench.become_leased(50'000);
  const auto none = bench.next_ask();
  ASSERT_TRUE(none);
  EXPECT_EQ(none->give_back.value, 0U) << "43,028 and a quarter were wanted";
  bench.answer(*none, 0);
  bench.arrive(10'000);
  bench.pass(42ms);
  const auto ask = bench.call();
  ASSERT_TRUE(ask);
  const std::uint64_t want = ask->want.bits_per_second / 8 / 25;
  EXPECT_LT(want, 26'000U);
  EXPECT_NEAR(static_cast<double>(bench.core.left.value), static_cast<double>(want * 3 / 2), 4.0);
  EXPECT_EQ(ask->give_back, bench.took_back);
}

TEST(LeaseAnswers, AfterTwoPeriodsWithoutTrafficAllGoesBackThenSilence) {
  Bench bench;
  bench.become_leased(50'000);
  const Instant begin = bench.now;
  auto ask = bench.next_ask();
  while (ask && !ask->leaving) {
    bench.answer(*ask, 0);
    ask = bench.next_ask();
  }
  ASSERT_TRUE(ask);
  EXPECT_GE(bench.now - begin, 80ms);
  EXPECT_LE(bench.now - begin, 126ms);
  EXPECT_EQ(bench.core.left.value, 0U);
  EXPECT_EQ(ask->need.value, 0U);
  bench.answer(*ask, 0);
  EXPECT_EQ(bench.next_ask(60s), std::nullopt);
  EXPECT_EQ(bench.lease.counters().returned, bench.lease.counters().granted - ByteCount{kTwoFrames});
  bench.arrive(10'000);
  EXPECT_TRUE(bench.call()) << "traffic ends it";
}

TEST(LeaseAnswers, ANewerConfigIsObeyedUpToTheLocalMost) {
  LeasePolicy policy = tenant_limit();
  policy.max_rate = 60_mbit;
  Bench bench(policy);
  EXPECT_EQ(bench.lease.rate(), 80_mbit);
  for (const DataRate told : {40_mbit, 600_mbit}) {
    bench.arrive(50'000);
    const auto ask = bench.next_ask();
    LeaseAnswer newer = Bench::answer_of(1'000'000);
    newer.status = LeaseAnswer::Status::old_config;
    newer.config = 8;
    newer.rate = told;
    bench.answer(*ask, newer);
    bench.call();
    EXPECT_EQ(bench.lease.rate(), std::min(told, 60_mbit));
    EXPECT_LE(bench.granted->pace, 60_mbit);
  }
  EXPECT_EQ(bench.lease.counters().too_fast, 1U);
}

TEST(LeaseAnswers, AClockThatWasSetGivesNothingUntilTheNextOne) {
  Bench bench;
  bench.become_leased(0);
  bench.arrive(50'000);
  LeaseAnswer jumped = Bench::answer_of(20'000);
  jumped.redis_time_us += 51'000;
  bench.answer(*bench.next_ask(), jumped);
  const auto next = bench.call();
  ASSERT_TRUE(next) << "a fresh one, at once";
  ASSERT_TRUE(bench.granted);
  EXPECT_EQ(bench.granted->bytes.value, 0U);
  EXPECT_EQ(bench.lease.counters().clock_jumps, 1U);
  EXPECT_EQ(bench.lease.counters().discarded.value, 20'000U);
  LeaseAnswer fresh = Bench::answer_of(20'000);
  fresh.redis_time_us += 51'000;
  bench.answer(*next, fresh);
  bench.call();
  ASSERT_TRUE(bench.granted);
  EXPECT_EQ(bench.granted->bytes.value, 20'000U);
  EXPECT_EQ(bench.lease.counters().clock_jumps, 1U);
}

TEST(LeaseAnswers, ASlowAnswerIsNoClockThatWasSet) {
  Bench bench;
  bench.become_leased(0);
  bench.arrive(50'000);
  const auto ask = bench.next_ask();
  LeaseAnswer slow = Bench::answer_of(20'000);
  slow.redis_time_us += static_cast<std::uint64_t>(bench.now.time_since_epoch() / 1us);  // answered at once
  bench.pass(115ms);
  bench.lease.on_answer(slow, ask->sequence, bench.sent, bench.now);
  EXPECT_EQ(bench.lease.counters().clock_jumps, 0U);
}

}  // namespace
}  // namespace shaper::sim
