// What a worker, which reads packets and text of strangers, may do: give verdicts, and little else.
#pragma once

namespace shaper {

// Both are for good, and throw std::system_error: a worker that believes itself confined must be so.

/// No capabilities but CAP_NET_ADMIN (the kernel asks for it at every verdict) and CAP_SYS_NICE (`realtime`), and no
/// way to new ones; the user `nobody` where there is one; no dump of the memory. To be called before there are threads,
/// which would keep what they have.
void drop_privileges();

/// From now on no program can be run, no file written, no socket opened that leads to the network; such calls fail with
/// EPERM, in all threads.
void filter_system_calls();

}  // namespace shaper
