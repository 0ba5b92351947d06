// The tables of a report page: the figures of `shaper status` and `shaper flows` at the end of the replay.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "shaper/model/flow_selection.h"
#include "shaper/replay/report_parts.h"

namespace shaper {
namespace {

/// Rows of cells: the first `words` columns to the left, numbers to the right.
class Table {
 public:
  Table(std::size_t words, const std::vector<std::string>& titles) : words_(words) {
    html_ = "<div class=\"scroll\"><table><thead><tr>";
    for (std::size_t i = 0; i < titles.size(); ++i) html_ += cell("th scope=\"col\"", i, titles[i]);
    html_ += "</tr></thead><tbody>\n";
  }

  void row(const std::vector<std::string>& cells) {
    html_ += "<tr>";
    for (std::size_t i = 0; i < cells.size(); ++i) html_ += cell("td", i, cells[i]);
    html_ += "</tr>\n";
  }

  [[nodiscard]] std::string html() const { return html_ + "</tbody></table></div>\n"; }

 private:
  [[nodiscard]] std::string cell(std::string_view tag, std::size_t column, const std::string& text) const {
    return fmt::format("<{}{}>{}</{}>", tag, column < words_ ? "" : " class=\"n\"", html_escape(text),
                       tag.substr(0, 2));
  }

  std::size_t words_;
  std::string html_;
};

std::string rate(const std::optional<DataRate>& rate) {
  return rate ? with_unit(rate->bits_per_second, rate_units()) : "-";
}
std::string size(ByteCount bytes) {
  return with_unit(bytes.value, size_units());
}
std::string time(Nanos delay) {
  if (delay == Nanos{0}) return "0";
  return with_unit(static_cast<std::uint64_t>(delay.count()), time_units());
}
std::string count(std::uint64_t packets) {
  return std::to_string(packets);
}

bool saw_packets(const ClassReport& row) {
  return row.in_packets > 0;
}

std::string note_of_silent(const StatusReport& status) {
  const auto silent = std::count_if(status.classes.begin(), status.classes.end(), std::not_fn(saw_packets));
  if (silent == 0) return {};
  return fmt::format("<p class=\"note\">{} {} saw no packet.</p>\n", silent, silent == 1 ? "class" : "classes");
}

/// `cells` of each class that saw packets.
std::string table_of_classes(const StatusReport& status, const std::vector<std::string>& titles, auto cells) {
  Table table(2, titles);
  for (const ClassReport& row : status.classes) {
    if (saw_packets(row)) table.row(cells(row));
  }
  return table.html();
}

std::string end_point(const std::string& address, std::optional<std::uint16_t> port) {
  if (!port) return address;
  const bool brackets = address.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", brackets ? "[" : "", address, brackets ? "]" : "", *port);
}

}  // namespace

std::string class_table(const ReplayReport& report) {
  const auto length = std::chrono::duration<double>(report.collected.time().end() - report.collected.time().start());
  const auto mean = [&](ByteCount bytes) {
    if (length.count() < 1e-3) return std::string("-");
    return with_unit(static_cast<std::uint64_t>(static_cast<double>(bytes.value) * 8 / length.count()), rate_units());
  };
  return table_of_classes(report.figures.status,
                          {"class", "link", "priority", "guarantee", "limit", "mean rate", "sent", "packets",
                           "borrowed", "dropped", "marked"},
                          [&](const ClassReport& row) -> std::vector<std::string> {
                            return {row.name,
                                    row.link,
                                    count(row.priority),
                                    rate(row.guarantee),
                                    rate(row.limit),
                                    mean(row.wire_bytes),
                                    size(row.wire_bytes),
                                    count(row.sent_packets),
                                    size(row.borrowed),
                                    count(row.dropped_packets),
                                    count(row.marked_packets)};
                          }) +
         note_of_silent(report.figures.status);
}

std::string delay_table(const StatusReport& status) {
  return table_of_classes(status, {"class", "link", "packets", "p50", "p90", "p99", "max"},
                          [](const ClassReport& row) -> std::vector<std::string> {
                            return {row.name,
                                    row.link,
                                    count(row.sent_packets),
                                    time(row.delay.p50),
                                    time(row.delay.p90),
                                    time(row.delay.p99),
                                    time(row.delay.max)};
                          });
}

std::string drop_table(const StatusReport& status) {
  DropCounts all{};
  for (const ClassReport& row : status.classes) {
    for (std::size_t i = 0; i < kDropReasons; ++i) all.at(i) += row.drops.at(i);
  }
  std::vector<std::string> titles{"class", "link", "came", "dropped", "part"};
  for (std::size_t i = 0; i < kDropReasons; ++i) {
    if (all.at(i) > 0) titles.emplace_back(kDropReasonNames.at(i));
  }
  titles.emplace_back("marked");
  return table_of_classes(status, titles, [&](const ClassReport& row) {
    std::vector<std::string> cells{
        row.name, row.link, count(row.in_packets), count(row.dropped_packets),
        percent_words(static_cast<double>(row.dropped_packets) / static_cast<double>(row.in_packets))};
    for (std::size_t i = 0; i < kDropReasons; ++i) {
      if (all.at(i) > 0) cells.push_back(count(row.drops.at(i)));
    }
    cells.push_back(count(row.marked_packets));
    return cells;
  });
}

std::string flow_table(const FlowsReport& report) {
  std::vector<FlowReport> flows = report.flows;
  sort_flows(flows, FlowSort::bytes);
  Table table(
      4, {"protocol", "source", "destination", "class", "sent", "packets", "dropped", "marked", "p50", "p99", "max"});
  const std::size_t shown = std::min(flows.size(), kMostFlowRows);
  for (std::size_t i = 0; i < shown; ++i) {
    const FlowReport& flow = flows[i];
    table.row({flow.protocol, end_point(flow.source, flow.source_port),
               end_point(flow.destination, flow.destination_port), flow.class_name, size(flow.wire_bytes),
               count(flow.packets), count(flow.dropped_packets), count(flow.marked_packets), time(flow.delay.p50),
               time(flow.delay.p99), time(flow.delay.max)});
  }
  if (shown < flows.size()) {
    FlowReport rest;
    for (std::size_t i = shown; i < flows.size(); ++i) {
      rest.wire_bytes += flows[i].wire_bytes;
      rest.packets += flows[i].packets;
      rest.dropped_packets += flows[i].dropped_packets;
      rest.marked_packets += flows[i].marked_packets;
    }
    table.row({"", fmt::format("{} others together", flows.size() - shown), "", "", size(rest.wire_bytes),
               count(rest.packets), count(rest.dropped_packets), count(rest.marked_packets), "", "", ""});
  }
  std::string html = table.html();
  if (report.evicted_flows > 0 || flows.size() < report.total_flows) {
    html += fmt::format("<p class=\"note\">{} flows more were forgotten: the table of flows was full.</p>\n",
                        report.evicted_flows);
  }
  return html;
}

}  // namespace shaper
