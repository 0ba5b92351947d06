#include <fmt/format.h>

#include <cstdio>

#include "cli/apply.h"
#include "cli/commands.h"

namespace shaper::cli {

/// Rules first, so that nothing new is held; then the daemon lets go what it holds.
ExitCode down(bool dry_run) {
  if (!dry_run) require_permission();
  const auto folder = find_folder();
  const auto record = undo_record_of(folder);
  const Iptables iptables = iptables_of(record ? record->backend : Backend::host, folder ? folder->xtables_lock() : "");
  if (dry_run) {
    for (const Command& command : iptables.plan_remove()) {
      std::fputs(fmt::format("{} <<'EOF'\n{}EOF\n", command.text(), command.input).c_str(), stdout);
    }
    return ExitCode::done;
  }
  if (const auto removed = iptables.remove(); !removed) {
    throw CommandError(ExitCode::failed, fmt::format("{}; the daemon, if one runs, goes on", removed.error()));
  }
  auto daemon = connect(folder);
  if (folder) end_daemon(daemon, *folder);
  std::puts(daemon ? "rules removed, packets released, daemon stopped" : "no daemon runs here; no rules are left");
  return ExitCode::done;
}

}  // namespace shaper::cli
