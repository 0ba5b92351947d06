// What keys do in `shaper top`, and what stays selected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/top/flow_words.h"
#include "tests/top_view.h"

namespace shaper::top {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::uint16_t selected_port(const State& state) {
  return state.flow() == nullptr ? std::uint16_t{0} : state.flow()->destination_port.value_or(0);
}

TEST(TopState, TheSelectedFlowStaysSelected) {
  State state = a_state();
  EXPECT_EQ(selected_port(state), 5202) << "the fastest";
  (void)press(state, 'j');
  EXPECT_EQ(selected_port(state), 5203);
  (void)press(state, 's');
  (void)type(state, "drops");
  EXPECT_EQ(state.flow_cursor.at, 0u);
  EXPECT_EQ(selected_port(state), 5203);
  FlowsReport later = three_flows();
  later.flows.insert(later.flows.begin(), flow_of(9999, 50));
  later.flows.front().dropped_packets = 1000;
  state.take(later, std::nullopt);
  EXPECT_EQ(state.flow_cursor.at, 1u);
  EXPECT_EQ(selected_port(state), 5203);
  later.flows.pop_back();
  state.take(later, std::nullopt);
  EXPECT_EQ(state.flow_cursor.at, 1u) << "it has ended: the place stays";
  state.take(FlowsReport{}, std::nullopt);
  EXPECT_EQ(state.flow(), nullptr);
}

TEST(TopState, UntilSomethingIsSelectedTheFirstOneIs) {
  State state = a_state();
  (void)press(state, '>');  // by bytes: the same order
  (void)press(state, 'r');
  EXPECT_EQ(selected_port(state), 5201) << "the smallest";
  (void)press(state, 'G');
  EXPECT_EQ(selected_port(state), 5202);
  (void)press(state, 'r');
  EXPECT_EQ(selected_port(state), 5202);
  (void)press(state, 'r');
  (void)press(state, 'g');
  (void)press(state, 'r');
  EXPECT_EQ(state.flow_cursor.at, 0u);
}

TEST(TopState, TheCursorIsAlwaysSeen) {
  Cursor cursor;
  cursor.fit(5, 100);
  cursor.move(7, 100);
  cursor.fit(5, 100);
  EXPECT_EQ(cursor.first, 3u);
  cursor.move(-1, 100);
  cursor.fit(5, 100);
  EXPECT_EQ(cursor.first, 3u) << "it does not scroll without need";
  cursor.fit(2, 100);
  EXPECT_EQ(cursor.first, 5u) << "a smaller terminal";
  cursor.fit(5, 4);
  EXPECT_EQ(cursor.at, 3u);
  EXPECT_EQ(cursor.first, 0u);
  cursor.fit(0, 0);
  EXPECT_EQ(cursor.at, 0u);
}

TEST(TopState, SortsByNameAndByTheNextOne) {
  State state = a_state();
  for (const char* name : {"bytes", "packets", "backlog", "delay", "drops", "age", "rate"}) {
    (void)press(state, '>');
    EXPECT_EQ(flow_sort_name(state.sort()), name);
  }
  (void)press(state, '<');
  EXPECT_EQ(state.sort(), FlowSort::age);
  (void)press(state, 's');
  (void)type(state, "colour");
  EXPECT_TRUE(state.message->failure);
  EXPECT_EQ(state.sort(), FlowSort::age) << "it stays as it was";
}

TEST(TopState, FiltersByText) {
  State state = a_state();
  (void)press(state, '/');
  (void)press(state, 'x');
  (void)press(state, KeyCode::backspace);
  (void)type(state, "SYNC");
  EXPECT_EQ(state.flow_count(), 1u);
  EXPECT_EQ(selected_port(state), 5203);
  EXPECT_THAT(screen_of(state), HasSubstr("1 of 3 flows"));
  (void)press(state, '/');
  (void)press(state, 'x');
  (void)press(state, KeyCode::escape);
  EXPECT_EQ(state.filter(), "SYNC") << "Esc changes nothing";
}

TEST(TopState, PauseAndIntervals) {
  State state = a_state();
  (void)press(state, ' ');
  EXPECT_TRUE(state.paused);
  (void)press(state, '-');
  EXPECT_EQ(state.interval, 1s) << "not below a second";
  for (int i = 0; i < 10; ++i) (void)press(state, '+');
  EXPECT_EQ(state.interval, 60s);
}

TEST(TopState, AFlowIsLimited) {
  State state = a_state();
  (void)press(state, 'l');
  EXPECT_THAT(screen_of(state), HasSubstr("limit tcp 10.77"));
  state.take(FlowsReport{}, std::nullopt);  // what was selected is limited, whatever comes meanwhile
  const Order order = type(state, "5mbit for 10m");
  ASSERT_TRUE(std::holds_alternative<SetLimit>(order));
  const auto& limit = std::get<SetLimit>(order);
  EXPECT_EQ(limit.selector, "protocol=tcp,local=10.77.2.1,local_port=58608,remote=10.77.2.2,remote_port=5202");
  EXPECT_EQ(limit.rate, "5mbit");
  EXPECT_EQ(limit.time, "10m");
}

TEST(TopState, WhatIsNoLimitIsNotAsked) {
  State state = a_state();
  for (const char* text : {"", "  ", "1 2 3"}) {
    (void)press(state, 'l');
    EXPECT_TRUE(std::holds_alternative<std::monostate>(type(state, text))) << text;
  }
  (void)press(state, KeyCode::tab);
  (void)press(state, 'l');
  EXPECT_TRUE(state.message->failure);
  EXPECT_FALSE(state.prompt) << "a class is no flow";
  State empty(NameLookup{});
  for (const char key : {'l', 'u', 'e'}) {
    EXPECT_TRUE(std::holds_alternative<std::monostate>(press(empty, key)));
    EXPECT_EQ(empty.message->text, key == 'u' ? "no live limit holds this flow" : "no flow is selected");
  }
}

TEST(TopState, ALiveLimitIsLiftedFromEitherSide) {
  State state = a_state();
  EXPECT_TRUE(std::holds_alternative<std::monostate>(press(state, 'u'))) << "nothing holds the first flow";
  FlowsReport other_order = three_flows();
  other_order.flows[0].rate = {99'000'000};
  state.take(other_order, std::nullopt);
  EXPECT_EQ(selected_port(state), 5202) << "what a key was about stays selected";
  state.take(three_flows(), std::nullopt);
  (void)press(state, 'j');
  EXPECT_THAT(screen_of(state), HasSubstr("under live-1"));
  const Order by_flow = press(state, 'u');
  ASSERT_TRUE(std::holds_alternative<Lift>(by_flow));
  EXPECT_EQ(std::get<Lift>(by_flow).id, 1u);
  (void)press(state, KeyCode::tab);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(press(state, 'u'))) << "a link";
  (void)press(state, KeyCode::end);
  EXPECT_TRUE(std::holds_alternative<Lift>(press(state, 'u')));
}

