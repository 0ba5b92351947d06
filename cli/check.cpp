#include <cstdio>

#include "cli/commands.h"
#include "cli/policy_file.h"
#include "shaper/model/policy_text.h"

namespace shaper::cli {

ExitCode check(const std::string& file) {
  const LoadedPolicy loaded = load_policy(file);
  std::fputs(describe_policy(loaded.policy, loaded.host).c_str(), stdout);
  return ExitCode::done;
}

}  // namespace shaper::cli
