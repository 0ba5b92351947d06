#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "cli/commands.h"
#include "cli/daemon_link.h"
#include "cli/policy_file.h"
#include "shaper/live/name_lookup.h"
#include "shaper/model/packet_text.h"

namespace shaper::cli {
namespace {

/// What the policy in a file says, without a daemon.
void explain_by_file(const PacketQuestion& question, const std::string& file) {
  const LoadedPolicy loaded = load_policy(file);
  const Shaper shaper(loaded.policy, StartCredit::full, HashKey{}, Instant{});
  const auto text = explain_packet(question, loaded.policy, shaper);
  if (!text) throw CommandError(ExitCode::failed, text.error());
  std::fputs(text->c_str(), stdout);
}

}  // namespace

ExitCode explain(const ExplainOptions& options) {
  const auto question = parse_packet(options.packet, system_names());
  if (!question) throw CommandError(ExitCode::wrong_usage, question.error());
  if (options.policy_file) {
    explain_by_file(*question, *options.policy_file);
    return ExitCode::done;
  }
  if (auto daemon = connect(find_folder())) {
    std::fputs(ask(*daemon, "explain", format_packet(*question)).c_str(), stdout);
    return ExitCode::done;
  }
  if (::access(kDefaultPolicyFile, F_OK) != 0) {
    throw CommandError(ExitCode::no_daemon, fmt::format("no daemon runs here and there is no {}; name a policy with "
                                                        "--policy FILE",
                                                        kDefaultPolicyFile));
  }
  explain_by_file(*question, kDefaultPolicyFile);
  return ExitCode::done;
}

}  // namespace shaper::cli
