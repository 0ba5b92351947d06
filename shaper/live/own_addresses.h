// The addresses of this host, in this network namespace.
#pragma once

#include <set>

#include "shaper/core/packet.h"

namespace shaper {

/// IPv4 and IPv6, of all interfaces; empty where the kernel does not answer.
[[nodiscard]] std::set<Address> own_addresses();

}  // namespace shaper
