// `shaper flows`: asks the daemon, keeps what was asked for, prints it; with --watch again and again.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <thread>

#include "cli/commands.h"
#include "cli/daemon_link.h"
#include "cli/terminal.h"
#include "shaper/live/name_lookup.h"
#include "shaper/model/address_text.h"
#include "shaper/model/flow_selection.h"
#include "shaper/model/tables.h"

namespace shaper::cli {
namespace {

using std::chrono::steady_clock;

[[noreturn]] void wrong_value(const std::string& line) {
  throw CommandError(ExitCode::wrong_usage, line);
}

/// What the daemon said, and when.
struct Look {
  FlowsReport report;
  steady_clock::time_point time;
  std::string utc;
};

Look look() {
  ControlClient daemon = connect_or_fail();
  Look result;
  result.time = steady_clock::now();
  result.utc = rfc3339(std::chrono::system_clock::now().time_since_epoch());
  result.report = ask_flows(daemon);
  return result;
}

/// Flows have the name, or the number of a user without one.
std::vector<std::string> users_called(const std::string& word) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error == std::errc{} && end == word.data() + word.size()) {
    std::vector<std::string> users{std::to_string(number)};
    if (const auto name = user_name(number)) users.push_back(*name);
    return users;
  }
  if (!system_names().user(word)) wrong_value(fmt::format("--user: no user is called '{}'", terminal_text(word)));
  return {word};
}

FlowFilter filter_of(const FlowsOptions& options) {
  FlowFilter filter{options.of_class, {}, options.port, {}, {}, options.text};
  if (options.address) {
    const auto prefix = parse_prefix(*options.address);
    if (!prefix) {
      wrong_value(fmt::format("--address: '{}' is no address; write 10.0.0.1, 10.0.0.0/8 or 2001:db8::/32",
                              terminal_text(*options.address)));
    }
    filter.address = masked(*prefix);
  }
  if (options.protocol) {
    for (const std::uint8_t number : parse_protocol(*options.protocol)) {
      filter.protocols.push_back(protocol_name(number));
    }
    if (filter.protocols.empty()) {
      wrong_value(fmt::format("--protocol: '{}' is no protocol; write a number or one of {}",
                              terminal_text(*options.protocol), fmt::join(protocol_names(), ", ")));
    }
  }
  if (options.user) filter.users = users_called(*options.user);
  return filter;
}

/// A name that no class has would show no flows, as if nothing were sent.
void require_class(const std::string& name) {
  ControlClient daemon = connect_or_fail();
  const StatusReport status = ask_status(daemon);
  std::vector<std::string> names;
  for (const ClassReport& row : status.classes) names.push_back(row.name);
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  wrong_value(fmt::format("--class: no class is called '{}'; there are: {}", terminal_text(name),
                          terminal_text(fmt::format("{}", fmt::join(names, ", ")))));
}

class Listing {
 public:
  explicit Listing(const FlowsOptions& options) : options_(options), filter_(filter_of(options)) {
    const auto sort = parse_flow_sort(options.sort);
    if (!sort) wrong_value(fmt::format("--sort is one of {}", flow_sorts()));
    sort_ = *sort;
  }

  /// Rates since the latest look if that is a second or more ago, else over the last second.
  [[nodiscard]] FlowsReport next() {
    Look now = look();
    FlowsReport chosen = now.report;
    if (!before_) {
      before_ = std::move(now);
    } else if (now.time - before_->time >= std::chrono::seconds{1}) {
      set_mean_rates(before_->report, chosen, before_->utc, now.time - before_->time);
      before_ = std::move(now);
    }
    std::erase_if(chosen.flows, [&](const FlowReport& flow) { return !filter_.matches(flow); });
    sort_flows(chosen.flows, sort_, options_.reverse);
    return chosen;
  }

  [[nodiscard]] std::string text(FlowsReport report, const std::optional<TerminalSize>& terminal) const {
    if (options_.json) {
      if (options_.most && *options_.most < report.flows.size()) report.flows.resize(*options_.most);
      return flows_json(report) + '\n';
    }
    FlowsRoom room{std::nullopt, options_.most};
    if (!terminal) return flows_table(report, room);
    constexpr std::size_t kOtherLines = 6;  // totals, two of titles, two of what is not there, the prompt
    room.columns = terminal->columns;
    if (!room.flows) room.flows = std::max(terminal->rows, kOtherLines + 1) - kOtherLines;
    return cut_lines(flows_table(report, room), terminal->columns);
  }

 private:
  const FlowsOptions& options_;
  FlowFilter filter_;
  FlowSort sort_ = FlowSort::rate;
  std::optional<Look> before_;
};

void watch_on_screen(Listing& listing, std::chrono::nanoseconds pause) {
  const WatchScreen screen;
  for (;;) {
    screen.draw(listing.text(listing.next(), terminal_size()));
    screen.pause(pause);
  }
}

/// Until nobody reads any more.
void watch_in_lines(Listing& listing, const FlowsOptions& options, std::chrono::nanoseconds pause) {
  do {
    const std::string text = listing.text(listing.next(), std::nullopt);
    if (!options.json) std::puts(rfc3339(std::chrono::system_clock::now().time_since_epoch()).c_str());
    std::fputs(text.c_str(), stdout);
    if (std::fflush(stdout) != 0) return;
    std::this_thread::sleep_for(pause);
  } while (true);
}

std::chrono::nanoseconds nanoseconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
}

}  // namespace

ExitCode flows(const FlowsOptions& options) {
  Listing listing(options);
  if (options.of_class) require_class(*options.of_class);
  const bool screen = terminal_size().has_value() && !options.json;
  if (options.watch) {
    if (screen) watch_on_screen(listing, nanoseconds(*options.watch));
    watch_in_lines(listing, options, nanoseconds(*options.watch));
    return ExitCode::done;
  }
  FlowsReport report = listing.next();
  if (options.interval) {
    std::this_thread::sleep_for(nanoseconds(*options.interval));
    report = listing.next();
  }
  std::fputs(listing.text(std::move(report), terminal_size()).c_str(), stdout);
  return ExitCode::done;
}

}  // namespace shaper::cli
