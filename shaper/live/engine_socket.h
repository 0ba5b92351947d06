// One question to a container engine (docker, podman) at its local socket, in HTTP/1.0.
#pragma once

#include <string>

#include "shaper/core/units.h"

namespace shaper {

/// The body of the answer to `GET PATH`; empty: nobody answers there with 200 within `patience`, or says more than
/// 8 MiB. Waits.
[[nodiscard]] std::string ask_engine(const std::string& socket, const std::string& path, Nanos patience);

}  // namespace shaper
