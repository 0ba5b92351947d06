#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>

#include "cli/commands.h"
#include "cli/output_file.h"
#include "cli/policy_file.h"
#include "cli/replay_report.h"
#include "cli/terminal.h"
#include "shaper/model/flow_selection.h"
#include "shaper/model/tables.h"
#include "shaper/replay/replay_capture.h"
#include "shaper/replay/replay_log.h"

namespace shaper::cli {
namespace {

/// Tells on stderr how far the work is, if it takes longer than a moment and somebody looks.
class ProgressLine {
 public:
  explicit ProgressLine(bool quiet) : wanted_(!quiet && ::isatty(STDERR_FILENO) == 1) {}
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const ReplayProgress& progress) {
    if (!wanted_ || std::chrono::steady_clock::now() < next_) return;
    next_ += kStep;
    std::string line = progress.percent ? fmt::format("{:3} %, ", *progress.percent) : "";
    line += fmt::format("{} packets, {:.1f} s simulated", progress.packets,
                        std::chrono::duration<double>(progress.simulated).count());
    std::fputs(fmt::format("\r{}\x1b[K", line).c_str(), stderr);
    shown_ = true;
  }
  ~ProgressLine() {
    if (shown_) std::fputs("\r\x1b[K", stderr);
  }

 private:
  static constexpr std::chrono::milliseconds kStep{200};
  bool wanted_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + kStep;
};

/// The file that `--events` names, open for writing; null without it.
std::unique_ptr<std::ofstream> events_file(const ReplayCommandOptions& options) {
  if (!options.events_file) return nullptr;
  auto file = std::make_unique<std::ofstream>(*options.events_file, std::ios::binary | std::ios::trunc);
  if (!*file) throw CommandError(ExitCode::failed, fmt::format("{}: {}", *options.events_file, std::strerror(errno)));
  return file;
}

std::optional<OutputFile> html_file(const ReplayCommandOptions& options) {
  if (!options.html_file) return std::nullopt;
  return OutputFile("--html", *options.html_file);
}

ExitCode replay_event_log(std::FILE* log, const ReplayCommandOptions& options) {
  if (options.policy_file || options.link || options.json) {
    throw CommandError(ExitCode::wrong_usage,
                       fmt::format("{} is an event log: it has its policy in it and takes no --policy, --link, --json",
                                   options.capture));
  }
  const auto events = events_file(options);
  const auto html = html_file(options);
  ReportCollector report;
  const LogReplayOptions replay_options{
      .read = read_logged_policy, .events = events.get(), .report = html ? &report : nullptr};
  const auto result = replay_log(log, options.capture, replay_options);
  if (!result) throw CommandError(ExitCode::failed, result.error());
  if (html) html->write(log_report(options.capture, report, *result));
  std::fputs(fmt::format("{} calls, {} verdicts, all as in the log{}\n", result->calls, result->verdicts,
                         result->cut_short ? " (which ends inside a call)" : "")
                 .c_str(),
             stdout);
  return ExitCode::done;
}

LinkIndex link_of(const ReplayCommandOptions& options, const Policy& policy) {
  std::string names;
  for (std::size_t index = 0; index < policy.links.size(); ++index) {
    if (options.link == policy.links[index].name) return static_cast<LinkIndex>(index);
    names += (index == 0 ? "" : ", ") + policy.links[index].name;
  }
  if (options.link) {
    throw CommandError(ExitCode::wrong_usage, fmt::format("--link: the policy has no such link; it has {}", names));
  }
  if (policy.links.size() > 1) {
    throw CommandError(ExitCode::wrong_usage,
                       fmt::format("the policy has several links; say --link with one of {}", names));
  }
  return 0;
}

void print_for_people(ReplayResult& result) {
  FlowsRoom room{std::nullopt, 20};
  if (const auto terminal = terminal_size()) room.columns = terminal->columns;
  sort_flows(result.flows.flows, FlowSort::bytes);
  const std::string text = fmt::format("{} packets replayed\n\n{}\n{}", result.ip_packets, status_table(result.status),
                                       flows_table(result.flows, room));
  std::fputs(text.c_str(), stdout);
}

}  // namespace

ExitCode replay(const ReplayCommandOptions& options) {
  auto input = open_input(options.capture);
  if (!input) throw CommandError(ExitCode::failed, input.error());
  if (is_event_log(input->get())) return replay_event_log(input->get(), options);
  if (!options.policy_file) throw CommandError(ExitCode::wrong_usage, "replay of a capture needs --policy FILE");
  const LoadedPolicy loaded = load_policy(*options.policy_file);
  auto capture = Capture::read(std::move(*input), options.capture);
  if (!capture) throw CommandError(ExitCode::failed, capture.error());

  ReplayOptions replay_options;
  replay_options.link = link_of(options, loaded.policy);
  replay_options.mtu = options.mtu;
  replay_options.policy_text = loaded.text;
  replay_options.names = loaded.names;
  const auto events = events_file(options);
  replay_options.events = events.get();
  const auto html = html_file(options);
  ReportCollector report;
  if (html) replay_options.report = &report;
  auto result = [&] {
    ProgressLine line(options.quiet);
    replay_options.progress = [&line](const ReplayProgress& progress) { line.show(progress); };
    return replay_capture(*capture, loaded.policy, replay_options);
  }();
  if (!result) throw CommandError(ExitCode::failed, result.error());
  if (html) html->write(capture_report(options.capture, loaded, replay_options, *result));
  if (options.json) {
    std::fputs((replay_json(result->status, result->flows) + '\n').c_str(), stdout);
  } else {
    print_for_people(*result);
  }
  return ExitCode::done;
}

}  // namespace shaper::cli
