// Metrics: the text of a whole report, names that would break it, and what must not be there.
#include "shaper/model/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "shaper/model/metrics_writer.h"
#include "tests/cluster_report.h"
#include "tests/golden_file.h"

namespace shaper {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kHostile = "a\"b\\c\nd\x1b]0;x\xff<script>";

ClassReport a_class() {
  ClassReport row;
  row.name = kHostile;
  row.link = "uplink";
  row.guarantee = DataRate{300};
  row.limit = DataRate{60'000'000};
  row.sent_packets = 6;  // one of seven was lost
  row.sent_bytes = {7000};
  row.wire_bytes = {7098};
  row.drops = {0, 2, 1, 0, 4};
  row.dropped_bytes = {3000};
  row.marked_packets = 3;
  row.backlog_packets = 2;
  row.backlog_bytes = {3028};
  row.credit = ByteCount{12};
  row.depth = ByteCount{31'514};
  row.borrowed = {1514};
  row.late_bytes = {99};
  row.lost_packets = 1;
  row.passed_packets = 2;
  row.flows = 3;
  row.each = EachReport{"source", DataRate{2'000'001}};
  row.wait = 2'500us;
  row.delay_counts.add(Nanos{0}, 4);
  row.delay_counts.add(2ms, 2);
  row.delay_counts.add(20s, 1);
  return row;
}

StatusReport a_status() {
  StatusReport report;
  report.version = "1.2.3";
  LinkReport uplink;
  uplink.name = "uplink";
  uplink.interface = "eth0";
  uplink.limit = DataRate{100'000'000};
  uplink.credit = ByteCount{777};
  uplink.depth = ByteCount{51'514};
  uplink.late_bytes = {55};
  LinkReport unlimited;
  unlimited.name = "downlink";
  unlimited.interface = "eth0";
  unlimited.direction = Direction::ingress;
  unlimited.without_daemon = WithoutDaemon::block;
  report.links = {uplink, unlimited};
  ClassReport plain;
  plain.name = "default";
  plain.link = "downlink";
  report.classes = {a_class(), plain};
  LimitReport hosts;
  hosts.name = "hosts";
  hosts.limit = DataRate{5'000'000};
  hosts.wire_bytes = {7098};
  hosts.by = "source/24,64";
  hosts.keys = 3;
  hosts.late_bytes = {7};
  hosts.other_flows = 2;
  LimitReport live;
  live.name = "live-1";
  live.id = 1;
  live.limit = DataRate{1'000'000};
  live.credit = ByteCount{500};
  live.depth = ByteCount{2014};
  live.selector = "user=backup";
  live.keys = 1;
  report.limits = {hosts, live};
  report.queues = {{41'200, 2, 3, 4, 5, 6}, {41'201, 0, 0, 0, 0, 0}, {41'202, 0, 0, 0, 0, 0}, {41'203, 0, 0, 0, 0, 0}};
  report.rules = RulesStatus::missing;
  report.warnings = {"one", "two"};
  report.owners = OwnersReport{11, 12, 13, {{"/a\"b\n", "", 1, {1'514}}, {"", "web", 3, {4'542}}}};
  return report;
}

ClusterReport a_cluster() {
  ClusterReport report = cluster_report();
  report.host = "h\"1";
  ClusterLimitReport& limit = report.limits.front();
  limit.share = DataRate{100'000'000};
  limit.fallback_rate = DataRate{10'000'000};
  limit.members = 2;
  limit.buckets = 1;
  limit.fallback_time = 1'250ms;
  limit.generation = 1'700'000'000'000'000;
  ClusterLimitReport& cold = report.limits.emplace_back();
  cold.name = "tenant-b";
  cold.state = "cold";
  cold.limit = DataRate{8'000};
  return report;
}

std::string line_of(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name)) return line;
  }
  return "";
}

TEST(Metrics, TheTextIsThatOfTheReference) {
  const ClusterReport cluster = a_cluster();
  EXPECT_EQ(metrics_text(a_status(), &cluster), golden("metrics.txt"));
}

TEST(Metrics, NumbersAreExact) {
  EXPECT_EQ(metric(DataRate{300}), "37.5");
  EXPECT_EQ(metric(DataRate{1}), "0.125");
  EXPECT_EQ(metric(DataRate{400'000'000'000}), "50000000000");
  EXPECT_EQ(metric(Nanos{-1'500'000}), "-0.0015");
  EXPECT_EQ(metric(Nanos::max()), "9223372036.854775807");
  EXPECT_EQ(metric(~std::uint64_t{0}), "18446744073709551615");
  EXPECT_EQ(metric(std::optional<ByteCount>{}), std::nullopt);
}

TEST(Metrics, NoNameLeavesItsLabel) {
  EXPECT_EQ(label("class", kHostile), R"(class="a\"b\\c\nd\\x1b]0;x\\xff<script>")");
  const std::string text = metrics_text(a_status(), nullptr);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(line.starts_with("# HELP shaper_") || line.starts_with("# TYPE shaper_") || line.starts_with("shaper_"))
        << line;
  }
}

TEST(Metrics, WhatIsNotKnownIsAbsent) {
  StatusReport status = a_status();
  status.rules.reset();
  const ClusterReport cluster = a_cluster();
  const std::string text = metrics_text(status, &cluster);
  for (const char* absent : {
           "shaper_rules",
           "shaper_link_limit_bytes_per_second{link=\"downlink\"}",
           "shaper_class_limit_bytes_per_second{link=\"downlink\"",
           "shaper_limit_credit_bytes{limit=\"hosts\"}",
           "shaper_limit_other_flows{limit=\"live-1\"}",
           "shaper_cluster_limit_members{limit=\"tenant-b\"}",
           "shaper_cluster_limit_share_bytes_per_second{limit=\"tenant-b\"}",
       }) {
    EXPECT_EQ(line_of(text, absent), "") << absent;
  }
  EXPECT_THAT(metrics_text(status, nullptr), Not(HasSubstr("shaper_cluster")));
}

TEST(Metrics, WithoutADaemonOnlyTheModeIsKnown) {
  StatusReport status;
  status.mode = Mode::blocked;
  const std::string text = metrics_text(status, nullptr);
  EXPECT_EQ(line_of(text, "shaper_up"), "shaper_up 0");
  EXPECT_EQ(line_of(text, "shaper_mode{mode=\"blocked\"}"), "shaper_mode{mode=\"blocked\"} 1");
  EXPECT_EQ(line_of(text, "shaper_mode{mode=\"shaping\"}"), "shaper_mode{mode=\"shaping\"} 0");
  EXPECT_THAT(text, Not(HasSubstr("shaper_class")));
}

TEST(Metrics, WhatWasLostLaterDoesNotMakeACounterFall) {
  EXPECT_THAT(line_of(metrics_text(a_status(), nullptr), "shaper_class_sent_packets_total"), HasSubstr(" 7"));
}

TEST(Metrics, HistogramsAreOfTheFirstClassesOnly) {
  StatusReport status;
  status.classes.resize(kMostDelayHistograms + 2);
  for (std::size_t i = 0; i < status.classes.size(); ++i) status.classes[i].name = std::to_string(i);
  const std::string text = metrics_text(status, nullptr);
  EXPECT_THAT(text, HasSubstr("shaper_class_delay_seconds_count{class=\"999\"}"));
  EXPECT_THAT(text, Not(HasSubstr("shaper_class_delay_seconds_count{class=\"1000\"}")));
  EXPECT_THAT(text, HasSubstr("shaper_class_sent_packets_total{class=\"1001\"}"));
}

}  // namespace
}  // namespace shaper
