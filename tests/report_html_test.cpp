// The report of a replay: its curves and figures are those of the core, whatever was written by others stays text, and
// memory has bounds.
#include "shaper/replay/report_html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "shaper/model/config.h"
#include "shaper/model/text_table.h"
#include "shaper/replay/punctual_driver.h"

namespace shaper {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kPolicy = R"(
version = 1
[[link]]
name = "up"
interface = "eth0"
rate = "10mbit"
[[class]]
name = "policed"
link = "up"
match = { protocol = "udp" }
rate = "1mbit"
over = "drop"
[[class]]
name = "bulk"
link = "up"
match = { protocol = "tcp", remote_port = 80 }
rate = "2mbit"
ceil = "6mbit"
)";

Policy policy_of(std::string_view text) {
  auto parsed = parse_policy(text, "test.toml");
  EXPECT_TRUE(parsed) << parsed.error().text();
  return parsed ? parsed->policy : Policy{};
}

Packet packet_of(std::uint8_t protocol, std::uint16_t source_port, std::uint16_t port, std::uint32_t bytes) {
  Packet packet;
  packet.headers.family = Family::ipv4;
  packet.headers.source = {10, 0, 0, 1};
  packet.headers.destination = {10, 0, 0, 2};
  packet.headers.protocol = protocol;
  packet.headers.source_port = source_port;
  packet.headers.destination_port = port;
  packet.headers.ecn = source_port % 2 == 0 ? 2 : 0;
  packet.headers.network_bytes = 20;
  packet.headers.transport_bytes = protocol == kTcp ? 20 : 8;
  packet.ip_bytes = bytes;
  packet.super = bytes > 1500;
  return packet;
}

/// Seven seconds of too much traffic in three classes and ten flows, some of it in super-packets.
struct Replayed {
  explicit Replayed(Policy given = policy_of(kPolicy)) : policy(std::move(given)) {
    collected.obeys(policy, kStart);
    PunctualDriver driver(policy, 1500, kStart, {nullptr, &collected});
    std::mt19937 random(4711);
    for (int i = 0; i < 7000; ++i) {
      const auto flow = static_cast<std::uint16_t>(random() % 10);
      const std::uint8_t protocol = flow < 2 ? kUdp : kTcp;
      const std::uint32_t bytes =
          random() % 20 == 0 && protocol == kTcp ? 6000 : static_cast<std::uint32_t>(200 + random() % 1300);
      driver.arrive(packet_of(protocol, 4000 + flow, flow < 6 ? 80 : 443, bytes), kStart + i * 1ms);
    }
    driver.drain();
    figures = replay_figures(driver.shaper(), policy, {}, driver.now());
  }
  [[nodiscard]] ReplayReport report() const {
    return {"some.pcap", {{"capture", "some.pcap"}}, "test.toml", kPolicy, figures, collected};
  }

