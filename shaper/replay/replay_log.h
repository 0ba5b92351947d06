// An event log through a fresh core: the same calls at the same times must give the same verdicts, to the last one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace shaper {

struct LogReplay {
  std::uint64_t calls = 0;     ///< of the core
  std::uint64_t verdicts = 0;  ///< all equal to those in the log
  bool cut_short = false;      ///< the log ends inside the verdicts of its last call, as a log that was being written
};

/// Replays the text of a log. The error is one line that begins with `log_name:line:`: the first difference, a line
/// that cannot be read, or lines that are missing.
[[nodiscard]] tl::expected<LogReplay, std::string> replay_log(std::string_view text, std::string_view log_name);

}  // namespace shaper
