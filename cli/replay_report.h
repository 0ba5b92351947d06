// The page that `shaper replay --html` writes.
#pragma once

#include <string>

#include "cli/policy_file.h"
#include "shaper/replay/replay_capture.h"
#include "shaper/replay/replay_log.h"
#include "shaper/replay/report_collector.h"

namespace shaper::cli {

[[nodiscard]] std::string capture_report(const std::string& capture, const LoadedPolicy& policy,
                                         const ReplayOptions& options, const ReplayResult& result);
[[nodiscard]] std::string log_report(const std::string& log, const ReportCollector& collected, LogReplay result);

}  // namespace shaper::cli
