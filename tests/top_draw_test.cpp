// The picture that `shaper top` makes, at any size.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/golden_file.h"
#include "tests/top_view.h"

namespace shaper::top {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

TEST(History, AMinuteInEqualParts) {
  History history;
  EXPECT_EQ(history.rates(3), (std::vector<std::uint64_t>{0, 0, 0})) << "nothing is known";
  history.add(kStart, {100}, {});
  EXPECT_EQ(history.rates(3), (std::vector<std::uint64_t>{0, 0, 100}));
  history.add(kStart + 1s, {300}, {});
  history.add(kStart + 2s, {200}, {});
  EXPECT_EQ(history.rates(3), (std::vector<std::uint64_t>{0, 0, 300})) << "a peak is not lost";
  history.add(kStart + 41s, {50}, {});
  EXPECT_EQ(history.rates(3), (std::vector<std::uint64_t>{300, 300, 50})) << "without a look the one before holds";
  history.add(kStart + 1h, {7}, {});
  EXPECT_EQ(history.rates(3), (std::vector<std::uint64_t>{50, 50, 7}));
  EXPECT_TRUE(history.rates(0).empty());
}

TEST(History, DropsAreThoseOfTheLastSecond) {
  History history;
  history.add(kStart, {}, {100, 0, 0, 0, 5, 0});
  EXPECT_EQ(history.drops_per_second(), DropCounts{}) << "when they came is not known";
  history.add(kStart + 2s, {}, {120, 0, 1, 0, 5, 0});
  EXPECT_EQ(history.drops_per_second(), (DropCounts{10, 0, 1, 0, 0, 0})) << "one in two seconds is not none";
  history.add(kStart + 3s, {}, {3, 0, 0, 0, 0, 0});
  EXPECT_EQ(history.drops_per_second(), DropCounts{}) << "another worker counts from the start";
}

TEST(Graph, ABarHasEighthsOfACharacter) {
  EXPECT_EQ(bar(0, 100, 4, Charset::utf8), "····");
  EXPECT_EQ(bar(1, 1000, 4, Charset::utf8), "▏···") << "anything shows";
  EXPECT_EQ(bar(50, 100, 4, Charset::utf8), "██··");
  EXPECT_EQ(bar(47, 100, 4, Charset::utf8), "█▉··");
  EXPECT_EQ(bar(500, 100, 4, Charset::utf8), "████");
  EXPECT_EQ(bar(~std::uint64_t{0}, ~std::uint64_t{0}, 4, Charset::utf8), "████");
  EXPECT_EQ(bar(5, 0, 4, Charset::utf8), "····");
  EXPECT_EQ(bar(50, 100, 4, Charset::ascii), "##..");
  EXPECT_EQ(bar(1, 1000, 4, Charset::ascii), "-...");
  EXPECT_EQ(history_line({0, 1, 50, 100, 200}, 100, Charset::utf8), " ▁▄██");
  EXPECT_EQ(history_line({0, 1, 50, 100}, 100, Charset::ascii), " .-#");
}

TEST(Draw, EightyColumnsAndTwentyFourLines) {
  State state = a_state();
  EXPECT_EQ(screen_of(state), golden("top_80x24.txt"));
}

/// 1 for each of UTF-8's characters.
std::size_t longest_line(const Frame& frame) {
  std::size_t longest = 0;
  for (const Line& line : frame.lines) longest = std::max(longest, characters(line.text));
  return longest;
}

TEST(Draw, ItFitsWhateverTheSize) {
  State state = a_state();
  State paged = a_state();
  (void)press(paged, '?');
  State asked = a_state();
  (void)press(asked, 'l');
  state.message = Message{std::string(300, 'm'), true};
  for (std::size_t rows = 0; rows < 40; ++rows) {
    for (std::size_t columns = 1; columns < 150; columns += 7) {
      for (State* each : {&state, &paged, &asked}) {
        each->part = rows % 2 == 0 ? Part::flows : Part::meters;
        const Frame frame = draw(*each, {columns, rows}, Charset::utf8);
        EXPECT_EQ(frame.lines.size(), rows) << columns << "x" << rows;
        EXPECT_LE(longest_line(frame), columns) << columns << "x" << rows << '\n' << text_of(frame);
        EXPECT_LE(frame.cursor.value_or(0), columns);
      }
    }
  }
}

TEST(Draw, WhereThereIsNoRoomForBothPartsTheOneWithTheKeysIsShown) {
  State state = a_state();
  EXPECT_THAT(screen_of(state, 40, 10), HasSubstr(":5202"));
  EXPECT_THAT(screen_of(state, 40, 10), Not(HasSubstr("71.20")));
  (void)press(state, KeyCode::tab);
  EXPECT_THAT(screen_of(state, 40, 10), HasSubstr("71.20"));
  EXPECT_THAT(screen_of(state, 40, 10), Not(HasSubstr(":5202")));
}

TEST(Draw, AsciiWhereTheTerminalSpeaksNothingElse) {
  State state = a_state();
  const std::string screen = screen_of(state, 120, 24, Charset::ascii);
  EXPECT_TRUE(std::all_of(screen.begin(), screen.end(), [](char c) { return (c >= ' ' && c <= '~') || c == '\n'; }));
  EXPECT_THAT(screen, HasSubstr("####"));
}

TEST(Draw, NoNameSteersTheTerminal) {
  const std::string evil = "\"\n\x1b]0;x\a<script>'";
  State state = a_state();
  StatusReport status = a_status();
  status.links[0].name = status.classes[0].link = evil;
  status.classes[1].name = status.limits[0].name = status.limits[0].state = evil;
  status.limits[1].selector = evil;
  status.warnings = {evil};
  FlowsReport flows = three_flows();
  FlowReport& flow = flows.flows[1];
  flow.class_name = flow.link = flow.protocol = flow.source = flow.destination = evil;
  flow.user = flow.owner = evil;
  state.take(status, kStart + 2s);
  state.take(flows, std::nullopt);
  std::string shown = screen_of(state, 200, 40);
  for (std::size_t row = 0; row < state.meters().size(); ++row) {
    state.part = Part::meters;
    state.meter_cursor.at = row;
    shown += screen_of(state, 200, 40);
    (void)press(state, 'e');
    shown += screen_of(state, 200, 40);
    (void)press(state, 'q');
  }
  state.take_trouble({}, evil, kStart + 3s);
  state.message = Message{evil, true};
  shown += screen_of(state, 200, 40);
  EXPECT_EQ(shown.find_first_of("\x1b\a"), std::string::npos);
  EXPECT_THAT(shown, HasSubstr("\"\\x0a\\x1b]0;x\\x07<script>'"));
}

TEST(Draw, UnshapedTrafficIsRed) {
  const auto first_style = [](State& state) { return draw(state, {80, 24}, Charset::utf8).lines[0].spans[0].style; };
  State state = a_state();
  EXPECT_EQ(first_style(state), Style::good);
  StatusReport status = a_status();
  status.warnings = {"odd"};
  state.take(status, kStart + 2s);
  EXPECT_EQ(first_style(state), Style::full);
  status.rules = RulesStatus::missing;
  state.take(status, kStart + 3s);
  EXPECT_EQ(first_style(state), Style::bad);
  StatusReport bypassed;
  bypassed.mode = Mode::bypassed;
  state.take_trouble(bypassed, "no daemon runs here", kStart + 4s);
  EXPECT_EQ(first_style(state), Style::bad);
  EXPECT_THAT(screen_of(state), HasSubstr("bypassed: no daemon runs here"));
  EXPECT_THAT(screen_of(state), Not(HasSubstr(":5202"))) << "nothing old is shown as if it were so";
}

TEST(Draw, ALongListingIsToldOf) {
  State state = a_state();
  EXPECT_THAT(screen_of(state), Not(HasSubstr("listed")));
  state.take(three_flows(), 14s);
  EXPECT_THAT(screen_of(state), HasSubstr("  every 1 s\n"));
  state.take(a_status(), kStart + 2s, 3s);
  EXPECT_THAT(screen_of(state), HasSubstr("  every 3 s\n"));
}

}  // namespace
}  // namespace shaper::top
