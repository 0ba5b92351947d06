// Brings a policy into force: first the daemon has its queues bound, then the rules lead packets there.
#pragma once

#include <string>
#include <vector>

#include "cli/daemon_link.h"
#include "cli/policy_file.h"

namespace shaper::cli {

/// How `up` and `reload` end well.
struct Applied {
  std::vector<QueuePair> queues;
  Backend backend = Backend::nft;
};

/// Loads the policy into the daemon, writes the undo record, installs or repairs the rules; notices go to stderr.
/// `policy_file` is empty for a policy made on the spot. Throws CommandError.
Applied apply(ControlClient& daemon, const RuntimeFolder& folder, const LoadedPolicy& policy,
              const std::string& policy_file, Backend backend);

/// Brings the policy into force in the daemon alone; its notices go to stderr. Throws CommandError.
[[nodiscard]] std::vector<QueuePair> load(ControlClient& daemon, const LoadedPolicy& policy);

/// The policy as the daemon has it, with the guard of the SSH ports of now: its rules may need more.
[[nodiscard]] Policy guarded(Policy policy);

/// One line for each link: what is shaped, by which queues.
[[nodiscard]] std::string describe(const Applied& applied, const Policy& policy);

/// iptables of `backend`; throws CommandError.
[[nodiscard]] Iptables iptables_of(Backend backend, const std::string& lock_file);

/// On stderr, if others have rules in the other back end.
void tell_of_mixed(const Iptables& iptables);

}  // namespace shaper::cli
