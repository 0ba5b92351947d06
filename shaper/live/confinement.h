// What a process that reads packets and text of strangers may do: its work, and little else.
#pragma once

#include <cstdint>

namespace shaper {

/// Who gives up the rest: the worker gives verdicts; another process talks to Redis.
enum class Confined : std::uint8_t { worker, redis };

// Both are for good, and throw std::system_error: a process that believes itself confined must be so.

/// No capabilities but, for a worker, CAP_NET_ADMIN (the kernel asks for it at every verdict) and CAP_SYS_NICE
/// (`realtime`), else CAP_NET_RAW (the mark of a socket), and no way to new ones; the user `nobody` where there is one;
/// no dump of the memory. To be called before there are threads, which would keep what they have.
void drop_privileges(Confined who);

/// From now on no program can be run, no file written, and by a worker no socket opened that leads to the network; such
/// calls fail with EPERM, in all threads.
void filter_system_calls(Confined who);

}  // namespace shaper
