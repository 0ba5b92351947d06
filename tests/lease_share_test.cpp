// The script of cluster limits in a real Redis, many hosts: who gets how much, who counts, and that all of it together
// is never more than the rate.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <utility>

#include "tests/lease_cluster.h"
#include "tests/sim_random.h"

namespace shaper::test {
namespace {

using Status = LeaseAnswer::Status;

/// A host that has traffic of a constant rate, and asks for it every interval.
struct Host {
  std::string name;
  DataRate offers{};
  std::uint64_t waits = 0;  ///< bytes that nothing was granted for
  std::uint64_t since_us = 0;
  std::uint64_t granted = 0;
};

constexpr std::uint64_t kRate = 200'000'000;

class LeaseShares : public LeaseCluster {
 protected:
  /// What of the offered is not granted in 100 ms is dropped.
  LeaseAnswer tick(Host& host, LeaseAsk about = ask_about()) {
    const auto longest = bytes_in(host.offers, 100ms).value;
    about.want = host.offers;
    about.need = {std::min(longest, host.waits)};
    const LeaseAnswer answer = ask(host.name, about);
    host.granted += answer.grant.value;
    const std::uint64_t now = time_of(answer);
    const Nanos since = host.since_us == 0 ? kInterval : std::chrono::microseconds{now - host.since_us};
    host.waits =
        std::min(longest, host.waits - std::min(host.waits, answer.grant.value) + bytes_in(host.offers, since).value);
    host.since_us = now;
    return answer;
  }

  /// All of them in turn, for `time`; returns the share of the rate that each got. Again, if this test did not run for
  /// so long that it would look like an outage.
  std::vector<double> run(std::vector<Host>& hosts, Nanos time, const LeaseAsk& about = ask_about()) {
    for (;;) {
      stood_still_ = false;
      std::uint64_t end = round(hosts, about);
      const std::uint64_t begin = end;
      for (Host& host : hosts) host.granted = 0;
      while (std::chrono::microseconds{end - begin} < time) end = round(hosts, about);
      if (!stood_still_) return shares(hosts, about.rate, std::chrono::microseconds{end - begin});
    }
  }

  static std::vector<Host> hosts_that_offer(std::initializer_list<double> parts_of_the_rate) {
    std::vector<Host> hosts;
    for (const double part : parts_of_the_rate) {
      hosts.push_back({"h" + std::to_string(hosts.size()), {static_cast<std::uint64_t>(part * kRate)}});
    }
    return hosts;
  }

 private:
  std::uint64_t round(std::vector<Host>& hosts, const LeaseAsk& about) {
    const Nanos step = kInterval / hosts.size();
    std::uint64_t last = 0;
    for (Host& host : hosts) {
      pass(step);
      const std::uint64_t now = time_of(tick(host, about));
      if (last != 0 && std::chrono::microseconds{now - last} > step + 20ms) stood_still_ = true;
      last = now;
    }
    return last;
  }

  static std::vector<double> shares(const std::vector<Host>& hosts, DataRate rate, Nanos time) {
    std::vector<double> shares;
    for (const Host& host : hosts) {
      shares.push_back(static_cast<double>(host.granted) / static_cast<double>(bytes_in(rate, time).value));
    }
    return shares;
  }

