// What is done to the row that is selected.
#pragma once

#include "cli/top/orders.h"
#include "cli/top/state.h"

namespace shaper::top {

/// Asks for the rate of a limit for the flow.
void ask_for_limit(State& state);

/// Of the live limit, or the one that holds the flow.
[[nodiscard]] Order lift(State& state);

/// Of the flow by the daemon; of another row by what is known.
[[nodiscard]] Order explain(State& state);

/// What was typed as a limit: "5mbit", "5mbit 10m", "5mbit for 10m".
[[nodiscard]] Order limit_of(State& state, const Prompt& prompt);

/// One line about what cannot be done.
void refuse(State& state, std::string text);

}  // namespace shaper::top
