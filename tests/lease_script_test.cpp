// The script of cluster limits in a real Redis, one bucket: it earns exactly, never makes a byte of a message that is
// lost, late or repeated, and survives what happens to a Redis.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/lease_cluster.h"
#include "tests/sim_random.h"

namespace shaper::test {
namespace {

using Status = LeaseAnswer::Status;

class LeaseScript : public LeaseCluster {
 protected:
  LeaseAnswer take(std::uint64_t need, LeaseAsk about = ask_about()) {
    about.need = {need};
    return ask("a", about);
  }

  LeaseAsk of_rate(std::uint64_t bits_per_second, std::uint64_t burst) {
    LeaseAsk about = ask_about();
    about.rate = {bits_per_second};
    about.burst = {burst};
    return about;
  }
};

TEST_F(LeaseScript, IsTheOneThatItsNameSays) {
  EXPECT_EQ(redis({"SCRIPT", "LOAD", std::string{kGrantsScript}}).text, kGrantsScriptSha1);
}

TEST_F(LeaseScript, KeepsTheRestOfEveryCall) {
  for (const std::uint64_t rate : {300UL, 8'000UL, 12'001UL, 999'999'999UL, 72'057'594'037UL, 399'999'999'999UL}) {
    redis({"FLUSHALL"});
    sim::Random random{rate};
    const LeaseAsk about = of_rate(rate, kDeepestBucket.value);
    ExactBucket exact = bucket_after(take(kDeepestBucket.value, about));
    ASSERT_EQ(exact.tokens, 0) << "all of it was granted";
    for (int calls = 0; calls < 300; ++calls) {
      pass(random.up_to(calls % 100 == 0 ? 3s : 30us));
      const LeaseAnswer answer = take(calls % 3 == 0 ? 0 : kDeepestBucket.value, about);
      exact.earn_until(time_of(answer));
      ASSERT_EQ(exact.tokens, answer.tokens + static_cast<std::int64_t>(answer.grant.value)) << rate << " bit/s";
      exact.tokens = answer.tokens;
    }
  }
}

TEST_F(LeaseScript, KeepsTheRestWhereRateTimesTimeIsNoExactDouble) {
  LeaseAsk about = of_rate(399'999'999'999, kDeepestBucket.value);
  about.debt = {kDeepestBucket.value * 2};
  for (int times = 0; times < 20; ++times) {
    ExactBucket exact = bucket_after(ask("a", about));
    exact.rest = std::stoull(field("rem"));
    pass(25ms);
    const LeaseAnswer answer = take(0, of_rate(399'999'999'999, kDeepestBucket.value));
    exact.earn_until(time_of(answer));
    EXPECT_EQ(answer.tokens, exact.tokens);
    EXPECT_EQ(field("rem"), std::to_string(exact.rest));
  }
}

TEST_F(LeaseScript, DeliversASlowRateThatIsAskedOften) {
  const LeaseAsk about = of_rate(8'000, 1'000);
  const std::uint64_t begin = time_of(take(1'000, about));
  std::uint64_t granted = 0;
  std::uint64_t end = begin;
  for (int calls = 0; calls < 5'000; ++calls) {
    pass(30us);
    const LeaseAnswer answer = take(1'000, about);
    granted += answer.grant.value;
    end = time_of(answer);
  }
  EXPECT_EQ(granted, (end - begin) / 1'000) << "1000 B/s, nothing thrown away";
}

TEST_F(LeaseScript, GoesByTheClockOfRedisOnly) {
  const auto redis_time = [this] {
    const RedisReply time = redis({"TIME"});
    return std::stoull(time.texts.at(0)) * 1'000'000 + std::stoull(time.texts.at(1));
  };
  const std::uint64_t before = redis_time();
  const LeaseAnswer first = take(0);
  const LeaseAnswer second = take(0);
  EXPECT_LE(before, first.redis_time_us);
  EXPECT_LE(first.redis_time_us, second.redis_time_us);
  EXPECT_LE(second.redis_time_us, redis_time());
  EXPECT_EQ(first.generation, first.redis_time_us);
  LeaseAsk later = ask_about();
  EXPECT_EQ(lease_call({"a", 7}, {&later, 1}).arguments, lease_call({"a", 7}, {&later, 1}).arguments)
      << "no time goes in";
}

TEST_F(LeaseScript, StoresWholeNumbersWithAllTheirDigits) {
  const LeaseAnswer answer = take(1'234, of_rate(399'999'999'999, kDeepestBucket.value));
  EXPECT_EQ(field("ts"), std::to_string(answer.redis_time_us));
  EXPECT_EQ(field("R"), "399999999999");
}

TEST_F(LeaseScript, LevelStaysInRange) {
  take(0);
  pass(1'000h);
  EXPECT_EQ(take(0).tokens, 2'500'000);
  LeaseAsk back = ask_about();
  back.give_back = {1'000'000'000'000};
  EXPECT_EQ(ask("a", back).tokens, 2'500'000) << "what is given back does not overflow";
  LeaseAsk debt = ask_about();
  debt.debt = {1'000'000'000'000};
  EXPECT_EQ(ask("a", debt).tokens, -static_cast<std::int64_t>(kDeepestBucket.value)) << "nor does a debt";
  EXPECT_EQ(take(1).grant.value, 0U);
}

TEST_F(LeaseScript, EarnsAfterIdlenessWithoutOverflow) {
  const LeaseAsk about = of_rate(400'000'000'000, kDeepestBucket.value);
  take(kDeepestBucket.value, about);
  pass(24h * 365);
  EXPECT_EQ(take(100, about).grant.value, 100U);
}

TEST_F(LeaseScript, WaitingTimeIsWhenTheBucketCoversTheNeed) {
  LeaseAsk about = of_rate(7'999, 10'000);
  const LeaseAnswer empty = take(10'000, about);
  ASSERT_EQ(empty.tokens, 0);
  const std::uint64_t begin = time_of(empty);
  const Nanos wait = waiting_time(empty, {500});
  EXPECT_EQ(wait, time_for({7'999}, {500}));
  pass(wait - 10ms);
  const LeaseAnswer early = take(0, about);
  if (time_of(early) < begin + 500'000) {
    EXPECT_LT(early.tokens, 500);
  }
  pass(10ms + 1us);
  EXPECT_GE(take(0, about).tokens, 500);
}

TEST_F(LeaseScript, WaitingTimeCountsDebtsAndIsRoundedUp) {
  const auto wait = [](std::int64_t tokens, DataRate rate, std::uint64_t need) {
    LeaseAnswer answer;
    answer.tokens = tokens;
    answer.rate = rate;
    return waiting_time(answer, {need});
  };
  EXPECT_EQ(wait(500, {8'000}, 500), 0ns);
  EXPECT_EQ(wait(499, {8'000}, 500), 1ms);
  EXPECT_EQ(wait(-100, {8'000}, 500), 600ms);
  EXPECT_EQ(wait(0, {3'000'000'000}, 1), 3ns);
}

TEST_F(LeaseScript, RepeatedAskGetsTheSameAndCostsNothing) {
  LeaseAsk about = ask_about();
  about.sequence = 5;
  about.need = {1'000};
  const LeaseAnswer first = ask("a", about);
  about.need = {500'000};
  about.give_back = {300'000};
  const LeaseAnswer again = ask("a", about);
  EXPECT_EQ(again.status, Status::replay);
  EXPECT_EQ(again.grant, first.grant);
  about.sequence = 6;
  about.need = {0};
  about.give_back = {0};
  const LeaseAnswer next = ask("a", about);
  ExactBucket exact = bucket_after(first);
  exact.earn_until(time_of(next));
  EXPECT_EQ(next.tokens, exact.tokens) << "the repeated one took and gave nothing";
}

TEST_F(LeaseScript, LateAskChangesNothing) {
  take(1'000);
  take(1'000);
  const auto before = stored();
  LeaseAsk late = ask_about();
  late.sequence = 1;
  late.need = {1'000};
  const LeaseAnswer answer = ask("a", late);
  EXPECT_EQ(answer.status, Status::stale);
  EXPECT_EQ(answer.grant.value, 0U);
  EXPECT_EQ(stored(), before);
}

TEST_F(LeaseScript, RestartedHostBeginsAnew) {
  LeaseAsk about = of_rate(8'000, 2'500'000);
  about.sequence = 900;
  about.need = {1'000};
  ask_all({"a", 1}, {&about, 1});
  about.sequence = 1;
  about.give_back = {1'000'000};
  const LeaseAnswer restarted = ask_all({"a", 2}, {&about, 1}).front();
  EXPECT_EQ(restarted.status, Status::taken);
  EXPECT_EQ(restarted.grant.value, 1'000U);
  EXPECT_LT(restarted.tokens, 2'000'000) << "it holds nothing that it could give back";
  EXPECT_EQ(restarted.members, 1U);
}

TEST_F(LeaseScript, ANameIsFreeOnceItsHostHasLeftOrIsSilent) {
  LeaseAsk about = ask_about();
  about.sequence = 1;
  const auto status_for = [&](std::uint64_t incarnation) {
    return ask_all({"a", incarnation}, {&about, 1}).front().status;
  };
  EXPECT_EQ(status_for(1), Status::fresh);
  pass(kLease + 1ms);
  EXPECT_EQ(status_for(2), Status::granted) << "that was long ago";
  EXPECT_EQ(status_for(3), Status::taken);
  about.sequence = 2;
  about.leaving = true;
  EXPECT_EQ(status_for(3), Status::granted);
  about.leaving = false;
  EXPECT_EQ(status_for(4), Status::granted) << "that one left";
}

/// Each asks twice, gives back what it has not got, and their sequences interleave.
TEST_F(LeaseScript, TwoHostsOfOneNameSeeEachOtherAndMakeNothing) {
  LeaseAsk about = of_rate(80'000'000, 2'500'000);
  about.sequence = 1;
  ExactBucket exact = bucket_after(ask_all({"a", 1}, {&about, 1}).front());
  sim::Random random{1};
  std::uint64_t granted = 0;
  for (int calls = 0; calls < 400; ++calls) {
    pass(random.up_to(30ms));
    about.sequence = 1 + random.below(400);
    about.need = {random.below(500'000)};
    about.give_back = {100'000};
    about.want = {80'000'000};
    const std::uint64_t incarnation = 1 + static_cast<std::uint64_t>(calls + 1) % 2;
    for (int times = 0; times < 2; ++times) {
      const LeaseAnswer answer = ask_all({"a", incarnation}, {&about, 1}).front();
      ASSERT_EQ(answer.status, times == 0 ? Status::taken : Status::replay);
      exact.earn_until(time_of(answer));
      if (times == 0) exact.tokens -= static_cast<std::int64_t>(answer.grant.value);
      ASSERT_EQ(answer.tokens, exact.tokens) << "nobody's give-back counts";
      granted += answer.grant.value;
    }
  }
  EXPECT_GT(granted, 1'000'000U);
}

TEST_F(LeaseScript, GivenBackIsThereForOthers) {
  EXPECT_EQ(take(2'500'000, of_rate(8'000, 2'500'000)).tokens, 0);
  LeaseAsk back = of_rate(8'000, 2'500'000);
  back.give_back = {700'000};
  const LeaseAnswer answer = ask("a", back);
  EXPECT_GE(answer.tokens, 700'000);
  EXPECT_LT(ask("b", back).tokens - answer.tokens, 700'000) << "who is not known holds nothing";
}

TEST_F(LeaseScript, OneRateIsInForceWhileHostsChangeOneByOne) {
  constexpr std::uint64_t kHostCount = 5;
  const auto about = [](std::uint64_t config) {
    LeaseAsk ask = ask_about();
    ask.config = config;
    ask.rate = {config == 1 ? 80'000'001U : 40'000'000U};
    ask.burst = {config == 1 ? 1'000'000U : 500'000U};
    ask.need = {20'000};
    return ask;
  };
  ExactBucket exact = bucket_after(ask("h0", about(1)));
  for (std::uint64_t changed = 0; changed <= kHostCount; ++changed) {
    for (std::uint64_t host = 0; host < kHostCount; ++host) {
      pass(3ms);
      const bool knows_new = host < changed;
      const LeaseAnswer answer = ask("h" + std::to_string(host), about(knows_new ? 2 : 1));
      exact.earn_until(time_of(answer));  // at the rate before
      EXPECT_EQ(answer.rate.bits_per_second, changed == 0 ? 80'000'001U : 40'000'000U);
      EXPECT_EQ(answer.config, changed == 0 ? 1U : 2U);
      EXPECT_EQ(answer.status, changed == 0 || knows_new ? Status::granted : Status::old_config);
      exact.bits_per_second = answer.rate.bits_per_second;
      exact.depth = static_cast<std::int64_t>(answer.burst.value);
      exact.tokens = std::min(exact.tokens, exact.depth) - static_cast<std::int64_t>(answer.grant.value);
      ASSERT_EQ(answer.tokens, exact.tokens);
    }
  }
}

TEST_F(LeaseScript, SameVersionWithAnotherRateIsToldAndNotAdopted) {
  take(0);
  const LeaseAnswer answer = take(0, of_rate(1'000'000, 2'500'000));
  EXPECT_EQ(answer.status, Status::old_config);
  EXPECT_EQ(answer.rate.bits_per_second, 200'000'000U);
}

TEST_F(LeaseScript, RateIsSetByWhoIsNoMember) {
  take(0);
  LeaseAsk set = of_rate(1'000'000, 2'500'000);
  set.config = 2;
  set.leaving = true;
  EXPECT_EQ(ask("operator", set).rate.bits_per_second, 1'000'000U);
  const LeaseAnswer answer = take(0);
  EXPECT_EQ(answer.status, Status::old_config);
  EXPECT_EQ(answer.rate.bits_per_second, 1'000'000U);
  EXPECT_EQ(answer.members, 1U);
}

TEST_F(LeaseScript, ExpiresLaterThanItFills) {
  const auto ttl = [this](const char* key) { return redis({"PTTL", key}).number; };
  take(0, of_rate(300, 1'500));
  EXPECT_GT(ttl(kBucket), 399'000) << "ten times 1500 B at 300 bit/s";
  EXPECT_GT(ttl(kHosts), 399'000);
  redis({"FLUSHALL"});
  take(0);
  for (const char* const key : {kBucket, kHosts}) {
    EXPECT_GT(ttl(key), 59'000);
    EXPECT_LE(ttl(key), 60'000);
    redis({"PEXPIRE", key, "5000"});
    pass(10ms);
    take(0);
    EXPECT_GT(ttl(key), 59'000) << "renewed by calls";
    redis({"PEXPIRE", key, "5000"});
    ask("host-" + std::string{key}, ask_about());
    EXPECT_GT(ttl(key), 59'000) << "and for every new host";
  }
}

TEST_F(LeaseScript, LostBucketComesBackHalfFull) {
  const LeaseAnswer first = take(1'000);
  EXPECT_EQ(first.status, Status::fresh);
  EXPECT_EQ(first.tokens, 1'249'000);
  LeaseAsk again = ask_about();
  again.give_back = {1'000};
  for (const std::vector<std::string>& loss : std::vector<std::vector<std::string>>{{"DEL", kBucket}, {"FLUSHALL"}}) {
    redis(loss);
    const LeaseAnswer answer = ask("a", again);
    EXPECT_EQ(answer.status, Status::fresh);
    EXPECT_EQ(answer.tokens, 1'250'000) << "whatever is given back was of the lost one";
    EXPECT_GT(answer.generation, first.generation);
  }
}

TEST_F(LeaseScript, HostThatCannotBeReadBeginsAnew) {
  take(0);
  redis({"HSET", kHosts, "a", "nonsense"});
  EXPECT_EQ(take(100).grant.value, 100U);
}

TEST_F(LeaseScript, UnknownScriptIsSentWholeWithTheSameSequence) {
  take(1'000);
  EXPECT_EQ(unknown_script, 1);
  redis({"SCRIPT", "FLUSH"});
  const LeaseAnswer answer = take(1'000);
  EXPECT_EQ(unknown_script, 2);
  EXPECT_EQ(answer.status, Status::granted);
  EXPECT_EQ(answer.grant.value, 1'000U);
  server.restart();
  redis = RedisClient{server.socket()};
  EXPECT_EQ(take(1'000).status, Status::fresh);
  EXPECT_EQ(unknown_script, 3);
}

TEST_F(LeaseScript, RefusalsOfAServerChangeNothing) {
  const std::uint64_t before = time_of(take(1'000));
  const auto kept = stored();
  LeaseAsk about = ask_about();
  about.sequence = 2;
  about.need = {1'000};
  const LeaseCall call = lease_call({"a", 7}, {&about, 1});
  redis({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_THAT(send(call).error, testing::StartsWith("OOM"));
  redis({"CONFIG", "SET", "maxmemory", "0"});
  redis({"REPLICAOF", "127.0.0.1", "1"});
  EXPECT_THAT(send(call).error, testing::StartsWith("READONLY"));
  redis({"REPLICAOF", "NO", "ONE"});
  EXPECT_EQ(stored(), kept);
  const LeaseAnswer answer = ask("a", about);
  EXPECT_EQ(answer.status, Status::granted) << "the same sequence is served now";
  EXPECT_GT(time_of(answer), before);
  redis({"LPUSH", "dl:{0}:other:b", "text"});
  about.bucket = "other";
  EXPECT_THAT(send(lease_call({"a", 7}, {&about, 1})).error, testing::StartsWith("WRONGTYPE"));
}

TEST_F(LeaseScript, ClockThatJumpsNeitherStallsNorMintsMoreThanTheDepth) {
  for (const Nanos jump : {Nanos{1h}, Nanos{-1h}}) {
    redis({"FLUSHALL"});
    take(2'500'000);
    pass(jump);
    const LeaseAnswer after = take(3'000'000);
    EXPECT_LE(after.grant.value, 2'500'000U);
    pass(10ms);
    EXPECT_GE(take(250'000).grant.value, 250'000U) << "10 ms of the rate";
  }
}

TEST_F(LeaseScript, RefusesWhatItDoesNotUnderstand) {
  const LeaseAsk about = ask_about();
  const LeaseCall good = lease_call({"a", 7}, {&about, 1});
  const auto error_of = [&](const std::function<void(LeaseCall&)>& change) {
    LeaseCall call = good;
    change(call);
    const std::string error = send(call).error;
    return error.substr(0, error.find(" script: "));  // Redis adds where it was raised
  };
  EXPECT_EQ(error_of([](LeaseCall&) {}), "");
  const auto with = [&](std::size_t at, const char* word) {
    return error_of([&](LeaseCall& call) { call.arguments[at] = word; });
  };
  EXPECT_EQ(with(0, "2"), "ERR grants: protocol 1 is spoken here");
  EXPECT_EQ(with(2, "x"), "ERR grants: argument 3 is out of range");
  EXPECT_EQ(with(4, "299"), "ERR grants: argument 5 is no rate");
  EXPECT_EQ(with(4, "400000000001"), "ERR grants: argument 5 is no rate");
  EXPECT_EQ(with(5, "0"), "ERR grants: argument 6 is no depth");
  EXPECT_EQ(with(5, "1073741825"), "ERR grants: argument 6 is no depth");
  for (const char* const word : {"1.5", "-1", "", "x", "nan", "inf", "9007199254740992"}) {
    EXPECT_EQ(with(10, word), "ERR grants: argument 11 is out of range") << word;
  }
  EXPECT_EQ(error_of([](LeaseCall& call) { call.arguments.pop_back(); }),
            "ERR grants: keys and arguments do not match");
  EXPECT_EQ(error_of([&](LeaseCall& call) {
              for (int n = 0; n < 32; ++n) {
                call.keys.insert(call.keys.end(), good.keys.begin(), good.keys.end());
                call.arguments.insert(call.arguments.end(), good.arguments.begin() + 3, good.arguments.end());
              }
            }),
            "ERR grants: keys and arguments do not match")
      << "33 buckets";
}

TEST_F(LeaseScript, LeavesABucketOfAnotherVersionAlone) {
  take(1'000);
  const std::string bucket = redis({"GET", kBucket}).text;
  std::uint64_t sequence = 10;
  for (const std::string& other : {"\2" + bucket.substr(1), bucket + "more", std::string{"text"}, std::string{}}) {
    redis({"SET", kBucket, other});
    std::vector<LeaseAsk> both{ask_about(), ask_about("other")};
    for (LeaseAsk& each : both) {
      each.sequence = sequence;
      each.need = {1'000};
    }
    ++sequence;
    const auto answers = ask_all({"a", 7}, both);
    EXPECT_EQ(answers[0].status, Status::foreign);
    EXPECT_EQ(answers[0].grant.value, 0U);
    EXPECT_EQ(answers[1].grant.value, 1'000U) << "it is no reason to refuse others";
    EXPECT_EQ(redis({"GET", kBucket}).text, other);
  }
}

TEST_F(LeaseScript, AnswersForManyBucketsInOneCall) {
  std::vector<LeaseAsk> asks;
  for (std::uint64_t i = 0; i < kMostBucketsInCall; ++i) {
    asks.push_back(ask_about("tenant/10.0.0." + std::to_string(i)));
    asks.back().sequence = 1;
    asks.back().need = {i * 100};
  }
  const std::vector<LeaseAnswer> answers = ask_all({"a", 7}, asks);
  for (std::uint64_t i = 0; i < kMostBucketsInCall; ++i) {
    EXPECT_EQ(answers[i].grant.value, i * 100);
    EXPECT_EQ(answers[i].tokens, 1'250'000 - static_cast<std::int64_t>(i * 100));
  }
}

}  // namespace
}  // namespace shaper::test
