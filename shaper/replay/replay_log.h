// An event log through a fresh core: the same calls at the same times must give the same verdicts, to the last one.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "shaper/core/policy.h"
#include "shaper/model/config.h"
#include "shaper/replay/figures.h"

namespace shaper {

class ReportCollector;

struct LogReplay {
  std::uint64_t calls = 0;     ///< of the core
  std::uint64_t verdicts = 0;  ///< all equal to those in the log
  bool cut_short = false;      ///< the log ends inside the verdicts of its last call, as a log that was being written

  // With a report:
  ReplayFigures figures;    ///< at the end of the log
  std::string policy_text;  ///< that was in force then
};

/// Makes a policy from its text with the names of the log, or says in one line why not.
using PolicyReader = std::function<tl::expected<Policy, std::string>(std::string_view text, const NameLookup& names)>;
[[nodiscard]] tl::expected<Policy, std::string> read_logged_policy(std::string_view text, const NameLookup& names);

struct LogReplayOptions {
  PolicyReader read = read_logged_policy;
  std::ostream* events = nullptr;     ///< gets the log as this core writes it, if not null: the same text
  ReportCollector* report = nullptr;  ///< is told of packets and verdicts, if not null
};

/// Replays a log. The error is one line that begins with `log_name:line:`: the first difference, a line that cannot be
/// read, or lines that are missing.
[[nodiscard]] tl::expected<LogReplay, std::string> replay_log(std::FILE* log, std::string_view log_name,
                                                              const LogReplayOptions& options = {});

}  // namespace shaper
