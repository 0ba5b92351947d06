// One limit over many hosts, measured: virtual hosts in this process, each with a core, a lease and a connection of its
// own, on the real script in a real Redis, in real time. Prints a table; see bench/cluster.
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/cluster_group.h"
#include "shaper/cluster/grants_script.h"
#include "shaper/cluster/lease_script.h"
#include "tests/redis_server.h"

namespace shaper::bench {
namespace {

using test::RedisClient;
using test::RedisServer;

constexpr std::uint32_t kHosts = 20;
constexpr std::uint64_t kWelcomeBytes = 2 * 1'514;  // what a host gets for its first packets
constexpr Nanos kInterval = 40ms;
constexpr std::uint64_t kTwice = 2'000;  // thousandths of the rate that are offered

LeasePolicy tenant(DataRate rate = 200_mbit, WithoutRedis without_redis = WithoutRedis::degrade) {
  LeasePolicy policy;
  policy.bucket = "tenant";
  policy.rate = rate;
  policy.burst = bytes_in(rate, 100ms);
  policy.without_redis = without_redis;
  return policy;
}

double ms(Nanos time) {
  return static_cast<double>(time.count()) / 1e6;
}

/// Above or below the rate, in percent.
double error_of(std::uint64_t permille) {
  return (static_cast<double>(permille) - 1'000) / 10;
}

Nanos percentile(std::vector<Nanos> times, std::size_t percent) {
  if (times.empty()) return Nanos{0};
  const auto nth = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) * percent / 100);
  std::nth_element(times.begin(), nth, times.end());
  return *nth;
}

constexpr const char* kLine = "{:>3}  {:<42} {:<62} {:<36} {}\n";

// --- The table -------------------------------------------------------------------------------------------------------

class Table {
 public:
  explicit Table(std::vector<std::string> only) : only_{std::move(only)} {
    fmt::print(kLine, "row", "check", "seen", "bar", "");
  }
  /// The rows that follow; false: they are not wanted.
  bool begins(std::string row) {
    row_ = std::move(row);
    return only_.empty() || std::find(only_.begin(), only_.end(), row_) != only_.end();
  }
  void line(std::string_view check, std::string_view seen, std::string_view bar, bool good) {
    fmt::print(kLine, row_, check, seen, bar, bar.empty() ? "" : good ? "ok" : "MISSED");
    std::fflush(stdout);
    missed_ += good ? 0 : 1;
  }
  [[nodiscard]] int missed() const { return missed_; }

 private:
  std::vector<std::string> only_;
  std::string row_;
  int missed_ = 0;
};

// --- The server ------------------------------------------------------------------------------------------------------

class Server : public RedisServer {
 public:
  using RedisServer::RedisServer;

  test::RedisReply operator()(const std::vector<std::string>& words) { return RedisClient{socket()}(words); }
  void empty() { (*this)({"FLUSHALL"}); }

  struct Cost {
    std::uint64_t calls = 0;
    std::uint64_t script_us = 0;   // in the script
    std::uint64_t process_us = 0;  // of CPU, the whole process
  };
  Cost cost() {
    Cost cost;
    const std::string commands = (*this)({"INFO", "commandstats"}).text;
    cost.calls = number_behind(commands, "cmdstat_evalsha:calls=");
    cost.script_us = commands.find("cmdstat_evalsha:") == std::string::npos
                         ? 0
                         : number_behind(commands.substr(commands.find("cmdstat_evalsha:")), ",usec=");
    const std::string cpu = (*this)({"INFO", "cpu"}).text;
    for (const std::string part : {"used_cpu_user:", "used_cpu_sys:"}) {
      const std::size_t at = cpu.find(part);
      if (at != std::string::npos)
        cost.process_us += static_cast<std::uint64_t>(1e6 * std::stod(cpu.substr(at + part.size())));
    }
    return cost;
  }

