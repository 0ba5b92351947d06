// What each key does.
#pragma once

#include "cli/top/orders.h"
#include "cli/top/state.h"

namespace shaper::top {

/// Changes what is shown, or returns what the daemon is to be asked.
[[nodiscard]] Order on_key(State& state, const Key& key);

}  // namespace shaper::top
