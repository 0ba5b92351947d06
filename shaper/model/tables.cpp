#include "shaper/model/tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "shaper/model/table_columns.h"

namespace shaper {
namespace {

std::string end_point(const std::string& address, std::optional<std::uint16_t> port) {
  if (!port) return terminal_text(address);
  const bool ipv6 = address.find(':') != std::string::npos;
  return fmt::format(fmt::runtime(ipv6 ? "[{}]:{}" : "{}:{}"), terminal_text(address), *port);
}

std::uint64_t sort_key(const FlowReport& flow, FlowSort by) {
  switch (by) {
    case FlowSort::rate:
      return flow.rate.bits_per_second;
    case FlowSort::bytes:
      return flow.wire_bytes.value;
    case FlowSort::drops:
      return flow.dropped_packets;
    case FlowSort::delay:
      return nanos(flow.delay.p99).value_or(0);
  }
  return 0;
}

}  // namespace

std::optional<FlowSort> parse_flow_sort(std::string_view word) {
  if (word == "rate") return FlowSort::rate;
  if (word == "bytes") return FlowSort::bytes;
  if (word == "drops") return FlowSort::drops;
  if (word == "delay") return FlowSort::delay;
  return std::nullopt;
}

void sort_flows(std::vector<FlowReport>& flows, FlowSort by, std::optional<std::size_t> most) {
  std::stable_sort(flows.begin(), flows.end(), [by](const FlowReport& a, const FlowReport& b) {
    return std::pair(sort_key(a, by), a.wire_bytes) > std::pair(sort_key(b, by), b.wire_bytes);
  });
  if (most && *most < flows.size()) flows.resize(*most);
}

std::string flows_table(const FlowsReport& report) {
  const std::vector<FlowReport>& flows = report.flows;
  TextTable table;
  table.words("protocol", column(flows, [](auto& flow) { return terminal_text(flow.protocol); }));
  table.words("source", column(flows, [](auto& flow) { return end_point(flow.source, flow.source_port); }));
  table.words("destination",
              column(flows, [](auto& flow) { return end_point(flow.destination, flow.destination_port); }));
  table.words("class", column(flows, [](auto& flow) { return terminal_text(flow.class_name); }));
  table.words("user", column(flows, [](auto& flow) { return terminal_text(flow.user.value_or("-")); }));
  table.numbers("rate", column(flows, [](auto& flow) { return Cell(flow.rate.bits_per_second); }), rate_units());
  table.numbers("sent", column(flows, [](auto& flow) { return Cell(flow.wire_bytes.value); }), size_units());
  table.numbers("drops", column(flows, [](auto& flow) { return Cell(flow.dropped_packets); }), plain_units());
  if (std::any_of(flows.begin(), flows.end(), [](auto& flow) { return flow.marked_packets > 0; })) {
    table.numbers("marked", column(flows, [](auto& flow) { return Cell(flow.marked_packets); }), plain_units());
  }
  table.numbers("backlog", column(flows, [](auto& flow) { return Cell(flow.backlog_bytes.value); }), size_units());
  table.numbers("p99", column(flows, [](auto& flow) { return nanos(flow.delay.p99); }), time_units());
  std::string text = flows.empty() ? "no flows\n" : table.text();
  if (flows.size() < report.total_flows) text += fmt::format("{} of {} flows\n", flows.size(), report.total_flows);
  if (report.evicted_flows > 0) text += fmt::format("{} flows forgotten for want of room\n", report.evicted_flows);
  return text;
}

std::string terminal_text(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c >= ' ' && c <= '~' && c != '\\') {
      safe += c;
    } else {
      safe += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return safe;
}

}  // namespace shaper
