// `shaper limit` and `shaper unlimit`.
#include "cli/limit.h"

#include <fmt/format.h>

#include <cstdio>

#include "cli/commands.h"
#include "cli/daemon_link.h"
#include "shaper/live/name_lookup.h"
#include "shaper/model/live_limits.h"
#include "shaper/model/tables.h"
#include "shaper/model/units_text.h"

namespace shaper::cli {
namespace {

constexpr std::chrono::hours kLongest{24 * 365};

template <typename Value>
Value or_wrong_usage(tl::expected<Value, std::string> read) {
  if (!read) throw CommandError(ExitCode::wrong_usage, read.error());
  return std::move(*read);
}

}  // namespace

std::string limit_request(const std::string& selector, const std::string& rate,
                          const std::optional<std::string>& time) {
  const DataRate wanted = or_wrong_usage(parse_rate(rate));
  // The daemon looks names up again; here it is said what is wrong without one.
  (void)or_wrong_usage(parse_selector(selector, system_names()));
  std::string seconds = "-";
  if (time) {
    const Nanos length = or_wrong_usage(parse_time(*time));
    if (length < std::chrono::seconds{1} || length > kLongest) {
      throw CommandError(ExitCode::wrong_usage, "a live limit is for 1s to 8760h");
    }
    seconds = std::to_string(std::chrono::ceil<std::chrono::seconds>(length).count());
  }
  return fmt::format("{} {} {}", wanted.bits_per_second, seconds, selector);
}

ExitCode limit(const std::string& selector, const std::string& rate, const std::optional<std::string>& time) {
  const std::string request = limit_request(selector, rate, time);
  ControlClient daemon = connect_or_fail();
  const std::string id = ask(daemon, "limit", request);
  std::puts(fmt::format("live limit {}: {} has {} at most{}; 'shaper unlimit {}' lifts it", id, terminal_text(selector),
                        format_rate(*parse_rate(rate)), time ? " for " + *time : "", id)
                .c_str());
  return ExitCode::done;
}

ExitCode unlimit(std::uint64_t id) {
  ControlClient daemon = connect_or_fail();
  (void)ask(daemon, "unlimit", std::to_string(id));
  return ExitCode::done;
}

}  // namespace shaper::cli
