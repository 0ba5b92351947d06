#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "cli/commands.h"
#include "cli/policy_file.h"
#include "shaper/model/event_log.h"
#include "shaper/model/tables.h"
#include "shaper/replay/replay_capture.h"
#include "shaper/replay/replay_log.h"

namespace shaper::cli {
namespace {

/// An event log is read as a whole.
constexpr std::size_t kLargestLog = std::size_t{4} << 30;

bool is_event_log(const std::string& path) {
  std::array<char, kFirstEventLine.size()> head{};
  std::ifstream file(path, std::ios::binary);
  return file.read(head.data(), head.size()) && std::string_view(head.data(), head.size()) == kFirstEventLine;
}

/// Tells on stderr how far the work is, if it takes longer than a second and somebody looks.
class Progress {
 public:
  void show(int percent) {
    if (!terminal_ || std::chrono::steady_clock::now() - start_ < std::chrono::seconds{1}) return;
    std::fputs(fmt::format("\r{:3} %", percent).c_str(), stderr);
    shown_ = true;
  }
  ~Progress() {
    if (shown_) std::fputs("\r     \r", stderr);
  }

 private:
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  bool shown_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

ExitCode replay_event_log(const ReplayCommandOptions& options) {
  if (options.policy_file || options.link || options.events_file || options.json) {
    throw CommandError(
        ExitCode::wrong_usage,
        fmt::format("{} is an event log: it has its policy in it and takes no options", options.capture));
  }
  const auto result = replay_log(read_file(options.capture, kLargestLog), options.capture);
  if (!result) throw CommandError(ExitCode::failed, result.error());
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
  sort_flows(result.flows.flows, FlowSort::bytes, 20);
  std::string text = fmt::format("{} packets replayed", result.ip_packets);
  const auto add = [&text](std::uint64_t count, std::string_view what) {
    if (count > 0) text += fmt::format(", {} {}", count, what);
  };
  add(result.other_frames, "frames without IP left out");
  add(result.never_queued, "packets of neighbour discovery left out");
  add(result.late_stamps, "time stamps that went backwards brought forward");
  text += "\n\n" + status_table(result.status) + '\n' + flows_table(result.flows);
  std::fputs(text.c_str(), stdout);
}

}  // namespace

ExitCode replay(const ReplayCommandOptions& options) {
  if (is_event_log(options.capture)) return replay_event_log(options);
  if (!options.policy_file) throw CommandError(ExitCode::wrong_usage, "replay of a capture needs --policy FILE");
  const LoadedPolicy loaded = load_policy(*options.policy_file);
  auto capture = Capture::open(options.capture);
  if (!capture) throw CommandError(ExitCode::failed, capture.error());

  std::ofstream events;
  Progress progress;
  ReplayOptions replay_options;
  replay_options.link = link_of(options, loaded.policy);
  replay_options.mtu = options.mtu;
  replay_options.policy_text = loaded.text;
  replay_options.names = loaded.names;
  replay_options.progress = [&progress](int percent) { progress.show(percent); };
  if (options.events_file) {
    events.open(*options.events_file, std::ios::binary | std::ios::trunc);
    if (!events)
      throw CommandError(ExitCode::failed, fmt::format("{}: {}", *options.events_file, std::strerror(errno)));
    replay_options.events = &events;
  }
  auto result = replay_capture(*capture, loaded.policy, replay_options);
  if (!result) throw CommandError(ExitCode::failed, result.error());
  if (options.json) {
    std::fputs((replay_json(result->status, result->flows) + '\n').c_str(), stdout);
  } else {
    print_for_people(*result);
  }
  return ExitCode::done;
}

}  // namespace shaper::cli
