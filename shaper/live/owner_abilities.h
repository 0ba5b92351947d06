// What cannot be found out about the owners of flows here.
#pragma once

#include <string>
#include <vector>

namespace shaper {

/// What this kernel and this process's privileges do not give, a line each: "KEY, KEY: REASON". By trying: the kernel
/// is asked about sockets made for that.
[[nodiscard]] std::vector<std::string> owner_limits();

}  // namespace shaper
