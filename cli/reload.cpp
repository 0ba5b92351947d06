#include <cstdio>

#include "cli/apply.h"
#include "cli/commands.h"
#include "shaper/live/nfqueue.h"

namespace shaper::cli {

namespace {

/// One of the policy's `operators` cannot install rules: the daemon has that done.
ExitCode reload_as_operator(const std::optional<std::string>& file) {
  const LoadedPolicy policy = load_policy(file.value_or(kDefaultPolicyFile));
  ControlClient daemon = connect_or_fail();
  (void)load(daemon, policy);
  (void)ask(daemon, "install-rules");
  std::puts("the policy is in force; the daemon checks the rules");
  return ExitCode::done;
}

}  // namespace

/// Without a file: the one that is in force.
ExitCode reload(const std::optional<std::string>& file) {
  if (!probe_permission()) return reload_as_operator(file);
  const auto folder = find_folder();
  const auto record = undo_record_of(folder);
  const bool known = record && !record->policy_file.empty();
  const std::string path = file ? *file : known ? record->policy_file : kDefaultPolicyFile;
  const LoadedPolicy policy = load_policy(path);
  ControlClient daemon = connect_or_fail();
  const Applied applied = apply(daemon, *folder, policy, path, record ? record->backend : Backend::host);
  std::fputs(describe(applied, policy.policy).c_str(), stdout);
  return ExitCode::done;
}

}  // namespace shaper::cli
