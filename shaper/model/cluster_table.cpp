// `shaper cluster show` for people.
#include <fmt/format.h>

#include "shaper/model/table_columns.h"
#include "shaper/model/tables.h"

namespace shaper {
namespace {

double milliseconds(Nanos time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

std::string limits_table(const std::vector<ClusterLimitReport>& limits) {
  TextTable table;
  table.words("limit", column(limits, [](auto& row) { return terminal_text(row.name); }));
  table.words("strategy", column(limits, [](auto& row) { return terminal_text(row.strategy); }));
  table.words("state", column(limits, [](auto& row) { return terminal_text(row.state); }));
  table.numbers("buckets", column(limits, [](auto& row) { return Cell(row.buckets); }), plain_units());
  table.numbers("hosts", column(limits, [](auto& row) { return Cell(row.members); }), plain_units());
  table.numbers("rate", column(limits, [](auto& row) { return bits(row.limit); }), rate_units());
  table.numbers("share", column(limits, [](auto& row) { return bits(row.share); }), rate_units());
  table.numbers("granted", column(limits, [](auto& row) { return bytes(row.granted); }), size_units());
  table.numbers("settled", column(limits, [](auto& row) { return bytes(row.settled); }), size_units());
  table.numbers("returned", column(limits, [](auto& row) { return bytes(row.returned); }), size_units());
  table.numbers("unmetered", column(limits, [](auto& row) { return bytes(row.unmetered); }), size_units());
  table.numbers("fallbacks", column(limits, [](auto& row) { return Cell(row.fallbacks); }), plain_units());
  table.numbers("for", column(limits, [](auto& row) { return nanos(row.fallback_time); }), time_units());
  table.numbers("asks", column(limits, [](auto& row) { return Cell(row.asks); }), plain_units());
  table.numbers("failed", column(limits, [](auto& row) { return Cell(row.failed_asks); }), plain_units());
  return table.text();
}

}  // namespace

std::string cluster_table(const ClusterReport& report) {
  std::string text = fmt::format("host {}, Redis at {}: ", terminal_text(report.host), terminal_text(report.redis));
  text += report.trouble ? terminal_text(*report.trouble)
                         : fmt::format("answers in {:.2f} ms, 99 % within {:.2f} ms", milliseconds(report.round_trip),
                                       milliseconds(report.slow_round_trip));
  if (report.clock_offset) text += fmt::format(", its clock is off by {:.1f} ms", milliseconds(*report.clock_offset));
  text += "\n\n";
  text += limits_table(report.limits);
  if (!report.warnings.empty()) text += '\n';
  for (const std::string& warning : report.warnings) text += fmt::format("warning: {}\n", terminal_text(warning));
  return text;
}

}  // namespace shaper
