// `shaper flows` for people: who sends to whom, how fast, what waits and what was dropped, one line for each flow.
#include <fmt/format.h>

#include <algorithm>

#include "shaper/model/flow_columns.h"
#include "shaper/model/table_columns.h"

namespace shaper {
namespace {

/// The titles that may go where there is no room for all, the first ones first.
const std::vector<std::string> kLessImportant{"owner",  "link",    "since", "packets", "p50",
                                              "marked", "bytes",   "proto", "user",    "drops",
                                              "state",  "held by", "class", "p99",     "backlog"};

/// "2026-01-31T23:59:59.123456Z" without its fraction.
std::string to_the_second(const std::string& time) {
  return terminal_text(time.substr(0, time.find('.'))) + "Z";
}

/// What an address and a port may take of a line: half of what the columns beside them leave. At 80 columns each IPv4
/// address is whole.
std::size_t end_point_width(const FlowsRoom& room) {
  const std::size_t others = room.dense ? 42 : 38;
  const std::size_t least = room.dense ? 14 : 16;
  if (!room.columns) return std::string::npos;
  return std::max(*room.columns, others + 2 * least) / 2 - others / 2;
}

std::string words_or_dash(const std::optional<std::string>& word) {
  return word ? terminal_text(*word) : "-";
}

/// "limit tenant"
std::string holder(const FlowReport& flow) {
  return flow.held_by ? terminal_text(fmt::format("{} {}", flow.held_by->bucket, flow.held_by->name)) : "-";
}

TextTable columns_of(const std::vector<FlowReport>& flows, const FlowsRoom& room) {
  const std::size_t width = end_point_width(room);
  TextTable table(room.dense ? 1 : 2);
  table.words("proto", column(flows, [](auto& flow) { return terminal_text(flow.protocol); }));
  table.words("source",
              column(flows, [&](auto& flow) { return end_point_text(flow.source, flow.source_port, width); }));
  table.words("> destination", column(flows, [&](auto& flow) {
                return "> " + end_point_text(flow.destination, flow.destination_port, width);
              }));
  table.words("class", column(flows, [](auto& flow) { return terminal_text(flow.class_name); }));
  table.words("link", column(flows, [](auto& flow) { return terminal_text(flow.link); }));
  table.words("user", column(flows, [](auto& flow) { return words_or_dash(flow.user); }));
  table.words("owner", column(flows, [](auto& flow) { return words_or_dash(flow.owner); }));
  table.words("held by", column(flows, [](auto& flow) { return holder(flow); }));
  table.words("state", column(flows, [](auto& flow) { return std::string(activity_name(flow.activity)); }));
  table.numbers("rate", column(flows, [](auto& flow) { return bits(flow.rate); }), rate_units());
  table.numbers("backlog", column(flows, [](auto& flow) { return bytes(flow.backlog_bytes); }), size_units());
  table.numbers("p50", column(flows, [](auto& flow) { return nanos(flow.delay.p50); }), time_units());
  table.numbers("p99", column(flows, [](auto& flow) { return nanos(flow.delay.p99); }), time_units());
  if (!room.dense) {
    table.numbers("drops", column(flows, [](auto& flow) { return Cell(flow.dropped_packets); }), plain_units());
  }
  table.numbers("marked", column(flows, [](auto& flow) { return Cell(flow.marked_packets); }), plain_units());
  table.numbers("packets", column(flows, [](auto& flow) { return Cell(flow.packets); }), plain_units());
  table.numbers("bytes", column(flows, [](auto& flow) { return bytes(flow.wire_bytes); }), size_units());
  table.words("since", column(flows, [](auto& flow) { return to_the_second(flow.first_seen); }));
  return table;
}

/// Columns that say the same of every flow, which is why they are not worth their place.
std::vector<std::string> empty_columns(const std::vector<FlowReport>& flows) {
  std::vector<std::string> titles;
  const auto add = [&](const char* title, auto says_something) {
    if (std::none_of(flows.begin(), flows.end(), says_something)) titles.emplace_back(title);
  };
  add("owner", [](const FlowReport& flow) { return flow.owner.has_value(); });
  add("user", [](const FlowReport& flow) { return flow.user.has_value(); });
  add("held by", [](const FlowReport& flow) { return flow.held_by.has_value(); });
  add("marked", [](const FlowReport& flow) { return flow.marked_packets > 0; });
  add("link", [&](const FlowReport& flow) { return flow.link != flows.front().link; });
  return titles;
}

}  // namespace

void FlowTotals::add(const FlowReport& flow) {
  ++flows;
  rate.bits_per_second += flow.rate.bits_per_second;
  backlog_bytes += flow.backlog_bytes;
  backlog_packets += flow.backlog_packets;
}

std::string FlowTotals::text(std::uint64_t of, std::size_t shown) const {
  std::string text = flows < of ? fmt::format("{} of {} flows", flows, of)
                                : fmt::format("{} {}", flows, flows == 1 ? "flow" : "flows");
  if (shown < flows) text += fmt::format(", {} shown", shown);
  text += fmt::format(", {}, backlog {}", with_unit(rate.bits_per_second, rate_units()),
                      with_unit(backlog_bytes.value, size_units()));
  if (backlog_packets > 0) {
    text += fmt::format(" in {} {}", backlog_packets, backlog_packets == 1 ? "packet" : "packets");
  }
  return text;
}

std::string end_point_text(const std::string& address, std::optional<std::uint16_t> port, std::size_t width) {
  const bool brackets = port && address.find(':') != std::string::npos;
  const std::string before = brackets ? "[" : "";
  const std::string after = (brackets ? "]" : "") + (port ? ":" + std::to_string(*port) : "");
  const std::size_t beside = before.size() + after.size();
  return before + cut_in_the_middle(terminal_text(address), width > beside ? width - beside : 0) + after;
}

TextTable flow_columns(const std::vector<FlowReport>& flows, const FlowsRoom& room) {
  TextTable table = columns_of(flows, room);
  if (!room.columns) return table;
  for (const std::string& title : empty_columns(flows)) table.leave_out(title);
  // By reason they have what the others leave.
  std::size_t for_drops = room.dense ? std::max<std::size_t>(*room.columns / 8, 10) - 2 : 0;
  for (const std::string& title : kLessImportant) {
    if (table.width() + for_drops <= *room.columns) break;
    table.leave_out(title);
    if (title == "drops") for_drops = 0;
  }
  if (for_drops > 0) {
    const std::size_t rest = *room.columns - table.width() - 1;
    table.words("drops", column(flows, [&](auto& flow) { return drop_reasons(flow.drops).substr(0, rest); }));
  }
  return table;
}

std::string flows_table(const FlowsReport& report, const FlowsRoom& room) {
  const std::size_t shown = std::min(report.flows.size(), room.flows.value_or(report.flows.size()));
  const std::vector<FlowReport> flows(report.flows.begin(), report.flows.begin() + static_cast<std::ptrdiff_t>(shown));
  FlowTotals totals;
  for (const FlowReport& flow : report.flows) totals.add(flow);
  std::string text = totals.text(report.total_flows, shown) + '\n';
  if (!flows.empty()) text += flow_columns(flows, room).text();
  if (shown < report.flows.size()) text += fmt::format("{} more\n", report.flows.size() - shown);
  if (report.evicted_flows > 0) text += fmt::format("{} flows forgotten for want of room\n", report.evicted_flows);
  return text;
}

}  // namespace shaper
