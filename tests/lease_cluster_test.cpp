// Hosts that share a limit, with a real core each, over a bad network and with Redis that stands still, goes and comes
// back: the total stays what the limit says.
#include <gtest/gtest.h>

#include "tests/sim_cluster.h"

namespace shaper::sim {
namespace {

constexpr std::uint32_t kHosts = 20;
constexpr std::uint64_t kColdBytes = 2 * 1'514;

LeasePolicy tenant(DataRate rate = 200_mbit) {
  LeasePolicy policy;
  policy.bucket = "tenant";
  policy.rate = rate;
  policy.burst = bytes_in(rate, 100ms);
  return policy;
}

LeasePolicy without_redis(WithoutRedis rule) {
  LeasePolicy policy = tenant(60_mbit);
  policy.without_redis = rule;
  return policy;
}

/// No window of time sees more than R x w + B + R x T + what is given to first packets, and a frame of each host that
/// passed on a smaller grant.
void expect_cap(const Cluster& cluster, std::size_t hosts) {
  const ByteCount most = cluster.policy.burst + bytes_in(cluster.policy.rate, 40ms + Sent::kBin);
  EXPECT_LE(cluster.sent.beyond(cluster.policy.rate), most.value + hosts * (kColdBytes + 1'514));
}

void expect_windows(const Cluster& cluster, Nanos length, Nanos time, std::uint64_t least, std::uint64_t most) {
  const auto seen = cluster.sent.windows(cluster.policy.rate, length, cluster.now() - time, cluster.now());
  EXPECT_GE(seen.least, least) << "thousandths of the rate in windows of " << length.count() << " ns";
  EXPECT_LE(seen.most, most) << "thousandths of the rate in windows of " << length.count() << " ns";
}

std::uint64_t last(const Cluster& cluster, Nanos time) {
  return cluster.sent.permille(cluster.policy.rate, cluster.now() - time, cluster.now());
}

TEST(LeaseCluster, SteadyAtTwiceTheRate) {
  for (const std::uint64_t seed : seeds(2)) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Cluster cluster(kHosts, tenant(), seed);
    cluster.offer(2'000);
    cluster.run_for(2s);
    const std::vector<std::uint64_t> before = cluster.sent_by_host();
    const std::uint64_t calls = cluster.redis.calls;
    cluster.run_for(11s);
    expect_windows(cluster, 10s, 11s, 990, 1'010);
    expect_windows(cluster, 1s, 11s, 970, 1'030);
    expect_windows(cluster, 100ms, 11s, 850, 1'150);
    EXPECT_GE(cluster.jain(before), 990U);
    EXPECT_LE((cluster.redis.calls - calls) / 11 / kHosts, 75U) << "calls a second and host";
    for (const auto& host : cluster.hosts()) {
      EXPECT_GE((host->sent - before[host->number]) * kHosts * 10, 9 * bytes_in(cluster.policy.rate, 11s).value);
      EXPECT_EQ(host->lease.state(), LeaseState::leased);
    }
    expect_cap(cluster, kHosts);
  }
}

TEST(LeaseCluster, FewHostsAndMany) {
  for (const std::uint32_t hosts : {1U, 2U, 50U}) {
    SCOPED_TRACE(std::to_string(hosts) + " hosts");
    Cluster cluster(hosts, tenant(100_mbit));
    cluster.offer(2'000);
    cluster.run_for(5s);
    expect_windows(cluster, 1s, 4s, 970, 1'030);
    expect_cap(cluster, hosts);
  }
}

TEST(LeaseCluster, BelowTheRateEverythingPassesSoonAndCostsFewCalls) {
  Cluster cluster(kHosts, tenant());
  cluster.offer(600);
  cluster.run_for(2s);
  const std::uint64_t calls = cluster.redis.calls;
  cluster.run_for(4s);
  expect_windows(cluster, 1s, 4s, 570, 630);
  EXPECT_LE((cluster.redis.calls - calls) / 4 / kHosts, 40U);
}

TEST(LeaseCluster, AllDemandJumpsToOtherHosts) {
  for (const std::uint64_t seed : seeds(3)) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Cluster cluster(kHosts, tenant(), seed);
    const DataRate each{cluster.policy.rate.bits_per_second * 3 / 2 / (kHosts / 2)};
    for (std::size_t n = 0; n < kHosts / 2; ++n) cluster.host(n).offer(each);
    cluster.run_for(3s);
    for (std::size_t n = 0; n < kHosts; ++n) cluster.host(n).offer(n < kHosts / 2 ? DataRate{} : each);
    const Instant jump = cluster.now();
    cluster.run_for(3s);
    const auto settled = cluster.sent.windows(cluster.policy.rate, 50ms, jump + 200ms, jump + 700ms);
    EXPECT_GE(settled.least, 940U);
    EXPECT_LE(settled.most, 1'060U);
    expect_windows(cluster, 1s, 4s, 960, 1'040);
    expect_cap(cluster, kHosts);
  }
}

TEST(LeaseCluster, OneBusyHostGetsNearlyAll) {
  Cluster cluster(kHosts, tenant());
  for (auto& host : cluster.hosts()) host->offer({cluster.policy.rate.bits_per_second / 1'000});
  cluster.host(0).offer({2 * cluster.policy.rate.bits_per_second});
  cluster.run_for(2s);
  const std::uint64_t before = cluster.host(0).sent;
  cluster.run_for(4s);
  EXPECT_GE((cluster.host(0).sent - before) * 1'000 / bytes_in(cluster.policy.rate, 4s).value, 970U);
}

TEST(LeaseCluster, BurstyHostsUseTheRate) {
  // 100 ms on, 400 ms off at random, 1.2 R in the mean: one ideal bucket carries 97 %.
  Cluster cluster(kHosts, tenant());
  const DataRate burst{cluster.policy.rate.bits_per_second * 6 / kHosts};
  for (auto& owner : cluster.hosts()) {
    Host* const host = owner.get();
    auto turn = std::make_shared<std::function<void(bool)>>();
    *turn = [&cluster, host, burst, turn = turn.get()](bool on) {
      host->offer(on ? burst : DataRate{});
      const Nanos stay = host->random.exponential(on ? 100ms : 400ms);
      cluster.timeline.at(cluster.now() + stay, [turn, on] { (*turn)(!on); });
    };
    cluster.keep(turn);
    (*turn)(host->random.chance(20));
  }
  cluster.run_for(12s);
  EXPECT_GE(last(cluster, 10s), 900U);
  expect_cap(cluster, kHosts);
}

TEST(LeaseCluster, SmallHostsBesideAHogDoNotWait) {
  Cluster cluster(kHosts, tenant());
  const std::uint64_t rate = cluster.policy.rate.bits_per_second;
  for (auto& host : cluster.hosts()) host->offer({rate * 4 / 100});
  cluster.host(0).offer({rate * 10});
  cluster.run_for(2s);
  for (auto& host : cluster.hosts()) host->delays.clear();
  cluster.run_for(3s);
  EXPECT_GE(last(cluster, 3s), 990U);
  std::vector<Nanos> delays;
  for (std::size_t n = 1; n < kHosts; ++n) {
    delays.insert(delays.end(), cluster.host(n).delays.begin(), cluster.host(n).delays.end());
  }
  std::sort(delays.begin(), delays.end());
  EXPECT_LT(delays[delays.size() * 99 / 100], 5ms);
}

// --- Without Redis ---------------------------------------------------------------------------------------------------

struct Away {
  WithoutRedis rule;
  std::uint64_t least, most;  // thousandths of the rate, of 2,000 that are offered
};

TEST(LeaseCluster, RedisIsKilledAndComesBackEmpty) {
  for (const Away& away : {Away{WithoutRedis::reject, 0, 0}, Away{WithoutRedis::degrade, 980, 1'010},
                           Away{WithoutRedis::allow, 1'950, 2'050}}) {
    SCOPED_TRACE(std::to_string(static_cast<int>(away.rule)));
    Cluster cluster(kHosts, without_redis(away.rule));
    cluster.offer(2'000);
    cluster.run_for(3s);
    cluster.kill();
    cluster.run_for(50ms);
    EXPECT_EQ(cluster.in(LeaseState::fallback), kHosts) << "50 ms after the kill";
    cluster.run_for(1'950ms);
    EXPECT_GE(last(cluster, 1s), away.least);
    EXPECT_LE(last(cluster, 1s), away.most);
    cluster.start_empty(200ms);
    cluster.run_for(200ms + 200ms);
    EXPECT_EQ(cluster.in(LeaseState::leased), kHosts) << "200 ms after the last connection";
    cluster.run_for(10s);
    expect_windows(cluster, 10s, 10s, 990, 1'010);
    expect_windows(cluster, 1s, 10s + 100ms, 0, 1'100);
    for (const auto& host : cluster.hosts()) {
      const LeaseCounters& counters = host->lease.counters();
      EXPECT_GE(counters.fallback, 1'900ms);
      EXPECT_LE(counters.fallback, 2'500ms);
      EXPECT_EQ(counters.unmetered.value > 0, away.rule == WithoutRedis::allow);
      EXPECT_EQ(host->refused > 0, away.rule == WithoutRedis::reject);
    }
  }
}

TEST(LeaseCluster, RedisStandsStillForASecond) {
  Cluster cluster(kHosts, tenant());
  cluster.offer(2'000);
  cluster.run_for(3s);
  const Instant stop = cluster.now();
  cluster.stop();
  cluster.run_for(150ms);
  EXPECT_EQ(cluster.in(LeaseState::fallback), kHosts);
  cluster.run_for(850ms);
  const std::uint64_t carried = last(cluster, 1s);
  EXPECT_GE(carried, 920U);
  EXPECT_LE(carried, 1'020U);
  cluster.go_on();
  cluster.run_for(1s);
  EXPECT_LE(last(cluster, 1s), 1'050U);
  EXPECT_EQ(cluster.in(LeaseState::leased), kHosts);
  for (const auto& host : cluster.hosts()) EXPECT_LE(host->changed, stop + 1s + 200ms);
}

TEST(LeaseCluster, HalfTheHostsAreCutOff) {
  struct Case {
    WithoutRedis rule;
    bool reserve;
    std::uint64_t least, most;
  };
  for (const Case& test :
       {Case{WithoutRedis::reject, false, 980, 1'010}, Case{WithoutRedis::degrade, false, 1'450, 1'520},
        Case{WithoutRedis::degrade, true, 950, 1'010}}) {
    SCOPED_TRACE(std::to_string(static_cast<int>(test.rule)) + (test.reserve ? " with reserve" : ""));
    LeasePolicy policy = without_redis(test.rule);
    policy.reserve = test.reserve;
    Cluster cluster(kHosts, policy);
    cluster.offer(2'000);
    cluster.run_for(3s);
    for (std::size_t n = 0; n < kHosts / 2; ++n) cluster.host(n).cut_off = true;
    cluster.run_for(10s);
    EXPECT_EQ(cluster.in(LeaseState::fallback), kHosts / 2);
    EXPECT_GE(last(cluster, 10s), test.least);
    EXPECT_LE(last(cluster, 10s), test.most);
    for (std::size_t n = 0; n < kHosts / 2; ++n) cluster.host(n).cut_off = false;
    cluster.run_for(3s);
    EXPECT_EQ(cluster.in(LeaseState::leased), kHosts);
    expect_windows(cluster, 1s, 1s, 970, 1'030);
  }
}

TEST(LeaseCluster, NoShareOfTheRateIsTheWholeRate) {
  // Without any answer nobody knows how many there are.
  Cluster cluster(kHosts, tenant());
  cluster.kill();
  cluster.offer(2'000);
  cluster.run_for(3s);
  EXPECT_LE(last(cluster, 1s), 1'300U);
  Cluster known(kHosts, [] {
    LeasePolicy policy = tenant();
    policy.hosts = kHosts;
    return policy;
  }());
  known.kill();
  known.offer(2'000);
  known.run_for(3s);
  EXPECT_LE(last(known, 1s), 1'010U);
  EXPECT_GE(last(known, 1s), 970U);
}

// --- A bad network ---------------------------------------------------------------------------------------------------

TEST(LeaseCluster, LostDoubledAndReorderedAnswersMintNothing) {
  for (const std::uint64_t seed : seeds(3)) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Cluster cluster(kHosts, without_redis(WithoutRedis::reject), seed);
    cluster.network = {.lost = 3, .doubled = 20, .sometimes = 60ms};
    cluster.offer(2'000);
    cluster.run_for(13s);
    expect_windows(cluster, 10s, 11s, 0, 1'005);
    expect_cap(cluster, kHosts);
    std::uint64_t sent = 0, granted = 0, returned = 0;
    for (const auto& host : cluster.hosts()) {
      const LeaseCounters& counters = host->lease.counters();
      sent += host->sent;
      granted += counters.granted.value;
      returned += counters.returned.value;
      EXPECT_LE(counters.granted.value, cluster.redis.granted);
    }
    EXPECT_LE(granted, cluster.redis.granted) << "an answer counts once";
    EXPECT_LE(sent + returned, granted + kHosts * (kColdBytes + 1'514)) << "only what was paid for";
  }
}

TEST(LeaseCluster, TheTotalHoldsThoughAnswersAreLost) {
  Cluster cluster(kHosts, tenant());
  cluster.network = {.lost = 1, .doubled = 20, .sometimes = 20ms};
  cluster.offer(2'000);
  cluster.run_for(13s);
  expect_windows(cluster, 10s, 11s, 980, 1'020);
}

TEST(LeaseCluster, ALongRoundTripIsNoOutage) {
  for (const Nanos way : {Nanos{5ms}, Nanos{40ms}, Nanos{100ms}}) {
    SCOPED_TRACE(std::to_string(way.count()) + " ns each way");
    LeasePolicy policy = tenant(50_mbit);
    policy.burst = bytes_in(policy.rate, 500ms);  // two periods at least: a bucket that is full earns nothing
    Cluster cluster(4, policy);
    cluster.network.least_delay = way;
    cluster.offer(2'000);
    cluster.run_for(10s);
    EXPECT_EQ(cluster.in(LeaseState::leased), 4U);
    std::uint64_t transitions = 0;
    for (auto& host : cluster.hosts()) transitions += host->lease.counters().out_of_fallback;
    cluster.run_for(10s);
    for (auto& host : cluster.hosts()) transitions -= host->lease.counters().out_of_fallback;
    EXPECT_EQ(transitions, 0U) << "nobody falls back once the round trip is known";
    EXPECT_GE(last(cluster, 10s), 970U);
    EXPECT_LE(last(cluster, 10s), 1'010U);
  }
}

TEST(LeaseCluster, TheClockOfRedisIsSet) {
  for (const std::int64_t hour : {3'600'000'000, -3'600'000'000}) {
    Cluster cluster(kHosts, tenant());
    cluster.offer(2'000);
    cluster.run_for(3s);
    cluster.redis.shift_clock(hour);
    cluster.run_for(3s);
    for (const auto& host : cluster.hosts()) {
      EXPECT_EQ(host->lease.counters().clock_jumps, 1U);
      EXPECT_EQ(host->lease.state(), LeaseState::leased);
    }
    EXPECT_LE(last(cluster, 3s), 1'000U + 34) << "at most a burst";
    expect_windows(cluster, 100ms, 2'900ms, 800, 2'000);
  }
}

TEST(LeaseCluster, SlowRatesAndLargePackets) {
  struct Case {
    DataRate rate;
    std::uint32_t ip_bytes;
    Nanos time;
  };
  for (const Case& test : {Case{8_kbit, 500, 300s}, Case{1_mbit, 1'500, 20s}, Case{20_mbit, 60'000, 20s}}) {
    SCOPED_TRACE(std::to_string(test.rate.bits_per_second) + " bit/s");
    LeasePolicy policy = tenant(test.rate);
    policy.burst = std::max(policy.burst, ByteCount{3'000});
    Cluster cluster(4, policy);
    for (auto& host : cluster.hosts()) host->offer({test.rate.bits_per_second / 2}, test.ip_bytes);
    cluster.run_for(test.time + 5s);
    const std::uint64_t bytes = cluster.sent.between(cluster.now() - test.time, cluster.now());
    const std::uint64_t paid = bytes_in(test.rate, test.time).value;
    const std::uint64_t packets = 4 * (test.ip_bytes + 14ULL);
    EXPECT_LE(bytes, paid * 102 / 100 + packets);
    EXPECT_GE(bytes + packets, paid * 98 / 100);
    for (auto& host : cluster.hosts()) EXPECT_GT(host->sent, 0U);
  }
}

TEST(LeaseCluster, AnIdleHostAsksNothing) {
  Cluster cluster(3, tenant());
  cluster.offer(2'000);
  cluster.run_for(1s);
  for (auto& host : cluster.hosts()) host->offer({});
  cluster.run_for(1s);
  EXPECT_EQ(cluster.in(LeaseState::cold), 3U);
  const std::uint64_t calls = cluster.redis.calls;
  cluster.run_for(60s);
  EXPECT_EQ(cluster.redis.calls, calls);
}

TEST(LeaseCluster, ObserveHoldsNothingUp) {
  LeasePolicy policy = tenant();
  policy.observe = true;
  Cluster cluster(4, policy);
  cluster.offer(2'000);
  cluster.run_for(5s);
  EXPECT_GE(last(cluster, 2s), 1'950U);
  for (auto& host : cluster.hosts()) {
    EXPECT_GT(host->lease.counters().granted.value, host->sent * 4 / 10);
    EXPECT_GT(host->lease.counters().unmetered.value, host->sent * 4 / 10);
  }
}

}  // namespace
}  // namespace shaper::sim