TEST(TopState, OfTwoLimitsOneIsToBeSelected) {
  State state = a_state();
  StatusReport status = a_status();
  status.limits.push_back(status.limits.back());
  status.limits.back().id = 2;
  status.limits.back().name = "live-2";
  status.limits.back().selector = "user=root";
  state.take(status, kStart + 2s);
  (void)press(state, 'j');
  EXPECT_TRUE(std::holds_alternative<std::monostate>(press(state, 'u')));
  EXPECT_THAT(state.message->text, HasSubstr("live limits 1, 2 hold it"));
}

TEST(TopState, AFlowIsExplainedByTheDaemon) {
  State state = a_state();
  const Order order = press(state, 'e');
  ASSERT_TRUE(std::holds_alternative<Explain>(order));
  EXPECT_EQ(std::get<Explain>(order).packet, "tcp 10.77.2.1:58608 > 10.77.2.2:5202 user=0 link=uplink");
  (void)press(state, KeyCode::tab);
  (void)press(state, 'j');
  (void)press(state, 'j');
  EXPECT_TRUE(std::holds_alternative<std::monostate>(press(state, 'e')));
  EXPECT_THAT(screen_of(state), HasSubstr("class backup on uplink"));
  (void)press(state, 'q');
  EXPECT_FALSE(state.page) << "q leaves the page first";
  EXPECT_TRUE(std::holds_alternative<Quit>(press(state, 'q')));
}

TEST(TopState, HistoriesGoOnWithTheNextDaemon) {
  State state = a_state();
  (void)press(state, KeyCode::tab);
  (void)press(state, 'j');
  StatusReport bypassed;
  bypassed.mode = Mode::bypassed;
  for (const auto time : {20s, 21s}) state.take_trouble(bypassed, "gone", kStart + time);
  EXPECT_TRUE(state.meters().empty());
  EXPECT_EQ(state.meter(), nullptr);
  state.take(a_status(), kStart + 30s);
  ASSERT_NE(state.meter(), nullptr);
  EXPECT_EQ(state.meter()->name, "web") << "what was selected";
  constexpr std::uint64_t kRate = 71'200'000;
  EXPECT_EQ(state.meter()->history.rates(6), (std::vector<std::uint64_t>{0, 0, kRate, kRate, 0, kRate}));
}

TEST(TopState, APageScrolls) {
  State state = a_state();
  state.page = Page{"numbers", "one\ntwo\nthree\nfour\nfive\nsix\n" + std::string(100, 'x') + "\n", {}};
  EXPECT_THAT(screen_of(state, 40, 6), HasSubstr("numbers  (1 to 3 of 9 lines)\none\ntwo\nthree\n"));
  (void)press(state, KeyCode::down);
  EXPECT_THAT(screen_of(state, 40, 6), HasSubstr("\ntwo\nthree\nfour\n"));
  (void)press(state, KeyCode::end);
  EXPECT_THAT(screen_of(state, 40, 6), HasSubstr("(7 to 9 of 9 lines)"));
  (void)press(state, KeyCode::page_up);
  EXPECT_THAT(screen_of(state, 40, 6), HasSubstr("\nfour\nfive\nsix\n"));
  (void)press(state, KeyCode::home);
  EXPECT_THAT(screen_of(state, 40, 6), HasSubstr("(1 to 3 of 9 lines)"));
}

TEST(FlowWords, TheLocalSideGoesByTheDirection) {
  FlowReport flow = flow_of(443, 0);
  EXPECT_EQ(selector_of(flow, Direction::ingress),
            "protocol=tcp,local=10.77.2.2,local_port=443,remote=10.77.2.1,remote_port=58608");
  flow.protocol = "icmp";
  flow.source = "2001:db8::1";
  flow.destination = "2001:db8::2";
  flow.source_port = flow.destination_port = std::nullopt;
  EXPECT_EQ(selector_of(flow, Direction::egress), "protocol=icmp,local=2001:db8::1,remote=2001:db8::2");
  flow.user = "1001";
  EXPECT_EQ(format_packet(*question_of(flow, {})), "icmp 2001:db8::1 > 2001:db8::2 user=1001 link=uplink");
  EXPECT_EQ(question_of(flow, {})->packet.headers.protocol, kIcmpv6);
  flow.source = "-";
  EXPECT_EQ(selector_of(flow, Direction::egress), std::nullopt);
  EXPECT_FALSE(question_of(flow, {}));
}

}  // namespace
}  // namespace shaper::top
