#include "cli/replay_report.h"

#include <fmt/format.h>

#include <filesystem>

#include "shaper/model/text_table.h"
#include "shaper/replay/report_html.h"

namespace shaper::cli {
namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

std::string title_of(const std::string& file) {
  return file == "-" ? "standard input" : std::filesystem::path(file).filename().string();
}

std::string duration(const TimeBins& time) {
  return with_unit(static_cast<std::uint64_t>((time.end() - time.start()).count()), time_units());
}

/// What became of the packets.
void add_totals(Facts& facts, const ReplayFigures& figures) {
  std::uint64_t packets = 0;
  std::uint64_t dropped = 0;
  std::uint64_t marked = 0;
  ByteCount sent;
  for (const ClassReport& row : figures.status.classes) {
    packets += row.sent_packets;
    dropped += row.dropped_packets;
    marked += row.marked_packets;
    sent += row.wire_bytes;
  }
  facts.emplace_back("sent", fmt::format("{} in {} frames", with_unit(sent.value, size_units()), packets));
  facts.emplace_back("dropped", std::to_string(dropped));
  facts.emplace_back("marked", std::to_string(marked));
  facts.emplace_back("flows", std::to_string(figures.flows.total_flows + figures.flows.evicted_flows));
}

}  // namespace

std::string capture_report(const std::string& capture, const LoadedPolicy& policy, const ReplayOptions& options,
                           const ReplayResult& result) {
  const TimeBins& time = options.report->time();
  Facts facts{{"capture", capture}, {"packets replayed", std::to_string(result.ip_packets)}};
  if (result.ip_packets > 0) facts.emplace_back("first packet", rfc3339(time.start().time_since_epoch()));
  facts.emplace_back("until the last departure", duration(time));
  facts.emplace_back("link", policy.policy.links.at(options.link).name);
  facts.emplace_back("MTU", fmt::format("{} B", options.mtu));
  add_totals(facts, result);
  return report_html({title_of(capture), facts, policy.name, policy.text, result, *options.report});
}

std::string log_report(const std::string& log, const ReportCollector& collected, LogReplay result) {
  Facts facts{{"event log", log},
              {"packets", std::to_string(collected.arrivals())},
              {"calls", std::to_string(result.calls)},
              {"verdicts, all as in the log", std::to_string(result.verdicts)},
              {"from the first to the last line", duration(collected.time())}};
  add_totals(facts, result.figures);
  if (result.cut_short) result.figures.status.warnings.emplace_back("the log ends inside a call");
  return report_html({title_of(log), facts, "as the log has it", result.policy_text, result.figures, collected});
}

}  // namespace shaper::cli
