// `shaper flows` for people, at several widths.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <sstream>

#include "shaper/model/flow_columns.h"
#include "shaper/model/tables.h"
#include "shaper/model/text_table.h"
#include "tests/golden_file.h"

namespace shaper {
namespace {

using namespace std::chrono_literals;

FlowReport flow_of(const char* source, const char* destination, std::uint64_t bits_per_second) {
  FlowReport flow;
  flow.class_name = "web";
  flow.link = "uplink";
  flow.protocol = "tcp";
  flow.source = source;
  flow.source_port = 40'312;
  flow.destination = destination;
  flow.destination_port = 443;
  flow.rate = {bits_per_second};
  flow.packets = bits_per_second / 12'112;
  flow.wire_bytes = {bits_per_second / 8};
  flow.first_seen = "2026-01-31T23:59:59.123456Z";
  flow.activity = FlowActivity::passing;
  return flow;
}

FlowsReport four_flows() {
  FlowReport bulk = flow_of("192.168.100.200", "203.0.113.5", 71'200'000);
  bulk.class_name = "backup";
  bulk.user = "backup";
  bulk.backlog_bytes = {58'170};
  bulk.backlog_packets = 39;
  bulk.delay = {9'300us, 11ms, 11'800us, 12ms};
  bulk.dropped_packets = 412;
  bulk.marked_packets = 3;
  bulk.activity = FlowActivity::bulk;
  bulk.held_by = HeldReport{"class", "backup"};
  FlowReport six = flow_of("2001:db8:1234:5678:9abc:def0:1234:5678", "2001:db8:ffff:eeee:dddd:cccc:bbbb:aaaa", 40'000);
  FlowReport tiny = flow_of("10.0.0.1", "10.0.0.2", 800);
  FlowReport ping = flow_of("10.0.0.1", "10.0.0.2", 0);
  ping.protocol = "icmp";
  ping.source_port = ping.destination_port = std::nullopt;
  ping.activity = FlowActivity::idle;
  return {{bulk, six, tiny, ping}, 4, 0};
}

std::size_t longest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, line.size());
  return longest;
}

TEST(FlowsTable, EverythingIsShownWhereNobodyCountsColumns) {
  EXPECT_EQ(flows_table(four_flows()), golden("flows.txt"));
}

TEST(FlowsTable, EightyColumnsShowWhatIsSlowAndWhy) {
  EXPECT_EQ(flows_table(four_flows(), {.columns = 80, .flows = 3}), golden("flows_80.txt"));
}

TEST(FlowsTable, ItFitsWhateverTheWidth) {
  constexpr std::size_t kTotals = 53;  // a line that the terminal cuts
  for (std::size_t columns = 48; columns < 250; ++columns) {
    const std::string table = flows_table(four_flows(), {.columns = columns, .flows = {}});
    EXPECT_LE(longest_line(table), std::max(columns, kTotals)) << table;
    EXPECT_NE(table.find(":443"), std::string::npos) << "ports are whole\n" << table;
  }
}

TEST(FlowsTable, WiderIsNeverLess) {
  std::size_t least = 0;
  for (std::size_t columns = 60; columns < 250; ++columns) {
    std::istringstream table(flows_table(four_flows(), {.columns = columns, .flows = {}}));
    std::string titles;
    std::getline(table, titles);  // the totals
    std::getline(table, titles);
    std::istringstream words(titles);
    const auto count = static_cast<std::size_t>(std::distance(std::istream_iterator<std::string>(words), {}));
    EXPECT_GE(count + 1, least) << "at " << columns << ": " << titles;
    least = std::max(least, count);
  }
  EXPECT_GE(least, 14u);
}

TEST(FlowsTable, TotalsAreOfAllThatWereChosen) {
  const auto first_line = [](const FlowsReport& report, const FlowsRoom& room) {
    const std::string table = flows_table(report, room);
    return table.substr(0, table.find('\n'));
  };
  EXPECT_EQ(first_line(four_flows(), {}), "4 flows, 71.24 Mbit/s, backlog 58.17 kB in 39 packets");
  EXPECT_EQ(first_line(four_flows(), {.columns = {}, .flows = 1}),
            "4 flows, 1 shown, 71.24 Mbit/s, backlog 58.17 kB in 39 packets");
  FlowsReport some = four_flows();
  some.flows.resize(2);
  some.total_flows = 50;
  EXPECT_EQ(first_line(some, {}), "2 of 50 flows, 71.24 Mbit/s, backlog 58.17 kB in 39 packets");
  EXPECT_EQ(flows_table({{}, 0, 0}), "0 flows, 0 bit/s, backlog 0 B\n");
}

TEST(FlowsTable, WhatIsNotShownIsCounted) {
  const std::string table = flows_table(four_flows(), {.columns = {}, .flows = 1});
  EXPECT_EQ(table.substr(table.size() - 7), "3 more\n");
  EXPECT_EQ(flows_table(four_flows()).find(" more"), std::string::npos);
}

TEST(FlowsTable, DenseTablesSayDropsByReasonInWhatIsLeft) {
  FlowsReport report = four_flows();
  report.flows[0].drops = {0, 0, 12, 0, 400, 0};
  for (std::size_t columns = 40; columns < 250; ++columns) {
    const TextTable table = flow_columns(report.flows, {columns, std::nullopt, true});
    EXPECT_LE(longest_line(table.text()), columns) << table.text();
    EXPECT_TRUE(table.place("rate")) << columns;
    const bool shown = table.text().find(" 400 aqm") != std::string::npos;
    EXPECT_EQ(shown, table.place("drops").has_value()) << table.text();
  }
  EXPECT_NE(flow_columns(report.flows, {200, std::nullopt, true}).text().find(" 400 aqm, 12 max_delay"),
            std::string::npos);
}

TEST(TextTable, ACharacterIsOnePlaceWide) {
  TextTable table(1);
  table.words("bar", {"██··", "▏"});
  table.numbers("rate", {1, 2}, plain_units());
  EXPECT_EQ(table.text(), "bar  rate\n██··    1\n▏       2\n");
  EXPECT_EQ(table.width(), 9u);
  ASSERT_TRUE(table.place("rate"));
  EXPECT_EQ(table.place("rate")->begin, 5u);
  EXPECT_EQ(table.place("rate")->width, 4u);
  EXPECT_FALSE(table.place("none"));
}

TEST(TextTable, AColumnHasTheUnitOfItsLargestNumber) {
  struct Case {
    std::uint64_t value;
    const char* text;
  };
  for (const Case& each :
       {Case{0, "0 bit/s"}, Case{999, "999 bit/s"}, Case{1'000, "1.00 kbit/s"}, Case{999'999, "1000.00 kbit/s"},
        Case{1'000'000, "1.00 Mbit/s"}, Case{95'000'000'000, "95.00 Gbit/s"}}) {
    EXPECT_EQ(with_unit(each.value, rate_units()), each.text);
  }
  TextTable table;
  table.numbers("rate", {9'870'000, 0, 4'999, 5'000, std::nullopt}, rate_units());
  EXPECT_EQ(table.text(), "  rate\nMbit/s\n  9.87\n     0\n <0.01\n  0.01\n     -\n");
}

}  // namespace
}  // namespace shaper
