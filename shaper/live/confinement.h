// What a process that reads packets and text of strangers may do: its work, and little else.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace shaper {

/// Who gives up the rest: the worker gives verdicts; others talk to Redis, find the owners of flows, answer HTTP.
enum class Confined : std::uint8_t { worker, redis, owners, http };

/// A user, and the groups whose files it may read.
struct Account {
  uid_t user = 0;
  gid_t group = 0;
  std::vector<gid_t> further;
};

/// The user that owns nothing, in every Linux.
inline constexpr uid_t kNobody = 65'534;

// Both are for good, and throw std::system_error: a process that believes itself confined must be so.

/// No capabilities but, for a worker, CAP_NET_ADMIN (the kernel asks for it at every verdict) and CAP_SYS_NICE
/// (`realtime`), to talk to Redis CAP_NET_RAW (the mark of a socket), to find owners CAP_SYS_PTRACE and
/// CAP_DAC_OVERRIDE (descriptors of other users' processes, an engine's socket; what they would let it write the filter
/// below forbids), and no way to new ones; the user `account` where there is one and we may become it (none: who we
/// are); no dump of the memory. To be called before there are threads, which would keep what they have.
void drop_privileges(Confined who, const std::optional<Account>& account = Account{kNobody, kNobody, {}});

/// From now on no program can be run, no file written, no thread started, and no socket opened that leads to the
/// network but by who talks to Redis; such calls fail with EPERM, in all threads.
void filter_system_calls(Confined who);

}  // namespace shaper
