// A policy as people read it: what `shaper check` prints.
//
// Everything is said, defaults too, so that nobody has to know them: rates in bits and in bytes per second, with
// "total" or "each"; bursts in bytes and in time. Derived values assume an MTU of 1500 bytes; the real one is known
// once the interface is.
#pragma once

#include <string>

#include "shaper/model/config.h"

namespace shaper {

/// Several lines, each ended by a newline.
[[nodiscard]] std::string describe_policy(const Policy& policy, const HostPolicy& host);

}  // namespace shaper