  static constexpr Instant kStart{1'700'000'000s};
  Policy policy;
  ReportCollector collected;
  ReplayFigures figures;
};

const Replayed& the_run() {
  static const Replayed run;
  return run;
}

TEST(ReportCollector, CurvesAddUpToTheFiguresOfEachClass) {
  const Replayed& run = the_run();
  ASSERT_EQ(run.collected.classes().size(), run.figures.status.classes.size());
  std::uint64_t dropped = 0;
  for (const ClassReport& row : run.figures.status.classes) {
    SCOPED_TRACE(row.name);
    const auto& all = run.collected.classes();
    const auto of = std::find_if(all.begin(), all.end(), [&](const auto& each) { return each.name == row.name; });
    ASSERT_NE(of, all.end());
    EXPECT_EQ(of->sent.sum(), static_cast<double>(row.wire_bytes.value));
    EXPECT_EQ(of->marked.sum(), static_cast<double>(row.marked_packets));
    for (std::size_t reason = 0; reason < kDropReasons; ++reason) {
      EXPECT_EQ(of->drops.at(reason).sum(), static_cast<double>(row.drops.at(reason))) << kDropReasonNames.at(reason);
    }
    const DelaySummary delay = of->delays.summary(row.sent_packets);
    EXPECT_EQ(delay.p50, row.delay.p50);
    EXPECT_EQ(delay.p99, row.delay.p99);
    EXPECT_EQ(delay.max, row.delay.max);
    EXPECT_EQ(of->backlog.sum() > 0, row.delay.max > 0ns);
    dropped += row.dropped_packets;
  }
  EXPECT_GT(dropped, 100u) << "else this test says little";
  EXPECT_EQ(run.collected.held(), 0u);
}

TEST(ReportCollector, AFlowsCurveAddsUpToWhatItSent) {
  const Replayed& run = the_run();
  const LargestFlows::Ranking ranking = run.collected.flows(4);
  ASSERT_EQ(ranking.largest.size(), 4u);
  double all = ranking.rest.sum();
  for (const LargestFlows::FlowSeries& flow : ranking.largest) {
    all += flow.series.sum();
    EXPECT_EQ(flow.series.sum(), static_cast<double>(flow.sent.value));
    const auto& rows = run.figures.flows.flows;
    const auto row = std::find_if(rows.begin(), rows.end(),
                                  [&](const FlowReport& each) { return each.source_port == flow.key.source_port; });
    ASSERT_NE(row, rows.end());
    EXPECT_EQ(flow.sent, row->wire_bytes);
    EXPECT_EQ(run.collected.classes().at(flow.class_index).name, row->class_name);
  }
  EXPECT_EQ(all, static_cast<double>(run.figures.status.links.at(0).wire_bytes.value));
}

TEST(ReportCollector, BacklogIsWhatIsHeldForAsLongAsItIsHeld) {
  ReportCollector collected;
  collected.obeys(policy_of(kPolicy), Instant{});
  Packet packet = packet_of(kTcp, 1, 80, 1000);
  for (packet.id.number = 1; packet.id.number <= 2; ++packet.id.number) collected.arrived(packet, Instant{});
  EXPECT_EQ(collected.held(), 2u);
  // 1000 bytes for 250 ms, and 500 for 100 ms.
  collected.decided({{0, 2}, Decision::drop, DropReason::aqm, 1, 1, {500}, 100ms}, Instant{100ms});
  collected.decided({{0, 1}, Decision::accept, {}, 1, 1, {1000}, 250ms}, Instant{250ms});
  EXPECT_EQ(collected.held(), 0u);
  const Series& backlog = collected.classes().at(1).backlog;
  EXPECT_NEAR(backlog.sum(), 1000 * 0.25 + 500 * 0.1, 1e-9);
  EXPECT_NEAR(backlog.at(0), 1500 * 0.001, 1e-9);
  EXPECT_NEAR(backlog.at(150), 1000 * 0.001, 1e-9);
  EXPECT_EQ(backlog.at(251), 0);
}

TEST(ReportCollector, AYearHasNoMoreBinsThanASecond) {
  ReportCollector collected;
  collected.obeys(policy_of(kPolicy), Instant{});
  for (const Nanos at : {0ns, 1ns, Nanos{399ms}, Nanos{400ms}, Nanos{3h}, Nanos{8760h}}) {
    collected.arrived(packet_of(kTcp, 1, 80, 1000), Instant{at});
    collected.decided({{}, Decision::accept, {}, 1, 1, {1014}, 0ns}, Instant{at});
    EXPECT_LE(collected.time().size(), TimeBins::kMost);
    EXPECT_LT(collected.time().index(Instant{at}), TimeBins::kMost);
  }
  EXPECT_GT(collected.time().size(), TimeBins::kMost / 2);
  const Series& sent = collected.classes().at(1).sent;
  EXPECT_EQ(sent.sum(), 6 * 1014);
  EXPECT_EQ(sent.at(0), 5 * 1014) << "all but the last are in the first half day";
  EXPECT_EQ(collected.flows(1).largest.at(0).series.sum(), 6 * 1014);
}

TEST(ReportCollector, OfManyFlowsTheLargestAreKept) {
  ReportCollector collected;
  collected.obeys(policy_of(kPolicy), Instant{});
  Instant now;
  const auto pass = [&](std::uint16_t source, std::uint16_t port, std::uint32_t bytes) {
    now += 1us;
    collected.arrived(packet_of(kTcp, source, port, bytes), now);
    collected.decided({{}, Decision::accept, {}, 1, 1, {bytes}, 0ns}, now);
  };
  // Given 50,000 small flows, and three large ones that begin when all places are taken.
  std::uint64_t all = 0;
  for (std::uint32_t i = 0; i < 50'000; ++i) {
    pass(static_cast<std::uint16_t>(i), 80, 100);
    all += 100;
    if (i < 1000 || i % 10 != 0) continue;
    const auto large = static_cast<std::uint16_t>(1 + i / 10 % 3);
    pass(large, 443, 1400);
    all += 1400;
  }
  const LargestFlows::Ranking ranking = collected.flows(10);
  ASSERT_EQ(ranking.largest.size(), 10u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(ranking.largest[i].key.destination_port, 443);
    EXPECT_GT(ranking.largest[i].sent.value, 1600u * 1400) << "nearly all of what it sent";
  }
  EXPECT_EQ(ranking.largest[3].key.destination_port, 80);
  double sum = ranking.rest.sum();
  for (const auto& flow : ranking.largest) sum += flow.series.sum();
  EXPECT_EQ(sum, static_cast<double>(all));
}

TEST(ReportCollector, AClassGoesOnWhereThePolicyKeepsIt) {
  ReportCollector collected;
  const Policy before = policy_of(kPolicy);
  Policy after = before;
  std::swap(after.classes.at(0), after.classes.at(1));
  after.classes.at(0).ceil = DataRate{8'000'000};
  collected.obeys(before, Instant{});
  collected.decided({{}, Decision::accept, {}, 1, 1, {100}, 0ns}, Instant{1ms});
  collected.obeys(after, Instant{1s});
  collected.decided({{}, Decision::accept, {}, 1, 0, {100}, 0ns}, Instant{2s});
  const ClassHistory& bulk = collected.classes().at(1);
  EXPECT_EQ(bulk.name, "bulk");
  EXPECT_EQ(bulk.sent.sum(), 200);
  ASSERT_EQ(bulk.limit.size(), 2u);
  EXPECT_EQ(bulk.limit[1].rate, DataRate{8'000'000});
  EXPECT_EQ(bulk.limit[1].since, Instant{1s});
  EXPECT_EQ(bulk.guarantee.size(), 1u) << "it has not changed";
  for (int i = 0; i < 1000; ++i) {
    after.classes.at(0).ceil = DataRate{8'000'000 + static_cast<std::uint64_t>(i)};
    collected.obeys(after, Instant{2s} + i * 1s);
  }
  EXPECT_LE(bulk.limit.size(), 200u);
  EXPECT_EQ(bulk.limit.back().rate, DataRate{8'000'999});
}

std::string cell(const std::string& text) {
  return "<td class=\"n\">" + text + "</td>";
}

TEST(ReportHtml, TheFiguresAreThoseOfStatusAndFlows) {
  const Replayed& run = the_run();
  const std::string page = report_html(run.report());
  for (const ClassReport& row : run.figures.status.classes) {
    const std::string named = "<td>" + row.name + "</td><td>up</td>";
    EXPECT_THAT(page, HasSubstr(named + cell(std::to_string(row.priority)))) << "the class has its row";
    EXPECT_THAT(
        page, HasSubstr(cell(with_unit(row.wire_bytes.value, size_units())) + cell(std::to_string(row.sent_packets))));
    EXPECT_THAT(page,
                HasSubstr(named + cell(std::to_string(row.in_packets)) + cell(std::to_string(row.dropped_packets))));
    if (row.delay.p99 == 0ns) continue;
    EXPECT_THAT(page, HasSubstr(cell(with_unit(static_cast<std::uint64_t>(row.delay.p99.count()), time_units())) +
                                cell(with_unit(static_cast<std::uint64_t>(row.delay.max.count()), time_units()))));
  }
  for (const FlowReport& flow : run.figures.flows.flows) {
    EXPECT_THAT(page, HasSubstr("<td>10.0.0.1:" + std::to_string(*flow.source_port) + "</td>"));
    EXPECT_THAT(page,
                HasSubstr("<td>" + flow.class_name + "</td>" + cell(with_unit(flow.wire_bytes.value, size_units())) +
                          cell(std::to_string(flow.packets)) + cell(std::to_string(flow.dropped_packets))));
  }
  EXPECT_THAT(page, HasSubstr("limit 6.00 Mbit/s"));
  EXPECT_THAT(page, HasSubstr("guarantee 2.00 Mbit/s"));
  EXPECT_THAT(page, HasSubstr("limit 10.00 Mbit/s")) << "of the link";
  EXPECT_THAT(page, HasSubstr("match = { protocol = &quot;udp&quot; }")) << "the policy";
}

TEST(ReportHtml, WhatOthersHaveWrittenStaysText) {
  Policy policy = policy_of(kPolicy);
  const std::string evil = "</title></pre><script>alert('1')</script>\"&\n\x1b]0;x\a{{policy}}";
  policy.classes.at(0).name = evil;
  policy.links.at(0).name = evil + "2";
  Replayed run(policy);
  run.figures.status.warnings = {evil};
  const std::string page = report_html({evil, {{evil, evil}}, evil, evil, run.figures, run.collected});
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, Not(HasSubstr("\x1b")));
  EXPECT_THAT(page, Not(HasSubstr("\a")));
  const std::string escaped =
      "&lt;/title&gt;&lt;/pre&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/"
      "script&gt;&quot;&amp;\n\xef\xbf\xbd]0;x\xef\xbf\xbd"
      "{{policy}}";
  for (const std::string& place : {"<title>" + escaped, "<h1>" + escaped, "<dt>" + escaped, "<dd>" + escaped,
                                   "<li>" + escaped, "<td>" + escaped, "<pre>" + escaped, ">" + escaped + "</span>"}) {
    EXPECT_THAT(page, HasSubstr(place)) << "and nothing is put in twice";
  }
}

TEST(ReportHtml, ThePageNeedsNothingFromOutside) {
  const std::string page = report_html(the_run().report());
  for (const char* way : {"http:", "https:", "src=", "href", "url(", "@import", "<script", "onload"}) {
    EXPECT_THAT(page, Not(HasSubstr(way)));
  }
  EXPECT_THAT(page, HasSubstr("http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';"));
  EXPECT_LT(page.size(), 400'000u);
}

TEST(ReportHtml, NoPacketsAreAPageToo) {
  const Policy policy = policy_of(kPolicy);
  ReportCollector collected;
  collected.obeys(policy, Instant{});
  const PunctualDriver driver(policy, 1500, Instant{}, {});
  const ReplayFigures figures = replay_figures(driver.shaper(), policy, {}, Instant{});
  const std::string page = report_html({"empty", {}, "test.toml", kPolicy, figures, collected});
  EXPECT_THAT(page, HasSubstr("3 classes saw no packet"));
  EXPECT_THAT(page, HasSubstr("Nothing was dropped, and nothing marked."));
  for (const char* none : {"nan", "inf\""}) EXPECT_THAT(page, Not(HasSubstr(none)));
}

}  // namespace
}  // namespace shaper
