#include <cstdio>

#include "cli/apply.h"
#include "cli/commands.h"

namespace shaper::cli {

/// Without a file: the one that is in force.
ExitCode reload(const std::optional<std::string>& file) {
  require_permission();
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