 private:
  static std::uint64_t number_behind(const std::string& text, const std::string& name) {
    const std::size_t at = text.find(name);
    return at == std::string::npos ? 0 : std::stoull(text.substr(at + name.size()));
  }
};

// --- What is looked for ----------------------------------------------------------------------------------------------

/// The largest deviation of windows of this length within the last `time`, in percent.
struct Deviation {
  double least, most;
  [[nodiscard]] double largest() const { return std::max(-least, most); }
};
Deviation deviation(Group& group, Nanos length, Nanos time) {
  const auto seen = group.sent.windows(group.policy.rate, length, group.now() - time, group.now());
  return {error_of(seen.least), error_of(seen.most)};
}

double percent_of_rate(Group& group, Nanos time) {
  return static_cast<double>(group.sent.between(group.now() - time, group.now())) * 100 /
         static_cast<double>(bytes_in(group.policy.rate, time).value);
}

std::uint64_t times_out_of_fallback(Group& group) {
  std::uint64_t times = 0;
  for (auto& host : group.hosts()) times += host->lease.counters().out_of_fallback;
  return times;
}

/// No window of any length w has more than R w + B + R T + what is given for first packets (and Sent's bin), and a
/// frame of each host that passed on a smaller grant.
void cap(Group& group, Table& table, std::string_view when) {
  const ByteCount most = group.policy.burst + bytes_in(group.policy.rate, kInterval + Sent::kBin);
  const std::uint64_t allowed = most.value + group.hosts().size() * (kWelcomeBytes + 1'514);
  const std::uint64_t seen = group.sent.beyond(group.policy.rate);
  table.line(fmt::format("most above R w, {}", when), fmt::format("{} bytes", seen),
             fmt::format("<= {} bytes", allowed), seen <= allowed);
}

/// How long until the total is within 6 % in all windows of 50 ms for half a second.
std::optional<Nanos> settled_after(Group& group, Instant jump) {
  for (Instant begin = jump; begin + 500ms <= group.now(); begin += Sent::kBin) {
    const auto seen = group.sent.windows(group.policy.rate, 50ms, begin, begin + 500ms);
    if (seen.least >= 940 && seen.most <= 1'060) return begin - jump;
  }
  return std::nullopt;
}

// --- Rows ------------------------------------------------------------------------------------------------------------

void steady(Server& server, Table& table) {
  Group group(server.socket(), kHosts, tenant());
  group.offer(kTwice);
  group.run_for(2s);
  const std::vector<std::uint64_t> before = group.sent_by_host();
  const Server::Cost cost = server.cost();
  server({"SLOWLOG", "RESET"});
  group.run_for(11s);
  const Server::Cost then = server.cost();
  const std::uint64_t slow = static_cast<std::uint64_t>(server({"SLOWLOG", "LEN"}).number);

  if (table.begins("1")) {
    for (const auto& [length, most] : {std::pair{Nanos{10s}, 1.0}, {Nanos{1s}, 3.0}, {Nanos{100ms}, 15.0}}) {
      const Deviation seen = deviation(group, length, 11s);
      table.line(fmt::format("steady, 2 R offered, windows of {:g} s", ms(length) / 1000),
                 fmt::format("{:+.2f} .. {:+.2f} %", seen.least, seen.most), fmt::format("within {:g} %", most),
                 seen.largest() <= most);
    }
  }
  if (table.begins("2")) cap(group, table, "steady");
  if (table.begins("5")) {
    std::uint64_t least = ~std::uint64_t{0};
    for (auto& host : group.hosts()) least = std::min(least, host->sent - before[host->number]);
    const double part =
        static_cast<double>(least) * kHosts / static_cast<double>(bytes_in(group.policy.rate, 11s).value);
    const double jain = static_cast<double>(group.jain(before)) / 1000;
    table.line("fairness, equal demand", fmt::format("Jain {:.3f}, the least has {:.3f} R/N", jain, part),
               "Jain >= 0.99, >= 0.9 R/N", jain >= 0.99 && part >= 0.9);
  }
  if (table.begins("7")) {
    const auto calls = static_cast<double>(then.calls - cost.calls);
    table.line("contended: calls/s of a host", fmt::format("{:.1f}", calls / 11 / kHosts), "<= 75",
               calls / 11 / kHosts <= 75);
    const double script = static_cast<double>(then.script_us - cost.script_us) / calls;
    // Between two calls such a server sleeps, and its caches grow cold: no bar, for that depends on the machine.
    table.line("contended: time in the script, a call",
               fmt::format("{:.1f} us (server's CPU with the socket: {:.1f} us)", script,
                           static_cast<double>(then.process_us - cost.process_us) / calls),
               "", true);
    table.line("calls that took more than 1 ms", fmt::format("{} of {:.0f}", slow, calls), "none", slow == 0);
  }
}

/// What an update needs where the server has more to do than to wake up: calls of hosts that share so many limits.
void many_limits(Server& server, Table& table) {
  if (!table.begins("7")) return;
  constexpr std::uint64_t kRounds = 100;
  server.empty();
  std::vector<LeaseAsk> asks(kMostBucketsInCall);
  for (std::size_t i = 0; i < asks.size(); ++i) {
    asks[i].bucket = fmt::format("tenant-{}", i);
    asks[i].rate = 200_mbit;
    asks[i].burst = bytes_in(asks[i].rate, 100ms);
    asks[i].interval = kInterval;
    asks[i].lease = 3 * kInterval;
    asks[i].want = {2 * asks[i].rate.bits_per_second / kHosts};
    asks[i].need = bytes_in(asks[i].want, kInterval);
  }
  RedisClient redis{server.socket()};
  redis({"SCRIPT", "LOAD", std::string(kGrantsScript)});
  const Server::Cost before = server.cost();
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    for (LeaseAsk& ask : asks) ask.sequence = round;
    for (std::uint32_t n = 0; n < kHosts; ++n) {
      const LeaseCall call = lease_call({fmt::format("host-{}", n), 1}, asks);
      std::vector<std::string> words{"EVALSHA", std::string(kGrantsScriptSha1), std::to_string(call.keys.size())};
      words.insert(words.end(), call.keys.begin(), call.keys.end());
      words.insert(words.end(), call.arguments.begin(), call.arguments.end());
      redis(words);
    }
  }
  const Server::Cost after = server.cost();
  const std::uint64_t updates = kRounds * kHosts * asks.size();
  const double each = static_cast<double>(after.script_us - before.script_us) / static_cast<double>(updates);
  table.line(fmt::format("an update in a call about {} limits", asks.size()),
             fmt::format("{:.1f} us of the script, {} updates", each, updates), "<= 15 us",
             each <= 15 && after.calls - before.calls == kRounds * kHosts);
}

void below_the_rate(Server& server, Table& table) {
  if (!table.begins("7")) return;
  server.empty();
  Group group(server.socket(), kHosts, tenant());
  group.offer(600);
  group.run_for(2s);
  std::uint64_t before = server.cost().calls;
  group.run_for(4s);
  const double calls = static_cast<double>(server.cost().calls - before) / 4 / kHosts;
  table.line("0.6 R offered: calls/s of a host", fmt::format("{:.1f}", calls), "<= 40", calls <= 40);
  group.offer(0);
  group.run_for(1s);
  before = server.cost().calls;
  group.run_for(5s);
  table.line("nothing offered: calls in 5 s", fmt::format("{}", server.cost().calls - before), "0",
             server.cost().calls == before);
}

/// All demand, 1.5 R, goes from one half of the hosts to the other.
void jump(Server& server, Table& table) {
  if (!table.begins("3")) return;
  for (const auto& [hosts, bar] : {std::pair{20U, Nanos{200ms}}, {50U, Nanos{350ms}}, {100U, Nanos{500ms}}}) {
    Nanos longest{0};
    double worst = 0;
    bool all = true;
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      server.empty();
      Group group(server.socket(), hosts, tenant(), seed);
      const DataRate each{group.policy.rate.bits_per_second * 3 / 2 / (hosts / 2)};
      for (std::size_t n = 0; n < hosts / 2; ++n) group.host(n).offer(each);
      group.run_for(2s);
      for (std::size_t n = 0; n < hosts; ++n) group.host(n).offer(n < hosts / 2 ? DataRate{} : each);
      const Instant at = group.now();
      group.run_for(2s);
      const auto settled = settled_after(group, at);
      all = all && settled;
      longest = std::max(longest, settled.value_or(2s));
      worst = std::max(worst, deviation(group, 1s, 3s).largest());
    }
    table.line(fmt::format("all demand jumps, {} hosts, worst of 3", hosts),
               all ? fmt::format("settled after {:.0f} ms; 1 s windows within {:.1f} %", ms(longest), worst)
                   : fmt::format("not settled in 2 s; 1 s windows within {:.1f} %", worst),
               fmt::format("<= {:.0f} ms, within 4 %", ms(bar)), all && longest <= bar && worst <= 4);
  }
}

/// The rest of them offer a thousandth of the rate each.
void one_busy_host(Server& server, Table& table) {
  if (!table.begins("4")) return;
  server.empty();
  Group group(server.socket(), kHosts, tenant());
  for (auto& host : group.hosts()) host->offer({group.policy.rate.bits_per_second / 1'000});
  group.host(0).offer({2 * group.policy.rate.bits_per_second});
  group.run_for(2s);
  const std::uint64_t before = group.host(0).sent;
  group.run_for(4s);
  const double part = static_cast<double>(group.host(0).sent - before) * 100 /
                      static_cast<double>(bytes_in(group.policy.rate, 4s).value);
  table.line("one busy host of 20", fmt::format("gets {:.1f} % of R", part), ">= 97 % (others: 1.9 %)", part >= 97);
}

/// On for 100 ms, off for 400 ms at random, 1.2 R in the mean.
void bursty_hosts(Server& server, Table& table) {
  if (!table.begins("4")) return;
  server.empty();
  Group group(server.socket(), kHosts, tenant());
  const DataRate burst{group.policy.rate.bits_per_second * 6 / kHosts};
  const std::function<void(Host&, bool)> turn = [&](Host& host, bool on) {
    host.offer(on ? burst : DataRate{});
    group.timeline.at(group.now() + host.random.exponential(on ? 100ms : 400ms), [&, on] { turn(host, !on); });
  };
  for (auto& host : group.hosts()) turn(*host, host->random.chance(20));
  group.run_for(2s);
  const std::uint64_t before = group.ideal_carried();
  group.run_for(12s);
  const double part = percent_of_rate(group, 12s);
  const double ideal = static_cast<double>(group.ideal_carried() - before) * 100 /
                       static_cast<double>(bytes_in(group.policy.rate, 12s).value);
  table.line("bursty hosts", fmt::format("{:.1f} % of R (one ideal bucket: {:.1f} %)", part, ideal),
             ">= 90 % where the ideal has 97 %", part >= std::min(90.0, ideal - 7));
  if (table.begins("2")) cap(group, table, "bursty");
}

void beside_a_hog(Server& server, Table& table) {
  if (!table.begins("5")) return;
  server.empty();
  Group group(server.socket(), kHosts, tenant());
  const std::uint64_t rate = group.policy.rate.bits_per_second;
  for (auto& host : group.hosts()) host->offer({rate * 4 / 100});
  group.host(0).offer({rate * 10});
  group.run_for(2s);
  for (auto& host : group.hosts()) host->delays.clear();
  group.run_for(4s);
  std::vector<Nanos> delays;
  for (std::size_t n = 1; n < kHosts; ++n) {
    delays.insert(delays.end(), group.host(n).delays.begin(), group.host(n).delays.end());
  }
  const Nanos p99 = percentile(delays, 99);
  table.line("19 small hosts beside one that offers 10 R",
             fmt::format("wait p99 {:.2f} ms; all use {:.1f} % of R", ms(p99), percent_of_rate(group, 4s)),
             "p99 < 5 ms", p99 < 5ms);
}

/// What a packet costs here with a limit over all hosts, against one of this host alone; both with credit for all.
Nanos cost_of_packets(Scope scope) {
  constexpr std::uint32_t kPackets = 200'000;
  LeasePolicy lease = tenant(400_gbit);
  Policy policy = cluster_policy(lease);
  policy.limits[0].scope = scope;
  Instant now{1s};
  Shaper core(policy, StartCredit::full, {1, 2}, now);
  Verdicts out;
  // The bucket of a limit over all hosts is there from the first packet on.
  core.on_packet(packet_of(0), now, out);
  core.on_grant({{}, ByteCount{std::uint64_t{1} << 40}, now + std::chrono::hours{1}, kFastestRate}, now, out);
  Packet packet = packet_of(0);
  const Instant begin = monotonic_now();
  for (std::uint32_t n = 1; n <= kPackets; ++n) {
    packet.id.number = n;
    now += 1us;
    core.on_packet(packet, now, out);
    out.clear();
  }
  return (monotonic_now() - begin) / kPackets;
}

void local_cost(Table& table) {
  if (!table.begins("6")) return;
  std::vector<Nanos> more;
  for (int pair = 0; pair < 15; ++pair) {
    const Nanos host = cost_of_packets(Scope::host);
    more.push_back(cost_of_packets(Scope::cluster) - host);
  }
  const Nanos median = percentile(more, 50);
  table.line("cost of a packet beyond a host's limit", fmt::format("{} ns", median.count()), "<= 100 ns",
             median <= 100ns);
}

void killed(Server& server, Table& table) {
  if (!table.begins("8") && !table.begins("10")) return;
  server.empty();
  Group group(server.socket(), kHosts, tenant());
  group.offer(kTwice);
  group.run_for(3s);
  const Instant kill = group.now();
  server.end();
  group.run_for(2s);
  Nanos last{0};
  for (auto& host : group.hosts()) last = std::max(last, host->changed - kill);
  const bool all = group.in(LeaseState::fallback) == kHosts;
  table.begins("8");
  table.line(
      "Redis killed: the policy holds on all hosts",
      all ? fmt::format("after {:.1f} ms; then {:.1f} % of R", ms(last), percent_of_rate(group, 1s)) : "not on all",
      "<= 50 ms", all && last <= 50ms);
  table.begins("10");
  server.start();
  group.run_for(1s);
  const Nanos leased = group.longest_from_connection();
  const bool back = group.in(LeaseState::leased) == kHosts;
  table.line("Redis is back, empty: leases",
             back ? fmt::format("{:.1f} ms after the connection", ms(leased)) : "not on all hosts", "<= 200 ms",
             back && leased <= 200ms);
  group.run_for(10s);
  const Deviation ten = deviation(group, 10s, 10s);
  const Deviation one = deviation(group, 1s, 11s);
  table.line("the ten seconds after",
             fmt::format("{:+.2f} %; 1 s windows {:+.2f} .. {:+.2f} %", ten.most, one.least, one.most),
             "within 1 %, 1 s <= +10 %", ten.largest() <= 1 && one.most <= 10);
}

void stopped(Server& server, Table& table) {
  if (!table.begins("9")) return;
  server.empty();
  Group group(server.socket(), kHosts, tenant());
  group.offer(kTwice);
  group.run_for(2s);
  const auto longest_wait = [&] {
    Nanos longest{0};
    for (auto& host : group.hosts()) {
      for (const Nanos delay : std::exchange(host->delays, {})) longest = std::max(longest, delay);
    }
    return longest;
  };
  longest_wait();
  group.run_for(1s);
  const Nanos before = longest_wait();
  const Instant stop = group.now();
  server.stand_still();
  group.run_for(1s);
  Nanos last{0};
  for (auto& host : group.hosts()) last = std::max(last, host->changed - stop);
  const bool all = group.in(LeaseState::fallback) == kHosts;
  table.line(
      "Redis stopped for 1 s: the policy holds",
      all ? fmt::format("after {:.1f} ms; {:.1f} % of R", ms(last), percent_of_rate(group, 1s)) : "not on all hosts",
      "<= 150 ms", all && last <= 150ms);
  server.go_on();
  group.run_for(1s);
  const double after = percent_of_rate(group, 1s) - 100;
  const Nanos grown = longest_wait() - before;
  table.line("the oldest packet's wait grows by", fmt::format("{:.1f} ms from {:.1f} ms", ms(grown), ms(before)),
             "<= 50 ms", grown <= 50ms);
  table.line("the second after", fmt::format("{:+.2f} %", after), "<= +5 %", after <= 5);
}

void forgetful(Server& server, Table& table) {
  if (!table.begins("11")) return;
  server.empty();
  Group group(server.socket(), kHosts, tenant());
  group.offer(kTwice);
  group.run_for(2s);
  const std::uint64_t before = times_out_of_fallback(group);
  const std::array<std::vector<std::string>, 3> commands{{{"FLUSHALL"}, {"SCRIPT", "FLUSH"}, {"CONFIG", "RESETSTAT"}}};
  for (const auto& command : commands) {
    server(command);
    group.run_for(3s);
  }
  group.run_for(1s);
  const std::uint64_t fallbacks = times_out_of_fallback(group) - before + group.in(LeaseState::fallback);
  const Deviation seen = deviation(group, 10s, 10s);
  table.line("FLUSHALL, SCRIPT FLUSH, CONFIG RESETSTAT",
             fmt::format("{} fallbacks; 10 s {:+.2f} %", fallbacks, seen.most), "none, within 0.5 %",
             fallbacks == 0 && seen.largest() <= 0.5);
}

void half_cut_off(Server& server, Table& table) {
  if (!table.begins("12")) return;
  struct Case {
    std::string_view name;
    WithoutRedis rule;
    bool reserve;
    double most;
  };
  for (const Case& each :
       {Case{"reject", WithoutRedis::reject, false, 101}, Case{"degrade", WithoutRedis::degrade, false, 152},
        Case{"degrade, reserve", WithoutRedis::degrade, true, 101}}) {
    server.empty();
    LeasePolicy policy = tenant(200_mbit, each.rule);
    policy.reserve = each.reserve;
    Group group(server.socket(), kHosts, policy);
    group.offer(kTwice);
    group.run_for(2s);
    for (std::size_t n = 0; n < kHosts / 2; ++n) group.host(n).cut_off = true;
    group.run_for(10s);
    const double part = percent_of_rate(group, 10s);
    table.line(fmt::format("half the hosts cut off, {}", each.name), fmt::format("{:.2f} % of R", part),
               fmt::format("<= {:g} %", each.most), part <= each.most);
  }
}

void bad_ways(Server& server, Table& table) {
  if (!table.begins("13")) return;
  struct Case {
    std::string_view name;
    Network network;
    WithoutRedis rule;
  };
  Network doubled, reordered, lost;
  doubled.doubled = 20;
  reordered.sometimes = 30ms;
  lost.lost = 1;
  for (const Case& each : {Case{"one in 5 asks doubled", doubled, WithoutRedis::reject},
                           Case{"one in 8 answers late", reordered, WithoutRedis::reject},
                           Case{"one in 100 answers lost, reject", lost, WithoutRedis::reject},
                           Case{"one in 100 answers lost, degrade", lost, WithoutRedis::degrade}}) {
    server.empty();
    Group group(server.socket(), kHosts, tenant(200_mbit, each.rule));
    group.network = each.network;
    group.offer(kTwice);
    group.run_for(12s);
    const double part = percent_of_rate(group, 10s);
    table.line(each.name, fmt::format("{:.2f} % of R", part), "within 0.5 %", part >= 99.5 && part <= 100.5);
    cap(group, table, "the same");
  }
}

/// The wall clock of a server, which bench/other_clock.cpp gives it.
class OtherClock {
 public:
  OtherClock() : file_(std::filesystem::temp_directory_path() / fmt::format("shaper-clock-{}", getpid())) {
    set(Nanos{0});
  }
  ~OtherClock() { std::filesystem::remove(file_); }
  OtherClock(const OtherClock&) = delete;
  OtherClock& operator=(const OtherClock&) = delete;

  void set(Nanos ahead) const {
    const std::int64_t us = ahead / 1us;
    std::fstream file(file_, exists(file_) ? std::ios::in | std::ios::out : std::ios::out);  // in place: it is mapped
    file.write(reinterpret_cast<const char*>(&us), sizeof us);
  }
  [[nodiscard]] std::vector<std::string> environment() const {
    return {"LD_PRELOAD=" SHAPER_OTHER_CLOCK, "CLOCK_OFFSET_FILE=" + file_.string()};
  }

 private:
  std::filesystem::path file_;
};

void clock_is_set(Table& table) {
  if (!table.begins("14")) return;
  const OtherClock clock;
  Server server(clock.environment());
  for (const Nanos ahead : {Nanos{1h}, Nanos{-1h}}) {
    clock.set(Nanos{0});
    server.empty();
    Group group(server.socket(), kHosts, tenant());
    group.offer(kTwice);
    group.run_for(2s);
    clock.set(ahead);
    group.run_for(2s);
    std::uint64_t jumps = 0;
    for (auto& host : group.hosts()) jumps += host->lease.counters().clock_jumps;
    const auto sent = group.sent.between(group.now() - 2s, group.now());
    const std::uint64_t paid = bytes_in(group.policy.rate, 2s).value;
    const std::uint64_t minted = sent - std::min(sent, paid);
    const Deviation pause = deviation(group, 2 * kInterval, 2s);
    const bool good = jumps == kHosts && group.in(LeaseState::leased) == kHosts;
    table.line(
        fmt::format("the server's clock is set by {:+} h", ahead / 1h),
        fmt::format("{} of {} noticed; {} bytes minted; least in 2 T {:+.0f} %", jumps, kHosts, minted, pause.least),
        fmt::format("<= {} bytes, no stall of 2 T", group.policy.burst.value),
        good && minted <= group.policy.burst.value && pause.least > -100);
  }
}

void rates_and_sizes(Server& server, Table& table) {
  if (!table.begins("15")) return;
  struct Case {
    std::string_view name;
    DataRate rate;
    std::uint32_t ip_bytes;
    Nanos time;
  };
  constexpr std::uint32_t kFew = 4;
  for (const Case& each :
       {Case{"8 kbit/s, 500 B", 8_kbit, 500, 40s}, Case{"1 Mbit/s, 64 B", 1_mbit, 64, 10s},
        Case{"100 Mbit/s, 1500 B", 100_mbit, 1'500, 10s}, Case{"100 Mbit/s, 64 KB", 100_mbit, 65'535, 10s},
        Case{"10 Gbit/s, 64 KB", 10_gbit, 65'535, 10s}}) {
    server.empty();
    LeasePolicy policy = tenant(each.rate);
    policy.burst = std::max(policy.burst, ByteCount{3'000});
    Group group(server.socket(), kFew, policy);
    for (auto& host : group.hosts()) host->offer({each.rate.bits_per_second / 2}, each.ip_bytes);
    group.run_for(5s);
    const std::vector<std::uint64_t> before = group.sent_by_host();
    group.run_for(each.time);
    bool all = true;
    for (auto& host : group.hosts()) all = all && host->sent > before[host->number];
    const double part = percent_of_rate(group, each.time);
    const double packets = kFew * static_cast<double>(each.ip_bytes + kEthernetBytes) * 100 /
                           static_cast<double>(bytes_in(each.rate, each.time).value);
    const double bar = std::max(2.0, packets);  // each host may have paid for a part of its next packet
    table.line(each.name, fmt::format("{:+.2f} %{}", part - 100, all ? "" : "; a host stands"),
               fmt::format("within {:.1f} %", bar), all && part >= 100 - bar && part <= 100 + bar);
  }
}

void half_the_rate(Server& server, Table& table) {
  if (!table.begins("16")) return;
  server.empty();
  Group group(server.socket(), kHosts, tenant());
  group.offer(kTwice);
  group.run_for(2s);
  LeasePolicy half = tenant(100_mbit);
  half.config = 1;
  const Instant first = group.now();
  for (auto& host : group.hosts()) {
    host->lease.change(half);
    group.run_for(50ms);
  }
  group.run_for(1s);
  // In percent of the old rate. What the hosts had before the change is paid for: B + R T.
  const auto seen = group.sent.windows(group.policy.rate, 200ms, first + 2 * kInterval, group.now());
  const double last = percent_of_rate(group, 1s);
  table.line("R becomes R/2, host by host, 50 ms apart",
             fmt::format("200 ms windows {:.1f} .. {:.1f} % of R; then {:.2f} %", static_cast<double>(seen.least) / 10,
                         static_cast<double>(seen.most) / 10, last),
             "never above R, then 50 % within 1 %", seen.most <= 1'000 && last >= 49.5 && last <= 50.5);
}

/// Answers take 150 ms all of a sudden; then the hosts have a second to learn it.
void long_way(Server& server, Table& table) {
  if (!table.begins("17")) return;
  server.empty();
  LeasePolicy policy = tenant();
  policy.burst = bytes_in(policy.rate, 500ms);  // a bucket that is full between two asks earns nothing
  Group group(server.socket(), kHosts, policy);
  group.offer(kTwice);
  group.run_for(2s);
  group.network.least_delay = 150ms;
  group.run_for(1s);
  const double first = percent_of_rate(group, 1s);
  const std::uint64_t before = times_out_of_fallback(group);
  group.run_for(10s);
  const std::uint64_t fallbacks = times_out_of_fallback(group) - before + group.in(LeaseState::fallback);
  const double part = percent_of_rate(group, 10s);
  table.line("the round trip becomes 150 ms",
             fmt::format("{:.1f} % in 1 s; then {} fallbacks, {:.2f} % of R", first, fallbacks, part),
             "none after 1 s; within 3 %", fallbacks == 0 && part >= 97 && part <= 103);
}

int run(std::vector<std::string> only) {
  Table table(std::move(only));
  Server server;
  server({"CONFIG", "SET", "slowlog-log-slower-than", "1000"});
  steady(server, table);
  many_limits(server, table);
  below_the_rate(server, table);
  jump(server, table);
  one_busy_host(server, table);
  bursty_hosts(server, table);
  beside_a_hog(server, table);
  local_cost(table);
  killed(server, table);
  stopped(server, table);
  forgetful(server, table);
  half_cut_off(server, table);
  bad_ways(server, table);
  clock_is_set(table);
  rates_and_sizes(server, table);
  half_the_rate(server, table);
  long_way(server, table);
  fmt::print("{} missed\n", table.missed());
  return table.missed() == 0 ? 0 : 1;
}

}  // namespace
}  // namespace shaper::bench

int main(int argc, char** argv) {
  return shaper::bench::run({argv + 1, argv + argc});
}
