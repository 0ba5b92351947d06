// The daemon of this network namespace, as the command line sees it: where it is, whether it runs, how to start it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "shaper/live/control_client.h"
#include "shaper/live/runtime_folder.h"
#include "shaper/live/undo_record.h"
#include "shaper/model/report.h"

namespace shaper::cli {

/// The folder if a daemon was ever here. Throws CommandError.
[[nodiscard]] std::optional<RuntimeFolder> find_folder();

/// Nothing: no daemon runs here. Throws CommandError without the permission to ask.
[[nodiscard]] std::optional<ControlClient> connect(const std::optional<RuntimeFolder>& folder);

/// The running daemon, or CommandError with exit code 3.
[[nodiscard]] ControlClient connect_or_fail();

/// The body of an answer that is `ok`; throws CommandError for another one.
[[nodiscard]] std::string ask(ControlClient& daemon, std::string_view verb, std::string_view body = "");

/// What the daemon reports. Throws CommandError, with a word about versions where theirs differ.
[[nodiscard]] StatusReport ask_status(ControlClient& daemon);
[[nodiscard]] FlowsReport ask_flows(ControlClient& daemon);
[[nodiscard]] ClusterReport read_cluster(const std::string& answer, ControlClient& daemon);

/// Throws CommandError (exit code 4) unless we may bind queues and change rules here.
void require_permission();

/// The `shaperd` beside this program, of the sibling build folder, or in PATH. Throws CommandError.
[[nodiscard]] std::string daemon_program();

/// Runs shaperd, which goes to the background once it listens. Throws CommandError with its message.
void start_daemon(bool empty_buckets);

/// Ends the daemon, if one runs, and removes its run-time folder: nothing of us stays. Throws CommandError.
void end_daemon(std::optional<ControlClient>& daemon, const RuntimeFolder& folder);

/// The undo record of `folder`; one that cannot be read is reported on stderr and taken for none.
[[nodiscard]] std::optional<UndoRecord> undo_record_of(const std::optional<RuntimeFolder>& folder);

}  // namespace shaper::cli