  bool stood_still_ = false;
};

testing::Matcher<double> about(double share) {
  return testing::DoubleNear(share, 0.02);
}

TEST_F(LeaseShares, EnoughForAllIsGrantedAsNeeded) {
  std::vector<Host> hosts = hosts_that_offer({0.5, 0.1, 0.2});
  run(hosts, 500ms);
  EXPECT_THAT(run(hosts, 2s), testing::ElementsAre(about(0.5), about(0.1), about(0.2)));
  const LeaseAnswer answer = tick(hosts[0]);
  EXPECT_FALSE(answer.contended);
  EXPECT_EQ(answer.members, 3U);
}

TEST_F(LeaseShares, AreMaxMinFairWhenBytesAreShort) {
  std::vector<Host> hosts = hosts_that_offer({10, 0.1, 1, 0.2, 10});
  run(hosts, 1s);
  EXPECT_THAT(run(hosts, 3s),
              testing::ElementsAre(about(0.7 / 3), about(0.1), about(0.7 / 3), about(0.2), about(0.7 / 3)));
  const LeaseAnswer answer = tick(hosts[0]);
  EXPECT_TRUE(answer.contended);
  EXPECT_NEAR(static_cast<double>(answer.share.bits_per_second) / kRate, 0.7 / 3, 0.05);
}

TEST_F(LeaseShares, OneHostAloneGetsTheWholeRate) {
  std::vector<Host> hosts = hosts_that_offer({2});
  run(hosts, 500ms);
  EXPECT_THAT(run(hosts, 2s), testing::ElementsAre(about(1)));
}

TEST_F(LeaseShares, OfASlowRateAreFairThoughAShareIsLessThanAByte) {
  LeaseAsk slow = ask_about();
  slow.rate = {300};
  slow.burst = {2'000};
  std::vector<Host> hosts = hosts_that_offer({1, 1, 1, 1});
  run(hosts, 60s, slow);
  EXPECT_THAT(run(hosts, 60s, slow), testing::Each(testing::DoubleNear(0.25, 0.03)));
}

TEST_F(LeaseShares, HostThatLeavesIsNoMemberAtOnce) {
  std::vector<Host> hosts = hosts_that_offer({1, 1, 1});
  run(hosts, 500ms);
  LeaseAsk leaving = ask_about();
  leaving.leaving = true;
  EXPECT_EQ(ask("h0", leaving).members, 2U);
  std::vector<Host> rest{hosts[1], hosts[2]};
  run(rest, 200ms);
  EXPECT_THAT(run(rest, 1s), testing::Each(about(0.5)));
  EXPECT_EQ(ask("stranger", leaving).members, 2U);
  EXPECT_EQ(redis({"HEXISTS", kHosts, "stranger"}).number, 0) << "who was not there leaves no trace";
}

TEST_F(LeaseShares, RepeatedLeavingGivesBackOnce) {
  std::vector<Host> hosts = hosts_that_offer({1});
  tick(hosts[0]);
  LeaseAsk leaving = ask_about();
  leaving.leaving = true;
  leaving.sequence = 1'000;
  leaving.give_back = {500'000};
  leaving.need = {1'000};
  const LeaseAnswer left = ask("h0", leaving);
  EXPECT_EQ(left.status, Status::granted);
  EXPECT_EQ(left.grant.value, 0U) << "who leaves needs nothing";
  const std::string tokens = field("tok");
  EXPECT_EQ(ask("h0", leaving).status, Status::replay);
  EXPECT_EQ(field("tok"), tokens);
}

TEST_F(LeaseShares, SilentHostIsNoMemberAfterItsLease) {
  std::vector<Host> hosts = hosts_that_offer({1, 1, 1});
  run(hosts, 500ms);
  LeaseAsk distant = ask_about();
  distant.lease = 10 * kLease;
  tick(hosts[2], distant);
  pass(kLease + 1ms);
  EXPECT_EQ(tick(hosts[0]).members, 2U) << "one has a longer lease";
  pass(60s);
  EXPECT_EQ(tick(hosts[0]).members, 1U);
  EXPECT_EQ(redis({"HLEN", kHosts}).number, 1) << "forgotten after a minute";
}

TEST_F(LeaseShares, ReserveKeepsThePartOfTheMissing) {
  for (const std::uint64_t own : {std::uint64_t{0}, kRate / 10}) {
    redis({"FLUSHALL"});
    LeaseAsk reserve = ask_about();
    reserve.reserve = true;
    reserve.local_rate = {own};
    std::vector<Host> hosts = hosts_that_offer({1, 1, 1, 1});
    run(hosts, 500ms, reserve);
    std::vector<Host> reached{hosts[0], hosts[1]};
    run(reached, 1s, reserve);
    const double left = own == 0 ? 0.5 : 0.8;
    EXPECT_THAT(run(reached, 3s, reserve), testing::Each(about(left / 2))) << "two are missing";
    EXPECT_NEAR(static_cast<double>(tick(reached[0], reserve).share.bits_per_second) / kRate, left / 2, 0.05);
    LeaseAsk leaving = reserve;
    leaving.leaving = true;
    ask("h2", leaving);
    run(reached, 200ms, reserve);
    EXPECT_THAT(run(reached, 1s, reserve), testing::Each(about(own == 0 ? 1.0 / 3 : 0.45))) << "one has left";
    run(reached, 60s, reserve);
    EXPECT_THAT(run(reached, 1s, reserve), testing::Each(about(0.5))) << "after a minute nobody is missing";
  }
}

TEST_F(LeaseShares, WithoutReserveTheMissingKeepNothing) {
  std::vector<Host> hosts = hosts_that_offer({1, 1, 1, 1});
  run(hosts, 500ms);
  std::vector<Host> reached{hosts[0], hosts[1]};
  run(reached, 500ms);
  EXPECT_THAT(run(reached, 2s), testing::Each(about(0.5)));
}

TEST_F(LeaseShares, OutageEarnsNothingWhereBytesWereShort) {
  std::vector<Host> hosts = hosts_that_offer({1, 1});
  run(hosts, 1s);
  const LeaseAnswer before = tick(hosts[0]);
  ASSERT_TRUE(before.contended);
  pass(10s);
  const LeaseAnswer after = tick(hosts[0]);
  EXPECT_EQ(after.tokens + static_cast<std::int64_t>(after.grant.value), before.tokens);
}

TEST_F(LeaseShares, QuietWithinTheLongestLeaseIsNoOutage) {
  LeaseAsk distant = ask_about();
  distant.lease = 10 * kLease;
  std::vector<Host> hosts = hosts_that_offer({2});
  run(hosts, 1s, distant);
  const LeaseAnswer before = tick(hosts[0], distant);
  ASSERT_TRUE(before.contended);
  pass(2 * kLease);
  EXPECT_GT(ask("near", ask_about()).tokens, before.tokens);
}

TEST_F(LeaseShares, BucketGoesBackToHalfFull) {
  std::vector<Host> hosts = hosts_that_offer({1, 1, 1});
  run(hosts, 500ms);
  for (const char* const tokens : {"-2500000", "2500000"}) {
    set_tokens(tokens);
    run(hosts, 2s);
    EXPECT_NEAR(std::stod(field("tok")), 1'250'000 - bytes_in({kRate}, kInterval / 3).value, 250'000) << tokens;
  }
}

TEST_F(LeaseShares, IdlenessFillsTheBucket) {
  std::vector<Host> hosts = hosts_that_offer({1, 1});
  run(hosts, 1s);
  LeaseAsk leaving = ask_about();
  leaving.leaving = true;
  ask("h0", leaving);
  ask("h1", leaving);
  pass(10s);
  EXPECT_EQ(ask("h0", ask_about()).tokens, 2'500'000);
}

TEST_F(LeaseShares, HostFromItsFallbackIsNotPaidForThatTime) {
  LeaseAsk slow = ask_about();
  slow.burst = {100'000'000};
  slow.interval = 10 * kInterval;
  slow.lease = 10 * kLease;
  std::vector<Host> hosts = hosts_that_offer({1, 1, 1, 1});
  run(hosts, 1s, slow);
  set_tokens("0");  // so that nothing is above half
  slow.want = {kRate};
  slow.need = slow.burst;
  pass(2 * slow.interval);
  const LeaseAnswer normal = ask("h0", slow);
  slow.in_fallback = true;
  const LeaseAnswer returned = ask("h1", slow);
  EXPECT_NEAR(static_cast<double>(normal.grant.value),
              static_cast<double>(bytes_in(normal.share, 2 * slow.interval).value), 2);
  EXPECT_NEAR(static_cast<double>(returned.grant.value),
              static_cast<double>(bytes_in(returned.share, slow.interval).value), 2);
}

TEST_F(LeaseShares, ClockThatJumpsKeepsTheMembers) {
  std::vector<Host> hosts = hosts_that_offer({1, 1, 1});
  for (const Nanos jump : {Nanos{-1h}, Nanos{1h}}) {
    run(hosts, 500ms);
    pass(jump);
    for (Host& host : hosts) host.since_us = 0;
    std::vector<Host> reached{hosts[0], hosts[1]};
    run(reached, kLease + 2 * kInterval);
    EXPECT_EQ(tick(reached[0]).members, 2U) << "the third is silent since the jump";
    run(hosts, 200ms);
    EXPECT_EQ(tick(hosts[0]).members, 3U);
    EXPECT_THAT(run(hosts, 1s), testing::Each(about(1.0 / 3)));
    pass(kLease + 1ms);
    EXPECT_EQ(tick(hosts[1]).members, 1U) << "nobody is a member for an hour";
  }
}

TEST_F(LeaseShares, HostsAreCountedEveryTenMilliseconds) {
  const LeaseAnswer first = ask("a", ask_about());
  const LeaseAnswer second = ask("b", ask_about());
  if (time_of(second) < time_of(first) + 10'000) {
    EXPECT_EQ(second.members, 1U);
  }
  pass(10ms);
  EXPECT_EQ(ask("a", ask_about()).members, 2U);
}

TEST_F(LeaseShares, TableOfHostsHasABound) {
  ask("h", ask_about());
  const std::string record = redis({"HGET", kHosts, "h"}).text;
  for (int n = 1; n < 512; ++n) redis({"HSET", kHosts, "x" + std::to_string(n), record});
  LeaseAsk need = ask_about();
  need.need = {1'000};
  const LeaseAnswer crowded = ask("late", need);
  EXPECT_EQ(crowded.status, Status::crowded);
  EXPECT_EQ(crowded.grant.value, 0U);
  EXPECT_EQ(ask("h", need).grant.value, 1'000U);
  EXPECT_EQ(redis({"HLEN", kHosts}).number, 512);
  pass(61s);
  ask("late", need);
  EXPECT_EQ(ask("late", need).grant.value, 1'000U) << "room is made of who is forgotten";
}

/// Hosts that do anything, and a network that repeats and delays.
TEST_F(LeaseShares, NeverMoreThanTheRateAndTheDepth) {
  for (const std::uint64_t seed : sim::seeds(3)) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    redis({"FLUSHALL"});
    sim::Random random{seed};
    struct Event {
      std::uint64_t us;
      std::int64_t sent;
    };
    std::vector<Event> events;
    std::map<std::string, std::uint64_t> wallets;
    std::vector<std::pair<LeaseHost, LeaseAsk>> sent;
    LeaseAsk base = ask_about();
    base.rate = {random.log_between(300, 400'000'000'000)};
    base.burst = {random.log_between(1, 1 << 30)};
    for (std::uint64_t n = 1; n <= 600; ++n) {
      pass(random.up_to(random.chance(5) ? 500ms : 5ms));
      if (!sent.empty() && random.chance(20)) {  // lost replies, and late requests
        const auto& [who, again] = sent[random.below(sent.size())];
        const LeaseAnswer answer = ask_all(who, {&again, 1}).front();
        ASSERT_THAT(answer.status, testing::AnyOf(Status::replay, Status::stale));
        continue;
      }
      const LeaseHost host{"h" + std::to_string(random.below(4)), 7};
      std::uint64_t& wallet = wallets[host.id];
      LeaseAsk ask = base;
      ask.sequence = n;
      ask.want = {random.log_between(1, 1'000'000'000'000)};
      ask.need = {random.log_between(1, 1 << 30)};
      ask.give_back = {random.chance(30) ? random.between(0, wallet) : 0};
      ask.leaving = random.chance(3);
      ask.in_fallback = random.chance(5);
      ask.reserve = random.chance(50);
      const LeaseAnswer answer = ask_all(host, {&ask, 1}).front();
      sent.emplace_back(host, ask);
      wallet += answer.grant.value - ask.give_back.value;
      events.push_back({time_of(answer), static_cast<std::int64_t>(answer.grant.value) -
                                             static_cast<std::int64_t>(ask.give_back.value)});
      ASSERT_LE(answer.grant.value, ask.need.value);
      ASSERT_LE(answer.tokens, static_cast<std::int64_t>(base.burst.value));
      ASSERT_GE(answer.tokens, 0);
    }
    for (std::size_t first = 0; first < events.size(); ++first) {
      std::int64_t bytes = 0;
      for (std::size_t last = first; last < events.size(); ++last) {
        bytes += events[last].sent;
        const auto most = bytes_in(base.rate, std::chrono::microseconds{events[last].us - events[first].us});
        ASSERT_LE(bytes, static_cast<std::int64_t>(most.value + base.burst.value + 1)) << first << ".." << last;
      }
    }
  }
}

/// What a call costs the server, by its own statistics: the least of many short series, for the machine has other work.
class LeaseCost : public LeaseCluster {
 protected:
  double microseconds_each(std::size_t buckets, std::uint64_t hosts) {
    redis({"FLUSHALL"});
    double least = 1e9;
    std::uint64_t sequence = 0;
    for (int series = 0; series < 40; ++series) {
      redis({"CONFIG", "RESETSTAT"});
      for (std::size_t calls = 0; calls < 200 / buckets + 5; ++calls) {
        ++sequence;
        ask_all({"h" + std::to_string(sequence % hosts), 7}, asks_about(buckets, sequence));
        if (calls % 5 == 0) pass(2ms);
      }
      least = std::min(least, microseconds_per_call());
    }
    return least / static_cast<double>(buckets);
  }

 private:
  static std::vector<LeaseAsk> asks_about(std::size_t buckets, std::uint64_t sequence) {
    std::vector<LeaseAsk> asks;
    for (std::size_t i = 0; i < buckets; ++i) {
      asks.push_back(ask_about("tenant/" + std::to_string(i)));
      asks.back().sequence = sequence;
      asks.back().want = {kRate};
      asks.back().need = {100'000};
    }
    return asks;
  }

  double microseconds_per_call() {
    const std::string statistics = redis({"INFO", "commandstats"}).text;
    const std::string_view word = "usec_per_call=";
    const std::size_t line = statistics.find("cmdstat_evalsha:");
    return std::stod(statistics.substr(statistics.find(word, line) + word.size()));
  }
};

/// Printed to be looked at; the bound only tells when a loop has become long.
TEST_F(LeaseCost, OfAnUpdate) {
  for (const auto& [buckets, hosts] : {std::pair{1UL, 1UL}, {1UL, 20UL}, {1UL, 100UL}, {32UL, 20UL}}) {
    const double cost = microseconds_each(buckets, hosts);
    std::cout << buckets << " buckets in a call, " << hosts << " hosts: " << cost << " us of the server for each\n";
    EXPECT_LT(cost, 200);
  }
}

}  // namespace
}  // namespace shaper::test
