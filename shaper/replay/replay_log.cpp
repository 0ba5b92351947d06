#include "shaper/replay/replay_log.h"

#include <fmt/format.h>

#include <utility>

#include "shaper/model/event_log.h"
#include "shaper/replay/input.h"
#include "shaper/replay/log_player.h"

namespace shaper {

tl::expected<Policy, std::string> read_logged_policy(std::string_view text, const NameLookup& names) {
  auto parsed = parse_policy(text, "policy in this line", names);
  if (!parsed) return tl::unexpected(parsed.error().text());
  return std::move(parsed->policy);
}

tl::expected<LogReplay, std::string> replay_log(std::FILE* log, std::string_view log_name,
                                                const LogReplayOptions& options) {
  std::uint64_t line_number = 1;
  const auto failure = [&](std::string_view what) {
    return tl::unexpected(fmt::format("{}:{}: {}", log_name, line_number, what));
  };
  Lines lines(log);
  if (lines.next() != kFirstEventLine) return failure(fmt::format("an event log begins with `{}`", kFirstEventLine));
  LogPlayer player(options);
  while (const auto line = lines.next()) {
    ++line_number;
    const auto event = parse_event(*line);
    if (!event) return failure(event.error());
    if (const std::string error = player.play(*event); !error.empty()) return failure(error);
  }
  if (lines.unreadable()) return failure("the rest cannot be read");
  if (!player.started()) return failure("the log ends in front of its `start` line");
  if (const std::string error = player.finish(); !error.empty()) return failure(error);
  LogReplay result = player.result();
  result.cut_short = lines.unfinished() || player.missing();
  if (options.report == nullptr) return result;
  result.figures = player.figures();
  result.policy_text = player.policy_text();
  return result;
}

}  // namespace shaper
