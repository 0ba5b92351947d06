// One host that asks for what waits, or settles what it has spent, step by step; and its copy of the bucket.
#include <gtest/gtest.h>

#include "shaper/cluster/replica.h"
#include "tests/sim_lease.h"

namespace shaper::sim {
namespace {

LeasePolicy with(Strategy strategy) {
  LeasePolicy policy = tenant_limit();
  policy.strategy = strategy;
  return policy;
}

LeaseAnswer level(std::int64_t tokens, std::uint64_t redis_time_us = 0) {
  LeaseAnswer answer = Bench::answer_of(0);
  answer.tokens = tokens;
  answer.burst = {1'000'000};
  if (redis_time_us > 0) answer.redis_time_us = redis_time_us;
  return answer;
}

/// Has the bucket at `tokens`, and packets are about to come.
Bench settled(Strategy strategy, std::int64_t tokens) {
  Bench bench(with(strategy));
  bench.arrive(1);
  bench.answer(*bench.call(), level(tokens));
  bench.call();
  return bench;
}

TEST(Remote, AsksForWhatWaitsNoSoonerAndNoMore) {
  Bench bench(with(Strategy::remote));
  EXPECT_FALSE(bench.next_ask(1s)) << "nothing waits";
  bench.arrive(5'000);
  const auto first = bench.call();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->need.value, 5'000U);
  EXPECT_EQ(bench.core.spent.value, 0U) << "not even first packets pass before the answer";
  bench.arrive(3'000);
  EXPECT_FALSE(bench.call()) << "one is on its way";
  bench.pass(1ms);
  bench.answer(*first, 5'000);
  const auto second = bench.next_ask(1ms);
  EXPECT_EQ(bench.core.spent.value, 5'000U);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->need.value, 3'000U);
}

TEST(Remote, GivesBackWhatNobodyWaitsForAnyMore) {
  Bench bench(with(Strategy::remote));
  bench.arrive(5'000);
  const auto first = bench.call();
  bench.core.waiting = {};  // dropped meanwhile
  bench.pass(1ms);
  bench.answer(*first, 5'000);
  bench.call();
  const auto next = bench.next_ask(1s);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->give_back.value, 5'000U);
}

TEST(Remote, TriesAgainSoonWhereTheBucketIsEmpty) {
  Bench bench(with(Strategy::remote));
  bench.arrive(5'000);
  bench.answer(*bench.call(), 0);
  const Instant empty = bench.now;
  const auto next = bench.next_ask(1s);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->need.value, 5'000U);
  EXPECT_LE(bench.now - empty, 1ms);
}

TEST(Poll, SpendsAtOnceAndSaysSoAfterwards) {
  Bench bench = settled(Strategy::poll, 100'000);
  const std::uint64_t before = bench.core.spent.value;
  bench.arrive(30'000);
  EXPECT_EQ(bench.core.spent.value, before + 30'000);
  const auto ask = bench.next_ask(1s);
  ASSERT_TRUE(ask);
  EXPECT_EQ(ask->debt.value, 30'000U + before);
  EXPECT_EQ(ask->need.value, 0U);
  EXPECT_FALSE(ask->tell);
  bench.answer(*ask, level(70'000));
  bench.call();
  EXPECT_EQ(bench.core.left.value, 70'000U) << "what the bucket holds, whatever was thought here";
  EXPECT_EQ(bench.lease.counters().settled, ask->debt);
}

TEST(Poll, NothingPassesWhileTheBucketIsBelowZero) {
  Bench bench = settled(Strategy::poll, -40'000);
  bench.arrive(1'000);
  const std::uint64_t before = bench.core.spent.value;
  bench.pass(3ms);  // earns 10 bytes each microsecond
  bench.call();
  EXPECT_EQ(bench.core.spent.value, before);
  bench.pass(2ms);
  bench.call();
  EXPECT_EQ(bench.core.waiting.value, 0U);
}

TEST(Poll, ALostAskIsRepeatedAndARefusedOneSaidAgain) {
  Bench bench = settled(Strategy::poll, 100'000);
  bench.arrive(30'000);
  const auto first = bench.next_ask(1s);
  bench.fail(*first);
  bench.arrive(10'000);
  const auto again = bench.next_ask(1s);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->sequence, first->sequence);
  EXPECT_EQ(again->debt, first->debt);
  LeaseAnswer foreign = level(0);
  foreign.status = LeaseAnswer::Status::foreign;
  bench.answer(*again, foreign);
  const auto next = bench.next_ask(1s);
  ASSERT_TRUE(next);
  EXPECT_GT(next->sequence, again->sequence);
  EXPECT_EQ(next->debt.value, first->debt.value + 10'000);
}

TEST(Push, TellsSoonAndHearsOfOthers) {
  Bench bench = settled(Strategy::push, 100'000);
  bench.arrive(30'000);
  const Instant spent = bench.now;
  const auto ask = bench.next_ask(1s);
  ASSERT_TRUE(ask);
  EXPECT_TRUE(ask->tell);
  EXPECT_LE(bench.now - spent, 11ms);
  const ByteCount before = bench.core.left;
  bench.lease.on_spent_elsewhere({20'000}, ~std::uint64_t{0} / 2);
  bench.call();
  EXPECT_EQ(bench.core.left.value, before.value - 20'000);
  EXPECT_EQ(bench.lease.counters().told, 1U);
}

TEST(ReplicaTest, HoldsNothingBeforeTheFirstAnswer) {
  Replica replica;
  replica.spend({5});
  replica.pass(Instant{1s});
  EXPECT_FALSE(replica.level());
}

TEST(ReplicaTest, CountsWhatOthersSpentOnceInWhateverOrderItComes) {
  const Instant now{1s};
  Replica word_first, answer_first, both_late;
  for (Replica* each : {&word_first, &answer_first, &both_late}) each->calibrate(level(1'000, 10), 80_mbit, {}, now);
  word_first.spent_elsewhere({300}, 15);  // in the next answer
  word_first.spent_elsewhere({70}, 25);   // not in it
  word_first.calibrate(level(700, 20), 80_mbit, {}, now);
  EXPECT_EQ(word_first.level(), 630);
  answer_first.calibrate(level(700, 20), 80_mbit, {}, now);
  answer_first.spent_elsewhere({300}, 15);
  answer_first.spent_elsewhere({70}, 25);
  EXPECT_EQ(answer_first.level(), 630);
  both_late.calibrate(level(630, 30), 80_mbit, {}, now);
  both_late.spent_elsewhere({300}, 15);
  both_late.spent_elsewhere({70}, 25);
  EXPECT_EQ(both_late.level(), 630);
}

TEST(ReplicaTest, EarnsTheRateHoweverOftenItIsLookedAtAndNoMoreThanTheDepth) {
  Instant now{1s};
  Replica replica;
  replica.calibrate(level(-1'000), 1_mbit, {500}, now);
  for (int look = 0; look < 10'000; ++look) replica.pass(now += 3us);  // 30 ms at 125 bytes a millisecond
  EXPECT_NEAR(static_cast<double>(*replica.level()), -1'500 + 3'750, 2);
  replica.pass(now += 1h);
  EXPECT_EQ(replica.level(), 1'000'000);
}

}  // namespace
}  // namespace shaper::sim
