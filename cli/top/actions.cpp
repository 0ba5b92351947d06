#include "cli/top/actions.h"

#include <fmt/format.h>

#include "cli/top/flow_words.h"
#include "shaper/core/guard.h"
#include "shaper/model/plain_text.h"
#include "shaper/model/tables.h"

namespace shaper::top {

void refuse(State& state, std::string text) {
  state.message = Message{std::move(text), true};
}

void ask_for_limit(State& state) {
  if (state.part == Part::meters) {
    const Meter* meter = state.meter();
    if (meter != nullptr && meter->id) return refuse(state, "u lifts this limit; then l on a flow sets another one");
    return refuse(state, "l limits a flow (Tab); a class by ceil in the policy, others by 'shaper limit'");
  }
  const FlowReport* flow = state.flow();
  if (flow == nullptr) return refuse(state, "no flow is selected");
  state.stay_selected();
  if (flow->class_name == kGuardClass) return refuse(state, "this flow is the guard's: no live limit holds it");
  const auto selector = selector_of(*flow, state.direction_of(flow->link));
  if (!selector) return refuse(state, "this flow has no addresses that a limit could name");
  state.prompt =
      Prompt{Prompt::Kind::limit, fmt::format("limit {} to (5mbit, 5mbit 10m): ", flow_name(*flow)), "", *selector};
}

Order lift(State& state) {
  if (state.part == Part::meters) {
    const Meter* meter = state.meter();
    if (meter != nullptr && meter->id) return Lift{*meter->id};
    refuse(state, "only a live limit can be lifted");
    return {};
  }
  const FlowReport* flow = state.flow();
  const auto ids = flow != nullptr ? state.live_limits_of(*flow) : std::vector<std::uint64_t>();
  state.stay_selected();
  if (ids.size() == 1) return Lift{ids.front()};
  refuse(state, ids.empty() ? "no live limit holds this flow"
                            : fmt::format("live limits {} hold it: select one of them (Tab)", fmt::join(ids, ", ")));
  return {};
}

Order explain(State& state) {
  if (state.part == Part::meters) {
    if (state.meter() != nullptr) {
      state.page = Page{terminal_text(state.meter()->name), meter_text(*state.meter(), state.status()), {}};
    }
    return {};
  }
  const FlowReport* flow = state.flow();
  const auto question = flow != nullptr ? question_of(*flow, state.names()) : std::nullopt;
  state.stay_selected();
  if (question) return Explain{flow_name(*flow), format_packet(*question)};
  refuse(state, flow == nullptr ? "no flow is selected" : "this flow has no addresses that could be explained");
  return {};
}

Order limit_of(State& state, const Prompt& prompt) {
  std::string_view rest = prompt.text;
  std::vector<std::string> words;
  while (!rest.empty()) {
    const std::string_view word = take_word(rest);
    if (!word.empty() && word != "for") words.emplace_back(word);
  }
  if (words.empty()) return {};
  if (words.size() > 2) {
    refuse(state, "a limit is a rate, and a time if it is to end: 5mbit 10m");
    return {};
  }
  SetLimit order{prompt.selector, words[0], std::nullopt};
  if (words.size() == 2) order.time = words[1];
  return order;
}

}  // namespace shaper::top
