#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "cli/commands.h"
#include "cli/daemon_link.h"
#include "shaper/model/tables.h"

namespace shaper::cli {
namespace {

std::string listing(const FlowsOptions& options, FlowSort sort) {
  ControlClient daemon = connect_or_fail();
  auto report = parse_flows(ask(daemon, "flows"));
  if (!report) throw CommandError(ExitCode::failed, report.error());
  if (options.of_class) {
    std::erase_if(report->flows, [&](const FlowReport& flow) { return flow.class_name != *options.of_class; });
  }
  sort_flows(report->flows, sort, options.most);
  return options.json ? flows_json(*report) + '\n' : flows_table(*report);
}

}  // namespace

ExitCode flows(const FlowsOptions& options) {
  const std::optional<FlowSort> sort = parse_flow_sort(options.sort);
  if (!sort) throw CommandError(ExitCode::wrong_usage, "--sort is one of rate, bytes, drops, delay");
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  for (;;) {
    const std::string text = listing(options, *sort);
    if (options.watch && terminal) std::fputs("\x1b[H\x1b[2J", stdout);
    std::fputs(text.c_str(), stdout);
    if (!options.watch) return ExitCode::done;
    if (std::fflush(stdout) != 0) return ExitCode::done;
    std::this_thread::sleep_for(std::chrono::seconds{1});
  }
}

}  // namespace shaper::cli
