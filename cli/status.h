// What is known where no daemon runs.
#pragma once

#include <optional>

#include "cli/commands.h"
#include "shaper/live/runtime_folder.h"
#include "shaper/model/report.h"

namespace shaper::cli {

/// Whether traffic is bypassed or blocked, and why the last daemon ended. Looks at the rules where we may.
[[nodiscard]] StatusReport report_without_daemon(const std::optional<RuntimeFolder>& folder);

/// A line on stderr; the exit code.
[[nodiscard]] ExitCode say_no_daemon();

}  // namespace shaper::cli
