// The strategies beside grants: what each does to the total of many hosts, and what holds when Redis stands still,
// goes, comes back, or some do not reach it. In simulated time.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "tests/sim_cluster.h"

namespace shaper::sim {
namespace {

constexpr std::uint32_t kHosts = 20;
constexpr std::uint64_t kTwice = 2'000;
constexpr std::array kStrategies{Strategy::remote, Strategy::poll, Strategy::push};

LeasePolicy tenant(Strategy strategy, WithoutRedis rule = WithoutRedis::degrade) {
  LeasePolicy policy;
  policy.bucket = "tenant";
  policy.rate = 100_mbit;
  policy.burst = bytes_in(policy.rate, 100ms);
  policy.strategy = strategy;
  policy.without_redis = rule;
  return policy;
}

/// Thousandths of the rate.
std::uint64_t last(const Cluster& cluster, Nanos time) {
  return cluster.sent.permille(cluster.policy.rate, cluster.now() - time, cluster.now());
}

void expect_windows(const Cluster& cluster, Nanos length, std::uint64_t least, std::uint64_t most) {
  const auto seen = cluster.sent.windows(cluster.policy.rate, length, cluster.now() - 10s, cluster.now());
  EXPECT_GE(seen.least, least) << "thousandths of the rate in windows of " << length.count() << " ns";
  EXPECT_LE(seen.most, most) << "thousandths of the rate in windows of " << length.count() << " ns";
}

/// Each strategy, its name and a seed beside what a test prints.
void with_each(const std::function<void(Strategy, std::uint64_t)>& test) {
  for (const Strategy strategy : kStrategies) {
    for (const std::uint64_t seed : seeds(1)) {
      SCOPED_TRACE(std::string(strategy_name(strategy)) + ", seed " + std::to_string(seed));
      test(strategy, seed);
    }
  }
}

TEST(LeaseStrategy, TheTotalIsTheRateInTheLongRun) {
  with_each([](Strategy strategy, std::uint64_t seed) {
    Cluster cluster(kHosts, tenant(strategy), seed);
    cluster.offer(kTwice);
    cluster.run_for(5s);
    const std::vector<std::uint64_t> before = cluster.sent_by_host();
    cluster.run_for(10s);
    const bool exact = strategy == Strategy::remote;
    expect_windows(cluster, 10s, exact ? 995 : 960, exact ? 1'005 : 1'040);
    expect_windows(cluster, 1s, exact ? 990 : 750, exact ? 1'010 : 1'250);
    expect_windows(cluster, 100ms, exact ? 950 : 0, exact ? 1'050 : 3'500);
    EXPECT_GE(cluster.jain(before), 980U);
    EXPECT_EQ(cluster.in(LeaseState::leased), kHosts);
  });
}

TEST(LeaseStrategy, TheTotalIsTheRateAlsoWhereFourTimesThatIsOffered) {
  with_each([](Strategy strategy, std::uint64_t seed) {
    Cluster cluster(kHosts, tenant(strategy), seed);
    cluster.offer(4'000);
    cluster.run_for(13s);
    EXPECT_LE(last(cluster, 10s), 1'050U) << "no debt is forgiven";
    EXPECT_GE(last(cluster, 10s), 950U);
  });
}

TEST(LeaseStrategy, BelowTheRateNobodyWaitsForOthers) {
  with_each([](Strategy strategy, std::uint64_t seed) {
    Cluster cluster(kHosts, tenant(strategy), seed);
    cluster.offer(500);
    cluster.run_for(1s);
    for (auto& host : cluster.hosts()) host->delays.clear();
    cluster.run_for(2s);
    EXPECT_GE(last(cluster, 2s), 470U);
    for (auto& host : cluster.hosts()) {
      std::sort(host->delays.begin(), host->delays.end());
      const Nanos p99 = host->delays[host->delays.size() * 99 / 100];
      EXPECT_LE(p99, strategy == Strategy::remote ? 4ms : 0ms) << "host " << host->number;
      EXPECT_TRUE(strategy != Strategy::remote || host->delays[host->delays.size() / 2] > 100us) << "it has asked";
    }
  });
}

TEST(LeaseStrategy, AnIdleHostAsksNothing) {
  with_each([](Strategy strategy, std::uint64_t seed) {
    Cluster cluster(3, tenant(strategy), seed);
    cluster.offer(500);
    cluster.run_for(1s);
    cluster.offer(0);
    cluster.run_for(1s);
    const std::uint64_t calls = cluster.redis.calls;
    cluster.run_for(5s);
    EXPECT_EQ(cluster.redis.calls, calls);
    EXPECT_EQ(cluster.in(LeaseState::cold), 3U);
  });
}

TEST(LeaseStrategy, RedisStandsStillForASecond) {
  with_each([](Strategy strategy, std::uint64_t seed) {
    Cluster cluster(kHosts, tenant(strategy), seed);
    cluster.offer(kTwice);
    cluster.run_for(3s);
    cluster.stop();
    cluster.run_for(1s);
    EXPECT_EQ(cluster.in(LeaseState::fallback), kHosts);
    EXPECT_LE(last(cluster, 1s), 1'500U);
    cluster.go_on();
    cluster.run_for(1s);
    EXPECT_EQ(cluster.in(LeaseState::leased), kHosts);
    cluster.run_for(5s);
    EXPECT_LE(last(cluster, 5s), 1'080U);
    EXPECT_GE(last(cluster, 5s), 920U);
  });
}

TEST(LeaseStrategy, WithoutRedisEachKeepsToItsRule) {
  struct Case {
    WithoutRedis rule;
    std::uint64_t least, most;
  };
  for (const Case& each : {Case{WithoutRedis::reject, 0, 0}, Case{WithoutRedis::allow, 1'900, 2'100},
                           Case{WithoutRedis::degrade, 980, 1'020}}) {
    with_each([&](Strategy strategy, std::uint64_t seed) {
      Cluster cluster(kHosts, tenant(strategy, each.rule), seed);
      cluster.offer(kTwice);
      cluster.run_for(2s);
      cluster.kill();
      cluster.run_for(300ms);
      EXPECT_EQ(cluster.in(LeaseState::fallback), kHosts);
      cluster.run_for(1s);
      EXPECT_GE(last(cluster, 1s), each.least);
      EXPECT_LE(last(cluster, 1s), each.most);
      cluster.start_empty(300ms);
      cluster.run_for(2s);
      EXPECT_EQ(cluster.in(LeaseState::leased), kHosts);
      cluster.run_for(3s);
      EXPECT_LE(last(cluster, 3s), 1'120U) << "what was sent in fallback is forgotten";
      EXPECT_GE(last(cluster, 3s), 880U);
    });
  }
}

TEST(LeaseStrategy, HalfTheHostsAreCutOff) {
  for (const bool reserve : {false, true}) {
    with_each([&](Strategy strategy, std::uint64_t seed) {
      LeasePolicy policy = tenant(strategy);
      policy.reserve = reserve;
      policy.hosts = kHosts;
      Cluster cluster(kHosts, policy, seed);
      cluster.offer(kTwice);
      cluster.run_for(2s);
      for (std::size_t n = 0; n < kHosts / 2; ++n) cluster.host(n).cut_off = true;
      cluster.run_for(6s);
      EXPECT_LE(last(cluster, 6s), reserve ? 1'060U : 1'560U);
    });
  }
}

TEST(LeaseStrategy, LostDoubledAndReorderedMessagesMakeNothing) {
  with_each([](Strategy strategy, std::uint64_t seed) {
    Cluster cluster(kHosts, tenant(strategy, WithoutRedis::reject), seed);
    cluster.network.lost = 3;
    cluster.network.doubled = 20;
    cluster.network.sometimes = 30ms;
    cluster.offer(kTwice);
    cluster.run_for(13s);
    EXPECT_LE(last(cluster, 10s), 1'040U);
    EXPECT_GE(last(cluster, 10s), 900U);
  });
}

TEST(LeaseStrategy, WithoutWordOfOthersPushIsLikePoll) {
  Cluster cluster(kHosts, tenant(Strategy::push));
  cluster.offer(kTwice);
  cluster.run_for(3s);
  EXPECT_GT(cluster.told, 1'000U);
  const std::uint64_t told = cluster.told;
  cluster.deaf = true;
  cluster.run_for(10s);
  EXPECT_EQ(cluster.told, told);
  EXPECT_LE(last(cluster, 10s), 1'040U);
  EXPECT_GE(last(cluster, 10s), 960U);
}

TEST(LeaseStrategy, TheClockOfRedisIsSet) {
  with_each([](Strategy strategy, std::uint64_t seed) {
    Cluster cluster(kHosts, tenant(strategy), seed);
    cluster.offer(kTwice);
    cluster.run_for(2s);
    for (const std::int64_t moved : {-3'600'000'000, 3'600'000'000}) {
      cluster.redis.shift_clock(moved);
      cluster.run_for(3s);
      EXPECT_LE(last(cluster, 3s), 1'120U);
      EXPECT_GE(last(cluster, 3s), 880U);
      for (auto& host : cluster.hosts()) EXPECT_GT(host->lease.counters().clock_jumps, 0U);
    }
  });
}

TEST(LeaseStrategy, AnotherOneTakesOverWhilePacketsFlow) {
  Cluster cluster(kHosts, tenant(Strategy::grants));
  cluster.offer(kTwice);
  cluster.run_for(3s);
  for (const Strategy strategy : {Strategy::poll, Strategy::grants, Strategy::push, Strategy::remote, Strategy::poll}) {
    SCOPED_TRACE(strategy_name(strategy));
    for (auto& host : cluster.hosts()) {
      host->lease.change(tenant(strategy));
      cluster.run_for(20ms);
    }
    cluster.run_for(5s);
    EXPECT_LE(last(cluster, 5s), 1'080U);
    EXPECT_GE(last(cluster, 5s), 920U);
  }
}

TEST(LeaseStrategy, SlowRatesAndLeakyOnes) {
  with_each([](Strategy strategy, std::uint64_t seed) {
    LeasePolicy policy = tenant(strategy);
    policy.discipline = Discipline::leaky;
    policy.rate = 1_mbit;
    policy.burst = {12'500};
    Cluster cluster(kHosts, policy, seed);
    cluster.offer(kTwice);
    cluster.run_for(15s);
    EXPECT_LE(last(cluster, 10s), 1'050U);
    EXPECT_GE(last(cluster, 10s), 930U);
    for (auto& host : cluster.hosts()) EXPECT_GT(host->sent, 25'000U) << "a host stands";
  });
}

}  // namespace
}  // namespace shaper::sim
