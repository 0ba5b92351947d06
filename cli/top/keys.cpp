#include "cli/top/keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "cli/top/actions.h"

namespace shaper::top {
namespace {

constexpr std::array<std::chrono::seconds, 6> kIntervals{std::chrono::seconds{1},  std::chrono::seconds{2},
                                                         std::chrono::seconds{5},  std::chrono::seconds{10},
                                                         std::chrono::seconds{30}, std::chrono::seconds{60}};

constexpr std::string_view kHelp =
    R"(Above: links, their classes, and limits. Below: flows.
  rate       on the wire over the last second
  of         what it may have: its limit, or what the link has
  used       rate as a share of that; the line beside it is the last minute
  backlog    what waits now; p99: one of 100 packets was delayed longer
  drops/s    of the last second, by reason; of a limit, its state
  state      what a flow waits for: bulk: class, link or a limit is full;
             limited: a bucket of its own; new: it goes first; passing: nothing

  arrows, j k, PgUp PgDn, g G   select a row; it stays selected
  Tab        the other part
  l          limit the flow: to a rate, and for a time if it is to end
  u          lift the live limit, or the one that holds the flow
  e, Enter   explain the flow, or the class, link or limit; all warnings
  s          sort flows by rate, bytes, packets, backlog, delay, drops or age
  < >        sort by the one before or behind it
  r          the other way round
  /          only flows with this text in a word; empty: all
  space      pause
  + -        look less or more often
  q          quit
)";

void sort_by_next(State& state, int step) {
  constexpr int kSorts = static_cast<int>(FlowSort::age) + 1;
  const int next = (static_cast<int>(state.sort()) + step + kSorts) % kSorts;
  state.set_sort(static_cast<FlowSort>(next));
}

void change_interval(State& state, bool longer) {
  const auto at = std::find(kIntervals.begin(), kIntervals.end(), state.interval);
  if (longer && at + 1 != kIntervals.end()) state.interval = *(at + 1);
  if (!longer && at != kIntervals.begin()) state.interval = *(at - 1);
}

void ask(State& state, Prompt::Kind kind, std::string question, std::string text = "") {
  state.prompt = Prompt{kind, std::move(question), std::move(text), ""};
}

Order none() {
  return {};
}

/// What a letter does.
const std::map<char, Order (*)(State&)> kActions{
    {'q', [](State&) -> Order { return Quit{}; }},
    {'?',
     [](State& state) {
       return state.page = Page{"help", std::string(kHelp), {}}, none();
     }},
    {'j', [](State& state) { return state.move(1), none(); }},
    {'k', [](State& state) { return state.move(-1), none(); }},
    {'g', [](State& state) { return state.select_first(), none(); }},
    {'G', [](State& state) { return state.select_last(), none(); }},
    {'l', [](State& state) { return ask_for_limit(state), none(); }},
    {'u', lift},
    {'e', explain},
    {'s', [](State& state) { return ask(state, Prompt::Kind::sort, "sort by " + flow_sorts() + ": "), none(); }},
    {'<', [](State& state) { return sort_by_next(state, -1), none(); }},
    {'>', [](State& state) { return sort_by_next(state, 1), none(); }},
    {'r', [](State& state) { return state.set_reverse(!state.reverse()), none(); }},
    {'/', [](State& state) { return ask(state, Prompt::Kind::filter, "only flows with: ", state.filter()), none(); }},
    {' ', [](State& state) { return state.paused = !state.paused, none(); }},
    {'+', [](State& state) { return change_interval(state, true), none(); }},
    {'-', [](State& state) { return change_interval(state, false), none(); }},
};

Order finish_prompt(State& state) {
  const Prompt prompt = *state.prompt;
  state.prompt.reset();
  if (prompt.kind == Prompt::Kind::limit) return limit_of(state, prompt);
  if (prompt.kind == Prompt::Kind::filter) {
    state.set_filter(prompt.text);
  } else if (const auto sort = parse_flow_sort(prompt.text)) {
    state.set_sort(*sort);
  } else if (!prompt.text.empty()) {
    refuse(state, fmt::format("flows are sorted by {}", flow_sorts()));
  }
  return {};
}

Order on_prompt_key(State& state, const Key& key) {
  constexpr std::size_t kLongest = 200;
  std::string& text = state.prompt->text;
  if (key.code == KeyCode::enter) return finish_prompt(state);
  if (key.code == KeyCode::escape) {
    state.prompt.reset();
    return {};
  }
  if (key.code == KeyCode::backspace && !text.empty()) text.pop_back();
  if (key.code == KeyCode::character && text.size() < kLongest) text += key.character;
  return {};
}

/// How far a key moves in a list; nothing: it is no such key.
std::optional<std::ptrdiff_t> step_of(const Key& key, const Cursor& cursor, std::size_t count) {
  const auto page = static_cast<std::ptrdiff_t>(cursor.rows);
  const auto all = static_cast<std::ptrdiff_t>(count);
  const std::map<KeyCode, std::ptrdiff_t> steps{{KeyCode::up, -1},         {KeyCode::down, 1},
                                                {KeyCode::page_up, -page}, {KeyCode::page_down, page},
                                                {KeyCode::home, -all},     {KeyCode::end, all}};
  const auto step = steps.find(key.code);
  return step == steps.end() ? std::nullopt : std::optional(step->second);
}

void on_page_key(State& state, const Key& key) {
  Cursor& cursor = state.page->cursor;
  const bool closes = key.code == KeyCode::escape || key.code == KeyCode::enter ||
                      (key.code == KeyCode::character && key.character == 'q');
  if (closes) return state.page.reset();
  // draw() keeps it within the text.
  const auto lines = static_cast<std::size_t>(std::count(state.page->text.begin(), state.page->text.end(), '\n'));
  Key as_arrow = key;
  if (key.character == 'j' || key.character == ' ')
    as_arrow.code = key.character == 'j' ? KeyCode::down : KeyCode::page_down;
  if (key.character == 'k') as_arrow.code = KeyCode::up;
  const auto step = step_of(as_arrow, cursor, lines + cursor.first + cursor.rows);
  if (!step) return;
  const auto first = static_cast<std::ptrdiff_t>(cursor.first) + *step;
  cursor.first = static_cast<std::size_t>(std::max<std::ptrdiff_t>(first, 0));
}

}  // namespace

Order on_key(State& state, const Key& key) {
  state.message.reset();
  if (state.prompt) return on_prompt_key(state, key);
  if (state.page) {
    on_page_key(state, key);
    return {};
  }
  if (key.code == KeyCode::character) {
    const auto action = kActions.find(key.character);
    return action == kActions.end() ? Order() : action->second(state);
  }
  if (key.code == KeyCode::enter) return explain(state);
  if (key.code == KeyCode::home) {
    state.select_first();
    return {};
  }
  if (key.code == KeyCode::tab) state.part = state.part == Part::flows ? Part::meters : Part::flows;
  const bool flows = state.part == Part::flows;
  const Cursor& cursor = flows ? state.flow_cursor : state.meter_cursor;
  if (const auto step = step_of(key, cursor, flows ? state.flow_count() : state.meters().size())) state.move(*step);
  return {};
}

}  // namespace shaper::top
