// What cannot be found out about the owners of flows here.
#pragma once

#include <string>
#include <vector>

namespace shaper {

// A line each: "KEY, KEY: REASON".

/// What this kernel does not give. By trying: it is asked about sockets made for that.
[[nodiscard]] std::vector<std::string> kernel_owner_limits();

/// That, and what the privileges of this process do not.
[[nodiscard]] std::vector<std::string> owner_limits();

}  // namespace shaper
