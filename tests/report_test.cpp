// Reports: to JSON and back, keys in order, hostile strings, and tables for people.
#include "shaper/model/report.h"

#include <gtest/gtest.h>

#include <sstream>

#include "shaper/core/guard.h"
#include "shaper/model/tables.h"
#include "tests/cluster_report.h"
#include "tests/golden_file.h"

namespace shaper {
namespace {

using namespace std::chrono_literals;

Policy two_classes() {
  Policy policy;
  LinkPolicy uplink;
  uplink.name = "uplink";
  uplink.interface = "eth0";
  uplink.rate = DataRate{100'000'000};
  uplink.without_daemon = WithoutDaemon::block;
  policy.links = {uplink};
  policy.limits = {
      {"tenant-a", DataRate{200'000'000}, kDefaultBurst, {}, Scope::host, Discipline::token},
      {"hosts", DataRate{5'000'000}, kDefaultBurst, KeyPolicy{EachBy::source, 24, 64}, Scope::host, Discipline::token}};
  ClassPolicy automatic;
  automatic.name = "default";
  automatic.is_default = true;
  ClassPolicy backup;
  backup.name = "backup";
  backup.rate = DataRate{20'000'000};
  backup.ceil = DataRate{60'000'000};
  backup.priority = 6;
  backup.each = Each{{EachBy::source, 24, 64}, DataRate{2'000'000}, kDefaultBurst};
  backup.limits = {0, 1};
  policy.classes = {automatic, backup};
  return policy;
}

CoreSnapshot snapshot_of_two() {
  CoreSnapshot snapshot;
  snapshot.links = {{0, 0, ByteCount{51'514}, ByteCount{777}, {55}}};
  snapshot.limits = {{0, 1, {56'784}, ByteCount{101'514}, ByteCount{500}, {0}, 0, {7098}},
                     {1, 3, {56'784}, std::nullopt, std::nullopt, {7}, 2, {}}};
  ClassSnapshot backup;
  backup.index = 1;
  backup.traffic.sent_packets = 7;
  backup.traffic.sent_bytes = {7000};
  backup.traffic.wire_bytes = {7098};
  backup.traffic.marked_packets = 3;
  backup.traffic.drops = {0, 2, 1, 0, 4};
  backup.traffic.dropped_bytes = {3000};
  backup.in_packets = 19;
  backup.lost_packets = 1;
  backup.passed_packets = 2;
  backup.backlog_packets = 2;
  backup.backlog_bytes = {3028};
  backup.rate = {56'784};
  backup.depth = ByteCount{31'514};
  backup.credit = ByteCount{12};
  backup.late_bytes = {99};
  backup.borrowed_bytes = {1514};
  backup.guarantee = DataRate{15'000'000};  // of 20 Mbit/s: the link has not more
  backup.wait = 2'500us;
  backup.flows = 3;
  backup.delay = {1499ns, 1500ns, 2ms, 1s};
  backup.held_by = HeldBy{Holder::limit, 0};
  backup.delay_counts.add(Nanos{0}, 5);
  backup.delay_counts.add(2ms, 1);
  backup.delay_counts.add(1s, 1);
  snapshot.classes.push_back({});  // the automatic class, first in the policy
  snapshot.classes.push_back(backup);
  return snapshot;
}

FlowReport hostile_flow() {
  FlowSnapshot flow;
  flow.class_index = 1;
  flow.headers.family = Family::ipv6;
  flow.headers.protocol = kIcmpv6;
  flow.headers.source[15] = 1;
  flow.headers.destination[15] = 2;
  flow.user = 1000;
  flow.first_seen = Instant{1ms};
  flow.last_seen = Instant{2s};
  return flow_report(two_classes(), flow, {{1000, "a\"b\\c\n\x1b]0;x\xff<script>"}},
                     std::chrono::seconds{1'700'000'000});
}

StatusReport full_status() {
  StatusReport report = status_report(two_classes(), snapshot_of_two());
  report.version = "1.2.3";
  report.queues = {{41'200, 2, 3, 4, 5, 6}, {41'201, 0, 0, 0, 0, 0}};
  report.rules = RulesStatus::present;
  report.warnings = {"say \"hello\"\x07"};
  report.advice = {"raise \x1b"};
  report.owners = OwnersReport{11, 12, 13, {{"/a \"b\"\n\x1b", "", 1, {2}}, {"", "web", 3, {4}}}};
  return report;
}

TEST(Report, TheGuardStandsBehindTheClassesOfThePolicyAndTheDefaultLast) {
  Policy policy = two_classes();
  set_guard_ports(policy, {22});
  CoreSnapshot snapshot = snapshot_of_two();
  snapshot.classes.emplace_back().index = 2;
  const StatusReport report = status_report(policy, snapshot);
  ASSERT_EQ(report.classes.size(), 3u);
  EXPECT_EQ(report.classes[0].name, "backup");
  EXPECT_EQ(report.classes[1].name, "guard");
  EXPECT_EQ(report.classes[1].limit, kGuardRate);
  EXPECT_EQ(report.classes[1].priority, 0u);
  EXPECT_EQ(report.classes[2].name, "default");
}

TEST(Report, StatusIsTheJsonOfTheReference) {
  EXPECT_EQ(status_json(full_status()) + "\n", golden("status.json"));
}

TEST(Report, StatusIsATableThatFitsAHundredColumns) {
  const std::string table = status_table(full_status());
  EXPECT_EQ(table, golden("status.txt"));
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST(Report, ClassesStandInFileOrderWithTheAutomaticOneLast) {
  const StatusReport report = full_status();
  ASSERT_EQ(report.classes.size(), 2u);
  EXPECT_EQ(report.classes[0].name, "backup");
  EXPECT_EQ(report.classes[1].name, "default");
}

TEST(Report, EveryPacketOfAClassIsAccountedFor) {
  const ClassReport row = full_status().classes.front();
  EXPECT_EQ(row.sent_packets + row.dropped_packets + row.lost_packets + row.passed_packets + row.backlog_packets,
            row.in_packets);
}

TEST(Report, StatusComesBackFromItsJson) {
  const std::string json = status_json(full_status());
  const auto parsed = parse_status(json);
  ASSERT_TRUE(parsed) << parsed.error();
  EXPECT_EQ(status_json(*parsed), json);
  EXPECT_EQ(parsed->classes[0].each->limit, DataRate{2'000'000});
  EXPECT_EQ(parsed->classes[1].limit, std::nullopt);
  EXPECT_EQ(parsed->classes[0].wait, 2'500us);
  EXPECT_EQ(parsed->classes[0].delay_counts.packets, full_status().classes[0].delay_counts.packets);
  EXPECT_TRUE(parsed->classes[0].delay_counts.nanoseconds == 1'002'000'000);
  EXPECT_EQ(parsed->delay_bounds, kDelayBounds);
  EXPECT_EQ(parsed->links[0].credit, ByteCount{777});
  ASSERT_EQ(parsed->limits.size(), 2u);
  EXPECT_EQ(parsed->limits[1].by, "source/24,64");
  EXPECT_EQ(parsed->limits[1].credit, std::nullopt) << "each key has a bucket of its own";
  EXPECT_EQ(parsed->mark_mask, kDefaultMarkMask);
  EXPECT_EQ(parsed->owners->late, 12u);
  ASSERT_EQ(parsed->owners->totals.size(), 2u);
  EXPECT_EQ(parsed->owners->totals[0].cgroup, "/a \"b\"\n\x1b");
  EXPECT_EQ(parsed->owners->totals[1].wire_bytes.value, 4u);
}

ClusterReport full_cluster() {
  ClusterReport report = cluster_report();
  report.trouble = "it is late";
  report.warnings = {"limit tenant-a: \x1b"};
  report.namesake = true;
  return report;
}

TEST(Report, AClusterComesBackFromItsJson) {
  const std::string json = cluster_json(full_cluster());
  const auto parsed = parse_cluster(json);
  ASSERT_TRUE(parsed) << parsed.error();
  EXPECT_EQ(cluster_json(*parsed), json);
  EXPECT_EQ(json + "\n", golden("cluster.json"));
  EXPECT_EQ(parsed->calls.at("timeout"), 3U);
  EXPECT_EQ(parsed->clock_offset, -1'500us);
  EXPECT_EQ(parsed->limits[0].share, std::nullopt);
}

TEST(Report, AClusterIsATableWithItsWarnings) {
  const std::string table = cluster_table(full_cluster());
  EXPECT_EQ(table, golden("cluster.txt"));
}

TEST(Report, WhatIsInForceIsToldNotWhatWasAskedFor) {
  const ClassReport row = full_status().classes.front();
  EXPECT_EQ(row.guarantee, DataRate{15'000'000}) << "scaled down";
  Policy policy = two_classes();
  policy.classes[1].ceil_is_link = true;
  EXPECT_EQ(status_report(policy, snapshot_of_two()).classes.front().limit, std::nullopt);
}

TEST(Report, WhatGotCeIsCounted) {
  FlowSnapshot flow;
  flow.traffic.marked_packets = 12;
  EXPECT_EQ(flow_report(two_classes(), flow, {}, Nanos{0}).marked_packets, 12u);
  EXPECT_EQ(full_status().classes.front().marked_packets, 3u);
}

TEST(Report, MicrosecondsAreRoundedToTheNearest) {
  const auto parsed = parse_status(status_json(full_status()));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->classes[0].delay.p50, 1us);
  EXPECT_EQ(parsed->classes[0].delay.p90, 2us);
}

TEST(Report, FlowsComeBackFromTheirJsonWhateverTheirNames) {
  FlowsReport flows{{hostile_flow(), hostile_flow()}, 5, 1};
  const std::string json = flows_json(flows);
  const auto parsed = parse_flows(json);
  ASSERT_TRUE(parsed) << parsed.error();
  EXPECT_EQ(flows_json(*parsed), json);
  EXPECT_EQ(parsed->flows[0].user, "a\"b\\c\n\x1b]0;x\xEF\xBF\xBD<script>") << "what is no UTF-8 is replaced";
  EXPECT_EQ(parsed->flows[0].protocol, "icmp");
  EXPECT_EQ(parsed->flows[0].source_port, std::nullopt);
  EXPECT_EQ(parsed->flows[0].first_seen, "2023-11-14T22:13:20.001000Z");
}

TEST(Report, AListingInPiecesIsTheSameJson) {
  const FlowReport flow = hostile_flow();
  EXPECT_EQ(flows_json_head() + flow_json(flow) + "," + flow_json(flow) + flows_json_tail(5, 1),
            flows_json({{flow, flow}, 5, 1}));
}

TEST(Report, AReplayHasTheKeysOfBoth) {
  const std::string json = replay_json(full_status(), {{hostile_flow()}, 1, 0});
  EXPECT_TRUE(parse_status(json));
  EXPECT_TRUE(parse_flows(json));
}

TEST(Report, WhatIsNoReportIsAnError) {
  for (const char* json : {"", "{", "[]", "{}", "null", R"({"version":1})", R"({"flows":[{}],"total_flows":0})"}) {
    EXPECT_FALSE(parse_status(json)) << json;
    EXPECT_FALSE(parse_flows(json)) << json;
  }
  std::string json = status_json(full_status());
  json.replace(json.find("shaping"), 7, "dancing");
  EXPECT_FALSE(parse_status(json)) << "an unknown mode must not be taken for another one";
}

TEST(Report, TimesAreRfc3339WhereverTheClockStands) {
  EXPECT_EQ(rfc3339(0ns), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(rfc3339(-1ns), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(rfc3339(std::chrono::seconds{951'827'696} + 5us), "2000-02-29T12:34:56.000005Z");
  EXPECT_EQ(rfc3339(Nanos::max()).substr(0, 4), "2262");
}

TEST(Tables, NoNameSteersTheTerminal) {
  const std::string table = flows_table({{hostile_flow()}, 1, 0});
  EXPECT_NE(table.find("a\"b\\x5cc\\x0a\\x1b]0;x\\xff<script>"), std::string::npos) << table;
  EXPECT_EQ(table.find('\x1b'), std::string::npos);
}

TEST(Tables, ClassesStandUnderTheirLink) {
  StatusReport report;
  report.links.resize(2);
  report.links[0].name = "up";
  report.links[1].name = "down";
  report.classes.resize(4);
  const char* const kLinks[] = {"down", "up", "down", "up"};
  for (std::size_t i = 0; i < 4; ++i) {
    report.classes[i].name = "class-" + std::to_string(i);
    report.classes[i].link = kLinks[i];
  }
  const std::string table = status_table(report);
  std::size_t last = table.find("prio");
  for (const char* line : {"\nup\n", "  class-1 ", "  class-3 ", "\ndown\n", "  class-0 ", "  class-2 "}) {
    const std::size_t at = table.find(line);
    ASSERT_NE(at, std::string::npos) << line << table;
    EXPECT_GT(at, last) << line << table;
    last = at;
  }
}

TEST(Tables, ALinkSaysHowMuchOfItIsUsed) {
  StatusReport report;
  report.links.resize(2);
  report.links[0].rate = {995'000};
  report.links[0].limit = DataRate{1'000'000};
  report.links[1].rate = {5};
  const std::string table = status_table(report);
  EXPECT_NE(table.find(" 100 "), std::string::npos) << "99.5 % to the nearest\n" << table;
}

TEST(Advice, IsForMoreDropsThanFiveInAHundredOfTheLastMinute) {
  struct Case {
    const char* what;
    DropReason reason;
    std::uint64_t sent, dropped;
    const char* advice;  // null: none
  };
  const Case cases[] = {
      {"five in a hundred", DropReason::backlog, 950, 50, nullptr},
      {"one more", DropReason::backlog, 949, 51, "(backlog): more comes than its ceil or the rate of its each or"},
      {"a policer", DropReason::policed, 949, 51, "(policed): raise its ceil or the rate of its each or"},
      {"too slow", DropReason::max_delay, 949, 51, "aqm = true"},
      {"too many", DropReason::held, 949, 51, "kernel queue"},
      {"CoDel's few", DropReason::aqm, 970, 30, nullptr},
      {"CoDel alone does not help", DropReason::aqm, 900, 100, "raise its ceil"},
      {"no Redis", DropReason::refused, 0, 100, "without_redis"},
      {"nothing gets through", DropReason::policed, 0, 100, "over = \"delay\""},
      {"too few to say", DropReason::policed, 0, 99, nullptr},
  };
  for (const Case& each : cases) {
    CoreSnapshot snapshot = snapshot_of_two();
    snapshot.classes[1].recent.sent = each.sent;
    snapshot.classes[1].recent.drops[static_cast<std::size_t>(each.reason)] = each.dropped;
    const StatusReport report = status_report(two_classes(), snapshot);
    ASSERT_EQ(report.advice.size(), each.advice != nullptr ? 1U : 0U) << each.what;
    if (each.advice == nullptr) continue;
    EXPECT_NE(report.advice[0].find(each.advice), std::string::npos) << each.what << "\n" << report.advice[0];
    EXPECT_NE(status_table(report).find("advice: class backup on uplink dropped"), std::string::npos);
  }
}

TEST(Advice, NamesTheWorstTenOfManyClasses) {
  Policy policy = two_classes();
  CoreSnapshot snapshot;
  snapshot.links = {{0, 0, {}, {}, {}}};
  for (ClassIndex i = 0; i < 12; ++i) {
    policy.classes.push_back(policy.classes[1]);
    policy.classes.back().name = "c" + std::to_string(i);
    ClassSnapshot& cls = snapshot.classes.emplace_back();
    cls.index = i + 2;
    cls.recent.drops[0] = 1000 + i;
  }
  const std::vector<std::string> advice = status_report(policy, snapshot).advice;
  ASSERT_EQ(advice.size(), 10U);
  EXPECT_TRUE(advice.front().starts_with("class c11 on uplink dropped 1011 of 1011 packets"));
  EXPECT_TRUE(advice.back().starts_with("class c2 "));
}

}  // namespace
}  // namespace shaper
