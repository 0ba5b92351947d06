// The guard: a guaranteed share for the operator's SSH, so that nobody locks himself out by a policy.
//
// Each link with `guard` has a class of that name for TCP of the guarded local ports, with a priority and a rate of its
// own. It is a share for those who send little, not a way around the policy: a flow belongs to it only while a small
// bucket of the flow's own covers its packets. A packet that it does not cover takes the flow, and what it holds, to
// the class of the policy. The flow comes back when it holds nothing and its bucket is full again; until then its
// packets keep the bucket empty, so that it must really send less (docs/decisions/0016).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "shaper/core/policy.h"
#include "shaper/core/token_bucket.h"

namespace shaper {

inline constexpr std::string_view kGuardClass = "guard";
inline constexpr DataRate kGuardRate{256'000};

/// A session's beginning, or a screen that is drawn again, comes to 2 to 8 kB. Keystrokes and their echo are 5 to
/// 20 kbit/s.
inline constexpr ByteCount kGuardBurst{8'000};
inline constexpr BucketSpec kGuardedFlow{{64'000}, {}, kGuardBurst};

/// Guards these local TCP ports: on each link with `guard` a class for them is added behind all others. Those of an
/// earlier call go. No port: no guard.
void set_guard_ports(Policy& policy, std::vector<std::uint16_t> ports);

}  // namespace shaper
