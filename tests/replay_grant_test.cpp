// Logs of grants: repeated like every other call, and refused where no cluster limit could have got them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <tuple>
#include <utility>

#include "shaper/core/shaper.h"
#include "shaper/model/event_log.h"
#include "tests/log_text.h"

namespace shaper {
namespace {

using namespace std::chrono_literals;

constexpr const char* kLimitPolicy = R"(
version = 1
[[link]]
name = "up"
interface = "eth0"
[[limit]]
name = "tenant"
rate = "10mbit"
[[class]]
name = "all"
link = "up"
default = true
limits = ["tenant"]
)";

/// The policy in `text` with its limits shared by a cluster, which no policy text can say yet.
tl::expected<Policy, std::string> read_cluster_policy(std::string_view text, const NameLookup& names) {
  auto policy = read_logged_policy(text, names);
  if (!policy) return policy;
  for (LimitPolicy& limit : policy->limits) limit.scope = Scope::cluster;
  return policy;
}

const LogReplayOptions kCluster{.read = read_cluster_policy};

/// Three datagrams arrive, then a grant for all of them, then most of what is left of it is taken back.
std::string log_of_a_grant() {
  const Policy policy = read_cluster_policy(kLimitPolicy, {}).value();
  const Instant start{1s};
  std::string text;
  EventLog log(text);
  log.begin(start, {}, policy, kLimitPolicy, {}, std::vector<std::uint32_t>{1500});
  Shaper shaper(policy, StartCredit::full, HashKey{}, start);
  shaper.set_mtu(0, 1500);
  Verdicts verdicts;
  const auto write_outcomes = [&](Instant now) { log.outcomes(now, std::exchange(verdicts, {})); };
  Packet packet;
  packet.headers.family = Family::ipv4;
  packet.headers.protocol = kUdp;
  packet.ip_bytes = 1000;
  for (packet.id.number = 1; packet.id.number <= 3; ++packet.id.number) {
    shaper.on_packet(packet, start, verdicts);
    log.arrival(start, packet);
    write_outcomes(start);
  }
  const Instant later{1100ms};
  const Grant grant{{0, {}}, {10'000}, Instant{9s}, {10'000'000}};
  shaper.on_grant(grant, later, verdicts);
  log.grant(later, grant);
  write_outcomes(later);
  for (auto next = shaper.next_departure(); next && *next < Instant{9s}; next = shaper.next_departure()) {
    const Instant now = std::max(*next, later);
    shaper.release(now, verdicts);
    log.release(now);
    write_outcomes(now);
  }
  EXPECT_LE(shaper.take_back(grant.to, {6000}, Instant{2s}), ByteCount{6000});
  log.take_back(Instant{2s}, grant.to, {6000});
  const Instant end{3s};
  shaper.refuse(grant.to, true, end, verdicts);
  log.refuse(end, grant.to, true);
  ++packet.id.number;
  shaper.on_packet(packet, end, verdicts);
  log.arrival(end, packet);
  write_outcomes(end);
  return text;
}

TEST(ReplayLog, GrantsAreRepeated) {
  const std::string log = log_of_a_grant();
  EXPECT_LT(log.find(" grant limit=0:tenant bytes=10000 "), log.find(" accept 0:1 ")) << "nothing passes before\n"
                                                                                      << log;
  const auto result = replay_log(log, "log", kCluster);
  ASSERT_TRUE(result) << result.error();
  EXPECT_EQ(result->verdicts, 4u);
  EXPECT_FALSE(result->cut_short);

  std::ostringstream again;
  ASSERT_TRUE(replay_log(log, "log", {.read = read_cluster_policy, .events = &again}));
  EXPECT_EQ(again.str(), log) << "what is replayed is written with the same words";
  EXPECT_THAT(log, testing::HasSubstr(" refuse limit=0:tenant on=1\n"));
  EXPECT_THAT(log, testing::HasSubstr(" take_back "));

  std::string smaller = log;
  smaller.replace(smaller.find("bytes=10000"), 11, "bytes=100");
  EXPECT_FALSE(replay_log(smaller, "log", kCluster)) << "too little for any packet";
}

TEST(ReplayLog, ALogThatBeginsBetweenGrantsHasThemInItsHead) {
  const Policy policy = read_cluster_policy(kLimitPolicy, {}).value();
  Verdicts verdicts;
  Packet packet;
  packet.headers.family = Family::ipv4;
  packet.headers.protocol = kUdp;
  packet.ip_bytes = 1000;
  // Given a core that has two grants and has spent more than the rest when a log begins, and one that refuses.
  for (const bool refuses : {false, true}) {
    Shaper shaper(policy, StartCredit::full, HashKey{}, Instant{1s});
    shaper.set_mtu(0, 1500);
    for (const std::uint64_t bytes : {1500u, 600u}) {
      shaper.on_grant({{0, {}}, {bytes}, Instant{9s}, {2'000'000}}, Instant{1s}, verdicts);
    }
    packet.id.number = 1;
    shaper.on_packet(packet, Instant{2s}, verdicts);
    shaper.refuse({0, {}}, refuses, Instant{2s}, verdicts);
    ASSERT_EQ(verdicts.size(), 1u);
    verdicts.clear();
    std::string text;
    EventLog log(text);
    const Instant begin{2001ms};
    log.begin(begin, {}, policy, kLimitPolicy, {}, std::vector<std::uint32_t>{1500});
    ASSERT_EQ(shaper.wallets(begin).size(), 1u);
    log.wallet(shaper.wallets(begin).front());
    // When packets come that are larger than what is left, and another grant.
    const auto write = [&](Instant now) { log.outcomes(now, std::exchange(verdicts, {})); };
    for (packet.id.number = 2; packet.id.number <= 4; ++packet.id.number) {
      shaper.on_packet(packet, begin, verdicts);
      log.arrival(begin, packet);
      write(begin);
    }
    const auto release_until = [&](Instant end) {
      for (auto next = shaper.next_departure(); next && *next < end; next = shaper.next_departure()) {
        shaper.release(*next, verdicts);
        log.release(*next);
        write(*next);
      }
    };
    const Instant later{2100ms};
    release_until(later);
    const Grant grant{{0, {}}, {9000}, Instant{9s}, {2'000'000}};
    shaper.on_grant(grant, later, verdicts);
    log.grant(later, grant);
    write(later);
    release_until(Instant{9s});
    // Then the log replays from its first verdict on, and comes out with the same words.
    std::ostringstream again;
    const auto result = replay_log(text, "log", {.read = read_cluster_policy, .events = &again});
    ASSERT_TRUE(result) << result.error() << "\n" << text;
    EXPECT_EQ(result->verdicts, 3u);
    EXPECT_EQ(again.str(), text);
    EXPECT_EQ(text.find(" refuses\n") != std::string::npos, refuses);

    std::string without = text;
    const std::size_t line = without.find("wallet ");
    without.erase(line, without.find('\n', line) + 1 - line);
    EXPECT_FALSE(replay_log(without, "log", {.read = read_cluster_policy})) << "the line is needed\n" << without;
    if (refuses) continue;
    for (const auto& [from, to, message] :
         {std::tuple{"wallet limit=0", "wallet limit=7", "the policy has no cluster limit of this number"},
          std::tuple{"left=", "left=9999999999", "a wallet out of range"},
          std::tuple{"until=9", "until=8999999999", "a grant's end out of range"},
          std::tuple{"pace=2000000", "pace=1", "a grant's pace out of range"},
          std::tuple{"start ", "2000000000 release\nstart ", "no `start` line"}}) {
      std::string changed = text;
      changed.replace(changed.find(from), std::string_view(from).size(), to);
      const auto refused = replay_log(changed, "log", {.read = read_cluster_policy});
      ASSERT_FALSE(refused) << to;
      EXPECT_THAT(refused.error(), testing::HasSubstr(message));
    }
  }
}

TEST(ReplayLog, AGrantThatCannotBeIsRefused) {
  const std::string log = log_of_a_grant();
  struct Change {
    const char* from;
    const char* to;
    const char* message;
  };
  const Change changes[] = {
      {"grant limit=0", "grant limit=1", "the policy has no cluster limit of this number"},
      {"take_back limit=0", "take_back limit=1", "the policy has no cluster limit of this number"},
      {"refuse limit=0", "refuse limit=1", "the policy has no cluster limit of this number"},
      {"bytes=10000 ", "bytes=18446744073709551615 ", "a grant out of range"},
      {"take_back limit=0:tenant bytes=6000", "take_back limit=0:tenant bytes=9999999999999", "a grant out of range"},
      {"until=9000000000", "until=9223372036854775807", "a grant's end out of range"},
      {"pace=10000000", "pace=0", "a grant's pace out of range"},
  };
  for (const Change& change : changes) {
    std::string changed = log;
    const std::size_t at = changed.find(change.from);
    ASSERT_NE(at, std::string::npos) << change.from;
    changed.replace(at, std::string_view(change.from).size(), change.to);
    const auto result = replay_log(changed, "log", kCluster);
    ASSERT_FALSE(result) << change.from;
    EXPECT_NE(result.error().find(change.message), std::string::npos) << result.error();
  }
}

TEST(ReplayLog, ALimitOfThisHostAloneIsNeverGranted) {
  std::string log = log_of_a_grant();
  const std::size_t first_call = log.find("1000000000 arrive");
  log.erase(first_call, log.find("1100000000 grant") - first_call);
  const auto result = replay_log(log, "log");
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().find("the policy has no cluster limit"), std::string::npos) << result.error();
}

}  // namespace
}  // namespace shaper
