#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "cli/apply.h"
#include "cli/commands.h"
#include "shaper/live/daemon.h"

namespace shaper::cli {
namespace {

/// The daemon answers before it is quite gone; an `up` right behind this command must not meet it.
void wait_until_gone(const RuntimeFolder& folder) {
  constexpr int kTries = 500;
  for (int i = 0; i < kTries; ++i) {
    if (lock_instance(folder.path)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
  throw CommandError(ExitCode::failed, "the daemon has released all packets but does not end");
}

void close_record(const RuntimeFolder& folder, UndoRecord record) {
  if (record.closed) return;
  record.closed = true;
  if (const auto written = write_undo_record(folder.undo_record(), record); !written) {
    throw CommandError(ExitCode::failed, written.error());
  }
}

}  // namespace

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
  if (daemon) {
    (void)ask(*daemon, "down");
    wait_until_gone(*folder);
  }
  if (record) close_record(*folder, *record);
  std::puts(daemon ? "rules removed, packets released, daemon stopped" : "no daemon runs here; no rules are left");
  return ExitCode::done;
}

}  // namespace shaper::cli
