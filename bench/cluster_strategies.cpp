// The strategies of limits over many hosts side by side: 20 virtual hosts in this process, each with a core, a lease
// and connections of its own, on the real script in a real Redis, in real time. Prints tables; see bench/cluster.
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "bench/cluster_group.h"
#include "shaper/model/plain_text.h"
#include "tests/redis_server.h"

namespace shaper::bench {
namespace {

constexpr std::uint32_t kHosts = 20;
constexpr std::uint64_t kTwice = 2'000;  // thousandths of the rate that are offered
constexpr std::array kStrategies{Strategy::grants, Strategy::remote, Strategy::poll, Strategy::push};

LeasePolicy tenant(Strategy strategy, WithoutRedis rule = WithoutRedis::degrade) {
  LeasePolicy policy;
  policy.bucket = "tenant";
  policy.rate = 200_mbit;
  policy.burst = bytes_in(policy.rate, 100ms);
  policy.strategy = strategy;
  policy.without_redis = rule;
  return policy;
}

/// Hosts that offer twice the rate since three seconds, on an empty server.
class BusyGroup : public Group {
 public:
  BusyGroup(const test::RedisServer& server, const LeasePolicy& limit) : Group{emptied(server), kHosts, limit} {
    offer(kTwice);
    run_for(3s);
  }

 private:
  static std::string emptied(const test::RedisServer& server) {
    test::RedisClient{server.socket()}({"FLUSHALL"});
    return server.socket();
  }
};

/// Of the rate, in the last `time`.
std::string carried(const Group& group, Nanos time) {
  const std::uint64_t permille = group.sent.permille(group.policy.rate, group.now() - time, group.now());
  return fmt::format("{:.2f} R", static_cast<double>(permille) / 1'000);
}

std::string deviation(const Group& group, Nanos length, Nanos time) {
  const auto seen = group.sent.windows(group.policy.rate, length, group.now() - time, group.now());
  const auto percent = [](std::uint64_t permille) { return (static_cast<double>(permille) - 1'000) / 10; };
  return fmt::format("{:+.1f}..{:+.1f} %", percent(seen.least), percent(seen.most));
}

struct Messages {
  std::uint64_t asks = 0;
  std::uint64_t told = 0;
};
Messages messages_of(Group& group) {
  Messages sum;
  for (auto& host : group.hosts()) {
    sum.asks += host->lease.counters().asks;
    sum.told += host->lease.counters().told;
  }
  return sum;
}

/// What half of the packets wait while half of the rate is offered.
double typical_wait_ms(Group& group) {
  group.offer(500);
  group.run_for(1s);
  for (auto& host : group.hosts()) host->delays.clear();
  group.run_for(1s);
  std::vector<Nanos> all;
  for (auto& host : group.hosts()) all.insert(all.end(), host->delays.begin(), host->delays.end());
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  return static_cast<double>(middle->count()) / 1e6;
}

void steady(const test::RedisServer& server, Nanos time) {
  constexpr const char* kLine = "{:<8} {:<20} {:<18} {:<16} {:>18} {:>18} {:>22}\n";
  fmt::print("{} hosts, 2 R offered, {} s\n", kHosts, time / 1s);
  fmt::print(kLine, "strategy", "100 ms", "1 s", "all", "calls/s of a host", "told/s of a host", "wait, 0.5 R offered");
  for (const Strategy strategy : kStrategies) {
    BusyGroup group(server, tenant(strategy));
    const Messages before = messages_of(group);
    group.run_for(time);
    const Messages then = messages_of(group);
    const auto each_second = [&](std::uint64_t count) {
      return count / kHosts / static_cast<std::uint64_t>(time / 1s);
    };
    const std::array windows{deviation(group, 100ms, time), deviation(group, 1s, time), deviation(group, time, time)};
    fmt::print(kLine, strategy_name(strategy), windows[0], windows[1], windows[2], each_second(then.asks - before.asks),
               each_second(then.told - before.told), fmt::format("{:.2f} ms", typical_wait_ms(group)));
    std::fflush(stdout);
  }
}

std::string stands_still(test::RedisServer& server, const LeasePolicy& limit) {
  BusyGroup group(server, limit);
  server.stand_still();
  group.run_for(1s);
  const std::string during = carried(group, 1s);
  server.go_on();
  group.run_for(1s);
  return during + ", then " + carried(group, 1s);
}

std::string restarts(test::RedisServer& server, const LeasePolicy& limit) {
  BusyGroup group(server, limit);
  server.end();
  group.run_for(200ms);
  server.start();
  group.run_for(800ms);
  return carried(group, 1s);
}

std::string is_gone(test::RedisServer& server, const LeasePolicy& limit, Nanos time) {
  BusyGroup group(server, limit);
  server.end();
  group.run_for(time);
  server.start();
  return carried(group, time);
}

std::string half_cut_off(const test::RedisServer& server, LeasePolicy limit, bool reserve, Nanos time) {
  limit.reserve = reserve;
  BusyGroup group(server, limit);
  for (std::size_t n = 0; n < kHosts / 2; ++n) group.host(n).cut_off = true;
  group.run_for(time);
  return carried(group, time);
}

void faults(test::RedisServer& server, Nanos time) {
  constexpr const char* kLine = "{:<8} {:<8} {:<24} {:<28} {:<14} {:<20} {:<12}\n";
  fmt::print("\nthe same, what is carried meanwhile\n");
  fmt::print(kLine, "strategy", "rule", "Redis stands still, 1 s", "restart, empty, after 0.2 s", "gone",
             "half of them cut off", "with reserve");
  for (const Strategy strategy : kStrategies) {
    for (const auto& [name, rule] : {std::pair{"degrade", WithoutRedis::degrade},
                                     {"reject", WithoutRedis::reject},
                                     {"allow", WithoutRedis::allow}}) {
      const LeasePolicy limit = tenant(strategy, rule);
      const std::string stall = stands_still(server, limit);
      const std::string restart = restarts(server, limit);
      const std::string gone = is_gone(server, limit, time);
      const std::string cut = half_cut_off(server, limit, false, time);
      const bool reserves = rule == WithoutRedis::degrade;
      fmt::print(kLine, strategy_name(strategy), name, stall, restart, gone, cut,
                 reserves ? half_cut_off(server, limit, true, time) : "");
      std::fflush(stdout);
    }
  }
}

}  // namespace
}  // namespace shaper::bench

/// Takes the seconds that are measured, 10 by default.
int main(int argc, char** argv) {
  using namespace shaper;
  const auto seconds = argc < 2 ? 10 : parse_number<int>(argv[1]).value_or(0);
  if (seconds < 1 || argc > 2) {
    fmt::print(stderr, "usage: bench/cluster strategies [SECONDS]\n");
    return 2;
  }
  test::RedisServer server;
  bench::steady(server, std::chrono::seconds{seconds});
  bench::faults(server, std::chrono::seconds{seconds});
  return 0;
}
