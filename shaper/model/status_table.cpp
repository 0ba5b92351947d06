// `shaper status` for people: what each link and limit carries against its rate, the classes under their link, and a
// line of words for everything that is not simply being sent.
#include <fmt/format.h>

#include <algorithm>

#include "shaper/core/keyed_buckets.h"
#include "shaper/model/table_columns.h"
#include "shaper/model/tables.h"

namespace shaper {
namespace {

std::string link_table(const std::vector<LinkReport>& links) {
  TextTable table;
  table.words("link", column(links, [](auto& link) { return terminal_text(link.name); }));
  table.words("interface", column(links, [](auto& link) { return terminal_text(link.interface); }));
  table.words("direction", column(links, [](auto& link) { return std::string(direction_name(link.direction)); }));
  table.numbers("rate", column(links, [](auto& link) { return bits(link.rate); }), rate_units());
  table.numbers("limit", column(links, [](auto& link) { return bits(link.limit); }), rate_units());
  table.numbers("used", column(links, [](auto& link) { return percent(link.rate, link.limit); }), percent_units());
  table.numbers("packets", column(links, [](auto& link) { return Cell(link.sent_packets); }), plain_units());
  table.numbers("sent", column(links, [](auto& link) { return bytes(link.wire_bytes); }), size_units());
  table.numbers("dropped", column(links, [](auto& link) { return Cell(link.dropped_packets); }), plain_units());
  table.numbers("backlog", column(links, [](auto& link) { return bytes(link.backlog_bytes); }), size_units());
  return table.text();
}

/// `classes` with those of a link together, in the order of `links`; otherwise in their own order.
std::vector<ClassReport> by_link(std::vector<ClassReport> classes, const std::vector<LinkReport>& links) {
  const auto position = [&links](const ClassReport& row) {
    return std::find_if(links.begin(), links.end(), [&row](const LinkReport& link) { return link.name == row.link; });
  };
  std::stable_sort(classes.begin(), classes.end(),
                   [&](const ClassReport& a, const ClassReport& b) { return position(a) < position(b); });
  return classes;
}

std::string class_table(const std::vector<ClassReport>& classes) {
  TextTable table;
  table.words("class", column(classes, [](auto& row) { return "  " + terminal_text(row.name); }));
  table.numbers("prio", column(classes, [](auto& row) { return Cell(row.priority); }), plain_units());
  table.numbers("guarantee", column(classes, [](auto& row) { return bits(row.guarantee); }), rate_units());
  table.numbers("rate", column(classes, [](auto& row) { return bits(row.rate); }), rate_units());
  table.numbers("limit", column(classes, [](auto& row) { return bits(row.limit); }), rate_units());
  if (std::any_of(classes.begin(), classes.end(), [](auto& row) { return row.each.has_value(); })) {
    table.numbers("each", column(classes, [](auto& row) { return row.each ? bits(row.each->limit) : Cell(); }),
                  rate_units());
  }
  table.numbers("sent", column(classes, [](auto& row) { return bytes(row.wire_bytes); }), size_units());
  table.numbers("borrowed", column(classes, [](auto& row) { return bytes(row.borrowed); }), size_units());
  table.numbers("dropped", column(classes, [](auto& row) { return Cell(row.dropped_packets); }), plain_units());
  table.numbers("marked", column(classes, [](auto& row) { return Cell(row.marked_packets); }), plain_units());
  table.numbers("backlog", column(classes, [](auto& row) { return bytes(row.backlog_bytes); }), size_units());
  table.numbers("p99", column(classes, [](auto& row) { return nanos(row.delay.p99); }), time_units());
  for (std::size_t row = 0; row < classes.size(); ++row) {
    if (row == 0 || classes[row].link != classes[row - 1].link) table.heading(row, terminal_text(classes[row].link));
  }
  return table.text();
}

/// Over several hosts with the strategy, unless it is the usual one.
std::string scope_text(const LimitReport& limit) {
  std::string text(scope_name(limit.scope));
  if (limit.strategy.value_or("grants") != "grants") text += ", " + terminal_text(*limit.strategy);
  return text;
}

std::string limit_table(const std::vector<LimitReport>& limits) {
  TextTable table;
  table.words("named limit", column(limits, [](auto& row) { return terminal_text(row.name); }));
  table.words("scope", column(limits, [](auto& row) { return scope_text(row); }));
  table.words("state", column(limits, [](auto& row) { return terminal_text(row.state); }));
  table.words("each", column(limits, [](auto& row) { return terminal_text(row.by.value_or("-")); }));
  table.numbers("keys", column(limits, [](auto& row) { return row.by ? Cell(row.keys) : Cell(); }), plain_units());
  table.numbers("rate", column(limits, [](auto& row) { return bits(row.rate); }), rate_units());
  table.numbers("limit", column(limits, [](auto& row) { return bits(row.limit); }), rate_units());
  // The rate is that of all keys together, the limit that of each: no share can be told.
  table.numbers("used", column(limits, [](auto& row) { return row.by ? Cell() : percent(row.rate, row.limit); }),
                percent_units());
  table.numbers("credit", column(limits, [](auto& row) { return bytes(row.credit); }), size_units());
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

}  // namespace

std::string drop_reasons(const DropCounts& drops) {
  std::vector<std::size_t> reasons;
  for (std::size_t reason = 0; reason < kDropReasons; ++reason) {
    if (drops[reason] > 0) reasons.push_back(reason);
  }
  std::stable_sort(reasons.begin(), reasons.end(), [&](std::size_t a, std::size_t b) { return drops[a] > drops[b]; });
  std::string text;
  for (const std::size_t reason : reasons) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", drops[reason], kDropReasonNames[reason]);
  }
  return text;
}

std::string exceptions_text(const std::vector<ClassReport>& classes) {
  std::string text;
  for (const ClassReport& row : classes) {
    const auto add = [&](std::string_view words) {
      text += fmt::format("{} on {}: {}\n", terminal_text(row.name), terminal_text(row.link), words);
    };
    if (row.dropped_packets > 0) add("dropped " + drop_reasons(row.drops));
    if (row.lost_packets > 0) add(fmt::format("lost {} (cleared by the kernel while held)", row.lost_packets));
    if (row.passed_packets > 0) add(fmt::format("passed {} unmetered", row.passed_packets));
    if (row.late_bytes.value > 0) add(fmt::format("{} B of credit lost to late wake-ups", row.late_bytes.value));
    if (row.backlog_packets > 0 && row.wait) {
      add(fmt::format("a full frame that came now would wait {:.2f} ms",
                      std::chrono::duration<double, std::milli>(*row.wait).count()));
    }
  }
  return text;
}

namespace {

/// What was lost besides, of links and limits.
std::string late_text(const StatusReport& report) {
  std::string text;
  const auto add = [&text](std::string_view kind, std::string_view name, ByteCount late) {
    if (late.value == 0) return;
    text += fmt::format("{} {}: {} B of credit lost to late wake-ups\n", kind, terminal_text(name), late.value);
  };
  for (const LinkReport& link : report.links) add("link", link.name, link.late_bytes);
  for (const LimitReport& limit : report.limits) add("limit", limit.name, limit.late_bytes);
  return text;
}

std::string crowded_text(const std::vector<LimitReport>& limits) {
  std::string text;
  for (const LimitReport& limit : limits) {
    if (limit.other_flows == 0) continue;
    text += fmt::format("limit {}: has {} keys: {} flows of others share one bucket, {}/other\n",
                        terminal_text(limit.name), kMostGrantedKeys, limit.other_flows, terminal_text(limit.name));
  }
  return text;
}

std::string live_text(const std::vector<LimitReport>& limits) {
  std::string text;
  for (const LimitReport& limit : limits) {
    if (!limit.id) continue;
    text += fmt::format("{} is for {}{}; 'shaper unlimit {}' lifts it\n", terminal_text(limit.name),
                        terminal_text(limit.selector.value_or("")),
                        limit.expires ? ", until " + terminal_text(*limit.expires) : "", *limit.id);
  }
  return text;
}

}  // namespace

std::string status_table(const StatusReport& report) {
  std::string text(mode_name(report.mode));
  if (report.rules) text += fmt::format(", rules {}", rules_status_name(*report.rules));
  text += fmt::format(", version {}\n", terminal_text(report.version));
  const std::vector<ClassReport> classes = by_link(report.classes, report.links);
  const auto add = [&text](const std::string& part) {
    if (!part.empty()) text += '\n' + part;
  };
  if (!report.links.empty()) add(link_table(report.links));
  if (!classes.empty()) add(class_table(classes));
  if (!report.limits.empty()) add(limit_table(report.limits) + live_text(report.limits));
  add(exceptions_text(classes) + late_text(report) + crowded_text(report.limits));
  if (!report.queues.empty()) add(queue_table(report.queues));
  std::string told;
  for (const std::string& advice : report.advice) told += fmt::format("advice: {}\n", terminal_text(advice));
  for (const std::string& warning : report.warnings) told += fmt::format("warning: {}\n", terminal_text(warning));
  add(told);
  return text;
}

}  // namespace shaper
