#include <cstdio>

#include "cli/apply.h"
#include "cli/commands.h"
#include "cli/policy_file.h"
#include "shaper/model/policy_text.h"

namespace shaper::cli {

ExitCode check(const std::string& file) {
  const LoadedPolicy loaded = load_policy(file);
  warn_of_owners(loaded.policy);
  if (const auto iptables = Iptables::of(Backend::host)) tell_of_mixed(*iptables);  // sees nothing without root
  std::fputs(describe_policy(loaded.policy, loaded.host).c_str(), stdout);
  return ExitCode::done;
}

}  // namespace shaper::cli
