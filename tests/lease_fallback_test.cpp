// A lease while nobody answers: when that begins and ends, what passes, and that no byte is minted by it.
#include <gtest/gtest.h>

#include <map>

#include "tests/sim_lease.h"

namespace shaper::sim {
namespace {

std::uint64_t begun(const Bench& bench, LeaseReason reason) {
  return bench.lease.counters().into_fallback[static_cast<std::size_t>(reason)];
}

/// An empty wallet, packets that wait, and an ask that has just failed.
std::optional<LeaseAsk> fall_back(Bench& bench) {
  bench.become_leased(0);
  bench.arrive(100'000);
  const auto ask = bench.next_ask();
  bench.fail(*ask);
  bench.call();
  return ask;
}

TEST(LeaseFallback, BeginsWhenTheWalletIsEmptyAndTheAskFailed) {
  Bench bench;
  fall_back(bench);
  EXPECT_EQ(bench.lease.state(), LeaseState::fallback);
  EXPECT_EQ(bench.lease.reason(), LeaseReason::disconnected);
  EXPECT_EQ(begun(bench, LeaseReason::disconnected), 1U);
}

TEST(LeaseFallback, BeginsAlsoWhenTheFirstAskEverFailed) {
  Bench bench;
  bench.arrive(100'000);
  bench.fail(*bench.call(), LeaseReason::denied);
  bench.call();
  EXPECT_EQ(bench.lease.state(), LeaseState::fallback);
  EXPECT_EQ(bench.lease.reason(), LeaseReason::denied);
}

TEST(LeaseFallback, BeginsAtTheTimeout) {
  Bench bench;
  bench.arrive(100'000);
  bench.call();
  bench.pass(50ms - 1ns);
  bench.call();
  EXPECT_EQ(bench.lease.state(), LeaseState::cold);
  bench.pass(1ns);
  bench.call();
  EXPECT_EQ(bench.lease.state(), LeaseState::fallback);
  EXPECT_EQ(begun(bench, LeaseReason::timeout), 1U);
}

TEST(LeaseFallback, BeginsWhereTheScriptRefuses) {
  using Status = LeaseAnswer::Status;
  for (const auto& [status, reason] :
       {std::pair{Status::crowded, LeaseReason::unavailable}, std::pair{Status::stale, LeaseReason::odd},
        std::pair{Status::foreign, LeaseReason::version}}) {
    Bench bench;
    bench.arrive(100'000);
    LeaseAnswer refusal = Bench::answer_of(0);
    refusal.status = status;
    const auto ask = bench.call();
    bench.answer(*ask, refusal);
    bench.call();
    EXPECT_EQ(bench.lease.state(), LeaseState::fallback);
    EXPECT_EQ(bench.lease.reason(), reason);
    const auto next = bench.next_ask();
    ASSERT_TRUE(next);
    EXPECT_GT(next->sequence, ask->sequence);
  }
}

TEST(LeaseFallback, WaitsForTheWalletToBeSpent) {
  Bench bench;
  bench.become_leased(30'000);
  bench.arrive(1'500);
  bench.pass(42ms);
  bench.fail(*bench.call());
  bench.call();
  EXPECT_EQ(bench.lease.state(), LeaseState::leased) << "it was paid for";
  bench.arrive(100'000);
  bench.call();
  EXPECT_EQ(bench.lease.state(), LeaseState::fallback);
}

TEST(LeaseFallback, BeginsWhenTheLeaseIsOldWhateverIsLeft) {
  Bench bench;
  for (int n = 0; n < 10; ++n) bench.round_trip.measured(100ms);  // the timeout is longer than the lease
  bench.become_leased(1'000'000);
  const Instant end = *bench.valid_until;
  bench.arrive(43'000);
  ASSERT_TRUE(bench.next_ask());
  while (bench.now < end - 1ms) {
    bench.pass(1ms);
    bench.arrive(100);
    bench.call();
    ASSERT_EQ(bench.lease.state(), LeaseState::leased);
  }
  bench.pass(end - bench.now);
  bench.call();
  EXPECT_EQ(bench.lease.state(), LeaseState::fallback);
  EXPECT_EQ(begun(bench, LeaseReason::expired), 1U);
}

TEST(LeaseFallback, DoesNotBeginBecauseWeStoodStill) {
  Bench bench;
  bench.become_leased(30'000);
  bench.pass(10s);
  bench.arrive(30'000);
  ASSERT_TRUE(bench.call());
  bench.pass(1ms);
  bench.call();
  EXPECT_EQ(bench.lease.state(), LeaseState::leased);
}

TEST(LeaseFallback, DoesNotBeginWithoutTraffic) {
  Bench bench;
  bench.become_leased(50'000);
  for (auto ask = bench.next_ask(); bench.now < Instant{5s} && ask; ask = bench.next_ask()) bench.fail(*ask);
  EXPECT_EQ(bench.lease.counters().fallback, 0ns);
  EXPECT_EQ(bench.lease.state(), LeaseState::cold);
  EXPECT_EQ(bench.core.left.value, 0U) << "no allowance while the last ask has failed";
}

TEST(LeaseFallback, EndsWithTheFirstAnswerAlsoToAnEarlierAsk) {
  Bench bench;
  const auto ask = fall_back(bench);
  bench.next_ask();
  bench.pass(10ms);
  bench.call();
  bench.answer(*ask, 20'000);
  EXPECT_EQ(bench.lease.state(), LeaseState::leased);
  EXPECT_EQ(bench.lease.counters().out_of_fallback, 1U);
  EXPECT_GE(bench.lease.counters().fallback, 25ms);
  EXPECT_LE(bench.lease.counters().fallback, 35ms);
}

TEST(LeaseFallback, TellsRedisThatItIsInIt) {
  Bench bench;
  EXPECT_FALSE(fall_back(bench)->in_fallback);
  EXPECT_TRUE(bench.next_ask()->in_fallback);
}

// --- What passes -----------------------------------------------------------------------------------------------------

/// Bytes that pass in `time` of a fallback with packets waiting.
std::uint64_t passed(Bench& bench, Nanos time) {
  const ByteCount before = bench.core.spent;
  for (const Instant end = bench.now + time; bench.now < end;) {
    bench.arrive(20'000);
    bench.pass(std::min(end, bench.lease.next_call().value_or(end)) - bench.now);
    if (const auto ask = bench.call()) bench.fail(*ask);
  }
  return (bench.core.spent - before).value;
}

TEST(LeaseFallback, RejectRefusesAll) {
  Bench bench(tenant_limit(WithoutRedis::reject));
  EXPECT_FALSE(bench.lease.refuses());
  fall_back(bench);
  EXPECT_TRUE(bench.lease.refuses());
  EXPECT_EQ(passed(bench, 10s), 0U);
  bench.answer(*bench.next_ask(), 1'000);
  EXPECT_FALSE(bench.lease.refuses());
}

TEST(LeaseFallback, AllowLetsAllPassAndHandsNothingOfItBack) {
  Bench bench(tenant_limit(WithoutRedis::allow));
  fall_back(bench);
  EXPECT_FALSE(bench.lease.refuses());
  EXPECT_GT(passed(bench, 1s), 500'000U);
  EXPECT_EQ(bench.core.waiting.value, 0U);
  EXPECT_EQ(bench.lease.counters().unmetered, bench.lease.counters().in_fallback);
  EXPECT_GT(bench.lease.counters().unmetered.value, 500'000U);
  bench.answer(*bench.next_ask(), 20'000);
  bench.call();
  EXPECT_EQ(bench.core.left.value, 20'000U) << "only what was granted";
  const ByteCount back = bench.next_ask()->give_back;
  EXPECT_LE(back.value, 20'000U);
}

TEST(LeaseFallback, DegradeLetsAShareOfTheRatePass) {
  Bench bench;  // 10 MB/s and four members
  fall_back(bench);
  EXPECT_NEAR(static_cast<double>(passed(bench, 10s)), 25e6, 25e4);
  EXPECT_EQ(bench.lease.counters().unmetered.value, 0U);
  EXPECT_NEAR(static_cast<double>(bench.lease.counters().in_fallback.value), 25e6, 25e4);
}

TEST(LeaseFallback, TheBurstOfDegradeIsTenMilliseconds) {
  Bench bench;
  fall_back(bench);
  passed(bench, 100ms);
  bench.core.waiting = {};
  for (int n = 0; n < 15; ++n) {
    bench.pass(5ms);
    if (const auto ask = bench.call()) bench.fail(*ask);
  }
  EXPECT_EQ(bench.core.left.value, 25'000U);
}

TEST(LeaseFallback, TheShareIsTheLocalRateOrAPartOfTheWhole) {
  LeasePolicy policy = tenant_limit();
  Bench unknown(policy);
  EXPECT_EQ(unknown.lease.fallback_rate(), 5_mbit) << "nobody has said how many there are";
  policy.hosts = 8;
  EXPECT_EQ(Bench(policy).lease.fallback_rate(), 10_mbit);
  policy.local_rate = 3_mbit;
  Bench told(policy);
  EXPECT_EQ(told.lease.fallback_rate(), 3_mbit);
  told.arrive(1'000);
  EXPECT_EQ(told.call()->local_rate, 3_mbit) << "so much is to be kept free with `reserve`";

  Bench bench;
  for (const std::uint32_t members : {4U, 10U, 1U}) {
    bench.arrive(10'000);
    bench.answer(*bench.next_ask(), Bench::answer_of(100'000, members));
  }
  EXPECT_EQ(bench.lease.fallback_rate(), 8_mbit) << "the most in the last minute";
  bench.pass(61s);
  EXPECT_EQ(bench.lease.fallback_rate(), 8_mbit) << "without an answer nothing is forgotten";
}

TEST(LeaseFallback, WhoIsAloneGetsAll) {
  Bench bench;
  bench.arrive(10'000);
  bench.answer(*bench.next_ask(), Bench::answer_of(100'000, 1));
  EXPECT_EQ(bench.lease.fallback_rate(), 80_mbit);
}

TEST(LeaseFallback, AGrantThatWasLostIsForTheSameTime) {
  for (const auto& [passed_bytes, left] : {std::pair{0ULL, 50'000ULL}, {20'000ULL, 30'000ULL}, {80'000ULL, 0ULL}}) {
    Bench bench;
    fall_back(bench);
    bench.core.waiting = {passed_bytes};
    while (bench.lease.counters().in_fallback.value < passed_bytes) {
      bench.pass(1ms);
      if (const auto ask = bench.call()) bench.fail(*ask);
      bench.lease.on_demand(bench.core, bench.now);
    }
    bench.core.waiting = {};
    LeaseAnswer again = Bench::answer_of(50'000);
    again.status = LeaseAnswer::Status::replay;
    bench.answer(*bench.next_ask(), again);
    bench.call();
    EXPECT_EQ(bench.core.left.value, left);
    EXPECT_EQ(bench.lease.counters().discarded.value, 50'000 - left);
  }
}

TEST(LeaseFallback, IsNoDebtBehindAnOutage) {
  Bench bench;
  fall_back(bench);
  passed(bench, 1s);
  LeaseAnswer again = Bench::answer_of(50'000);
  again.status = LeaseAnswer::Status::replay;
  bench.answer(*bench.next_ask(), again);
  bench.core.waiting = {};
  bench.call();
  EXPECT_EQ(bench.lease.counters().discarded.value, 0U);
}

TEST(LeaseFallback, ASlowShareLetsFullFramesPass) {
  LeasePolicy policy = tenant_limit();
  policy.local_rate = 8_kbit;
  Bench bench(policy);
  fall_back(bench);
  passed(bench, 10s);
  EXPECT_NEAR(static_cast<double>(bench.lease.counters().in_fallback.value), 10'000, 3'100);
}

TEST(LeaseFallback, IsNeverADebt) {
  Bench bench(tenant_limit(WithoutRedis::allow));
  fall_back(bench);
  passed(bench, 5s);
  bench.answer(*bench.next_ask(), 20'000);
  bench.call();
  bench.arrive(5'000);
  const auto next = bench.next_ask();
  ASSERT_TRUE(next);
  EXPECT_LT(next->need.value, 1'500'000U) << "what is wanted now, not what has passed";
}

// --- Observe ---------------------------------------------------------------------------------------------------------

TEST(LeaseObserve, HoldsNothingUpAndCounts) {
  LeasePolicy policy = tenant_limit(WithoutRedis::reject);
  policy.observe = true;
  Bench bench(policy);
  std::uint64_t sent = 0;
  for (int n = 0; n < 100; ++n) {
    bench.arrive(10'000);
    sent += 10'000;
    EXPECT_EQ(bench.core.waiting.value, 0U);
    if (const auto ask = bench.call()) {
      EXPECT_TRUE(ask->observe);
      bench.answer(*ask, ask->need.value / 2);
      bench.call();
    }
    bench.pass(10ms);
  }
  const LeaseCounters& counters = bench.lease.counters();
  EXPECT_GT(counters.granted.value, sent / 4);
  EXPECT_GT(counters.unmetered.value, sent / 10);
  EXPECT_GE(counters.unmetered + counters.granted, bench.core.spent - ByteCount{10'000});

  bench.arrive(10'000);
  bench.fail(*bench.next_ask());
  bench.pass(200ms);
  bench.arrive(10'000);
  bench.call();
  EXPECT_FALSE(bench.lease.refuses());
  EXPECT_EQ(bench.core.waiting.value, 0U);
}

TEST(LeaseObserve, WhenItEndsNothingStaysOfWhatWasGivenAway) {
  LeasePolicy policy = tenant_limit();
  policy.observe = true;
  Bench bench(policy);
  bench.arrive(50'000);
  bench.answer(*bench.next_ask(), 100'000);
  bench.call();
  bench.core.left = {};
  bench.lease.on_demand(bench.core, bench.now);  // more is on its way to the core
  policy.observe = false;
  bench.lease.change(policy);
  bench.call();
  EXPECT_EQ(bench.core.left.value, 0U);
  EXPECT_LE(bench.next_ask()->give_back.value, 100'000U);
}

// --- Conservation ----------------------------------------------------------------------------------------------------

/// A bucket that gives by chance, and answers a repeated sequence as before.
class Till {
 public:
  LeaseAnswer ask(const LeaseAsk& ask, Random& random) {
    const auto [found, is_new] = answers_.try_emplace(ask.sequence, Bench::answer_of(0));
    if (is_new) {
      found->second.grant = {random.below(ask.need.value + 1)};
      granted += found->second.grant;
      returned += ask.give_back;
    }
    return found->second;
  }
  ByteCount granted, returned;

 private:
  std::map<std::uint64_t, LeaseAnswer> answers_;
};

/// Whatever gets lost, doubled or late: what passes outside of a fallback, and what is handed back, was granted.
void only_what_was_granted(WithoutRedis rule, std::uint64_t seed) {
  Random random(seed);
  Bench bench(tenant_limit(rule), seed);
  Till till;
  std::vector<std::pair<LeaseAsk, LeaseAnswer>> on_the_way;
  for (int step = 0; step < 3'000; ++step) {
    bench.pass(random.up_to(random.chance(2) ? 300ms : 8ms));
    if (random.chance(step / 500 % 2 == 0 ? 60 : 2)) bench.arrive(random.between(64, 30'000));
    if (random.chance(5)) bench.core.waiting = {};
    if (const auto ask = bench.call(); ask && !random.chance(20)) {
      const LeaseAnswer answer = till.ask(*ask, random);
      for (std::uint64_t copies = random.below(3); copies > 0; --copies) on_the_way.emplace_back(*ask, answer);
    }
    if (!on_the_way.empty() && random.chance(50)) {
      const auto one = on_the_way.begin() + static_cast<std::ptrdiff_t>(random.below(on_the_way.size()));
      bench.answer(one->first, one->second);
      on_the_way.erase(one);
      bench.call();
    }
    bench.lease.on_demand(bench.core, bench.now);  // so that all is counted
    const ByteCount passed = bench.core.spent - bench.lease.counters().in_fallback;
    const ByteCount first_packets{2 * 1'514};
    ASSERT_LE(passed + till.returned, till.granted + first_packets) << "step " << step;
  }
  EXPECT_GT(till.granted.value, 100'000U) << "or it tests nothing";
  EXPECT_GT(till.returned.value, 10'000U);
}

TEST(LeaseConservation, OnlyWhatWasGrantedPassesOrGoesBack) {
  for (const std::uint64_t seed : seeds(50)) {
    for (const WithoutRedis rule : {WithoutRedis::reject, WithoutRedis::degrade, WithoutRedis::allow}) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", rule " + std::to_string(static_cast<int>(rule)));
      only_what_was_granted(rule, seed);
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace shaper::sim
