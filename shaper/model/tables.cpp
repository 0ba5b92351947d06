#include "shaper/model/tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "shaper/model/text_table.h"

namespace shaper {
namespace {

using Cell = std::optional<std::uint64_t>;

/// One column: what `cell` says about each row.
template <typename Row, typename CellOf>
auto column(const std::vector<Row>& rows, CellOf cell) {
  std::vector<std::conditional_t<std::is_convertible_v<decltype(cell(rows.front())), std::string>, std::string, Cell>>
      cells;
  for (const Row& row : rows) cells.push_back(cell(row));
  return cells;
}

Cell bits(const std::optional<DataRate>& rate) {
  return rate ? Cell(rate->bits_per_second) : std::nullopt;
}
Cell nanos(Nanos time) {
  return static_cast<std::uint64_t>(std::max(time, Nanos{0}).count());
}

std::string link_table(const std::vector<LinkReport>& links) {
  TextTable table;
  table.words("link", column(links, [](auto& link) { return terminal_text(link.name); }));
  table.words("interface", column(links, [](auto& link) { return terminal_text(link.interface); }));
  table.words("direction", column(links, [](auto& link) { return std::string(direction_name(link.direction)); }));
  table.numbers("rate", column(links, [](auto& link) { return Cell(link.rate.bits_per_second); }), rate_units());
  table.numbers("limit", column(links, [](auto& link) { return bits(link.limit); }), rate_units());
  table.numbers("packets", column(links, [](auto& link) { return Cell(link.sent_packets); }), plain_units());
  table.numbers("sent", column(links, [](auto& link) { return Cell(link.wire_bytes.value); }), size_units());
  table.numbers("dropped", column(links, [](auto& link) { return Cell(link.dropped_packets); }), plain_units());
  table.numbers("backlog", column(links, [](auto& link) { return Cell(link.backlog_bytes.value); }), size_units());
  return table.text();
}

std::string class_table(const std::vector<ClassReport>& classes) {
  TextTable table;
  table.words("class", column(classes, [](auto& row) { return terminal_text(row.name); }));
  table.words("link", column(classes, [](auto& row) { return terminal_text(row.link); }));
  table.numbers("rate", column(classes, [](auto& row) { return Cell(row.rate.bits_per_second); }), rate_units());
  table.numbers("total", column(classes, [](auto& row) { return bits(row.limit); }), rate_units());
  table.numbers("each", column(classes, [](auto& row) { return row.each ? bits(row.each->limit) : Cell(); }),
                rate_units());
  table.numbers("packets", column(classes, [](auto& row) { return Cell(row.sent_packets); }), plain_units());
  table.numbers("sent", column(classes, [](auto& row) { return Cell(row.wire_bytes.value); }), size_units());
  table.numbers("dropped", column(classes, [](auto& row) { return Cell(row.dropped_packets); }), plain_units());
  table.numbers("backlog", column(classes, [](auto& row) { return Cell(row.backlog_bytes.value); }), size_units());
  table.numbers("flows", column(classes, [](auto& row) { return Cell(row.flows); }), plain_units());
  table.numbers("p50", column(classes, [](auto& row) { return nanos(row.delay.p50); }), time_units());
  table.numbers("p99", column(classes, [](auto& row) { return nanos(row.delay.p99); }), time_units());
  return table.text();
}

std::string queue_table(const std::vector<QueueReport>& queues) {
  TextTable table;
  table.words("queue", column(queues, [](auto& queue) { return std::to_string(queue.number); }));
  table.numbers("held", column(queues, [](auto& queue) { return Cell(queue.held); }), plain_units());
  table.numbers("kernel dropped", column(queues, [](auto& queue) { return Cell(queue.kernel_dropped); }),
                plain_units());
  table.numbers("socket dropped", column(queues, [](auto& queue) { return Cell(queue.socket_dropped); }),
                plain_units());
  table.numbers("lost verdicts", column(queues, [](auto& queue) { return Cell(queue.lost_verdicts); }), plain_units());
  table.numbers("sent to split", column(queues, [](auto& queue) { return Cell(queue.split_packets); }), plain_units());
  return table.text();
}

/// A line for everything that happened to packets of a class but being sent.
std::string exceptions_text(const std::vector<ClassReport>& classes) {
  std::string text;
  for (const ClassReport& row : classes) {
    const auto add = [&](std::uint64_t count, std::string_view words) {
      if (count == 0) return;
      text += fmt::format("{} on {}: {} {}\n", terminal_text(row.name), terminal_text(row.link), count, words);
    };
    for (std::size_t reason = 0; reason < kDropReasons; ++reason) {
      add(row.drops[reason], fmt::format("packets dropped ({})", kDropReasonNames[reason]));
    }
    add(row.lost_packets, "packets lost (cleared by the kernel while held)");
    add(row.passed_packets, "packets passed unmetered");
    add(row.late_bytes.value, "bytes of credit lost to late wake-ups");
  }
  return text;
}

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

std::string status_table(const StatusReport& report) {
  std::string text = fmt::format("{}", mode_name(report.mode));
  if (report.rules) text += fmt::format(", rules {}", rules_status_name(*report.rules));
  text += fmt::format(", version {}\n", terminal_text(report.version));
  if (!report.links.empty()) text += '\n' + link_table(report.links);
  if (!report.classes.empty()) text += '\n' + class_table(report.classes);
  const std::string exceptions = exceptions_text(report.classes);
  if (!exceptions.empty()) text += '\n' + exceptions;
  if (!report.queues.empty()) text += '\n' + queue_table(report.queues);
  if (!report.warnings.empty()) text += '\n';
  for (const std::string& warning : report.warnings) text += fmt::format("warning: {}\n", terminal_text(warning));
  return text;
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
