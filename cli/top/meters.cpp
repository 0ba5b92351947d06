#include "cli/top/meters.h"

#include <fmt/format.h>

#include <algorithm>

#include "shaper/model/tables.h"
#include "shaper/model/text_table.h"
#include "shaper/model/units_text.h"

namespace shaper::top {
namespace {

/// From this share of what it may have on, in percent, it is full.
constexpr std::uint64_t kFullPercent = 95;

Meter link_meter(const LinkReport& link) {
  Meter meter;
  meter.name = link.name;
  meter.rate = link.rate;
  meter.most = link.limit;
  meter.backlog = link.backlog_bytes;
  return meter;
}

Meter class_meter(const ClassReport& row, const LinkReport& link) {
  Meter meter;
  meter.kind = MeterKind::of_class;
  meter.name = row.name;
  meter.link = row.link;
  meter.rate = row.rate;
  meter.most = row.limit ? row.limit : link.limit;
  meter.backlog = row.backlog_bytes;
  meter.p99 = row.delay.p99;
  return meter;
}

/// "2026-01-31T23:59:59.123456Z" -> "until 23:59:59Z"
std::string until(const std::string& time) {
  constexpr std::size_t kBegin = 11;
  constexpr std::size_t kLength = 8;
  return time.size() < kBegin + kLength ? time : fmt::format("until {}Z", time.substr(kBegin, kLength));
}

Meter limit_meter(const LimitReport& limit) {
  Meter meter;
  meter.kind = MeterKind::limit;
  meter.name = limit.name;
  meter.rate = limit.rate;
  if (!limit.by) meter.most = limit.limit;
  meter.id = limit.id;
  if (limit.by) {
    meter.state = fmt::format("{} keys, each {}", limit.keys, format_rate(limit.limit));
  } else if (limit.scope == Scope::cluster) {
    meter.state = limit.state;
    meter.in_trouble = limit.state == "fallback";
  } else if (limit.expires) {
    meter.state = until(*limit.expires);
  } else if (limit.id) {
    meter.state = "for good";
  }
  return meter;
}

class Rows {
 public:
  Rows(std::vector<Meter> before, Instant now) : before_(std::move(before)), now_(now) {}

  void add(Meter meter, const DropCounts& drops) {
    const auto known = std::find_if(before_.begin(), before_.end(), [&](const Meter& row) { return row.is(meter); });
    if (known != before_.end()) meter.history = std::move(known->history);
    meter.history.add(now_, meter.rate, drops);
    meter.full =
        meter.most && Uint128{100} * meter.rate.bits_per_second >= Uint128{kFullPercent} * meter.most->bits_per_second;
    rows_.push_back(std::move(meter));
  }
  [[nodiscard]] std::vector<Meter> take() { return std::move(rows_); }

 private:
  std::vector<Meter> before_;
  Instant now_;
  std::vector<Meter> rows_;
};

DropCounts drops_on(const std::string& link, const std::vector<ClassReport>& classes) {
  DropCounts drops{};
  for (const ClassReport& row : classes) {
    if (row.link != link) continue;
    for (std::size_t reason = 0; reason < drops.size(); ++reason) drops[reason] += row.drops[reason];
  }
  return drops;
}

std::string class_text(const ClassReport& row) {
  std::string text = fmt::format("class {} on {}, priority {}, {} flows\n", terminal_text(row.name),
                                 terminal_text(row.link), row.priority, row.flows);
  const auto rate = [&text](const char* what, const std::optional<DataRate>& value) {
    if (value) text += fmt::format("{}: {}\n", what, format_rate(*value));
  };
  rate("guaranteed", row.guarantee);
  rate("at most", row.limit);
  if (!row.limit) text += "at most: what the link has\n";
  if (row.each) rate(fmt::format("each {}", terminal_text(row.each->by)).c_str(), row.each->limit);
  text += fmt::format("sent: {}, of them {} beyond the guarantee\n", with_unit(row.wire_bytes.value, size_units()),
                      with_unit(row.borrowed.value, size_units()));
  text +=
      fmt::format("waits: {} in {} packets\n", with_unit(row.backlog_bytes.value, size_units()), row.backlog_packets);
  text += fmt::format("delay: p50 {}, p90 {}, p99 {}, max {}\n", format_time(row.delay.p50), format_time(row.delay.p90),
                      format_time(row.delay.p99), format_time(row.delay.max));
  if (row.held_by) {
    text += fmt::format("waits for: {} {}\n", terminal_text(row.held_by->bucket), terminal_text(row.held_by->name));
  }
  return text + exceptions_text({row});
}

std::string limit_text(const LimitReport& limit) {
  std::string text = fmt::format("limit {}: {}{}\n", terminal_text(limit.name), format_rate(limit.limit),
                                 limit.by ? " for each " + terminal_text(*limit.by) : "");
  if (limit.selector) text += fmt::format("for: {}\n", terminal_text(*limit.selector));
  if (limit.expires) text += fmt::format("until: {}\n", terminal_text(*limit.expires));
  if (limit.by) text += fmt::format("keys: {}\n", limit.keys);
  if (limit.scope == Scope::cluster) {
    text += fmt::format("over several hosts: {}; 'shaper cluster show' has more\n", terminal_text(limit.state));
  }
  return text;
}

}  // namespace

std::vector<Meter> meters_of(const StatusReport& report, std::vector<Meter> before, Instant now) {
  Rows rows(std::move(before), now);
  for (const LinkReport& link : report.links) {
    rows.add(link_meter(link), drops_on(link.name, report.classes));
    for (const ClassReport& row : report.classes) {
      if (row.link == link.name) rows.add(class_meter(row, link), row.drops);
    }
  }
  for (const LimitReport& limit : report.limits) rows.add(limit_meter(limit), {});
  return rows.take();
}

std::string meter_text(const Meter& meter, const StatusReport& report) {
  std::string text;
  for (const LinkReport& link : report.links) {
    if (meter.kind != MeterKind::link || link.name != meter.name) continue;
    text += fmt::format("link {}: {} {}, {}\n", terminal_text(link.name), terminal_text(link.interface),
                        direction_name(link.direction), link.limit ? format_rate(*link.limit) : "no rate");
  }
  for (const ClassReport& row : report.classes) {
    const bool chosen = meter.kind == MeterKind::of_class && row.name == meter.name && row.link == meter.link;
    if (chosen || (meter.kind == MeterKind::link && row.link == meter.name)) text += class_text(row) + '\n';
  }
  for (const LimitReport& limit : report.limits) {
    if (meter.kind == MeterKind::limit && limit.name == meter.name) text += limit_text(limit) + '\n';
  }
  for (const std::string& advice : report.advice) text += fmt::format("advice: {}\n", terminal_text(advice));
  for (const std::string& warning : report.warnings) text += fmt::format("warning: {}\n", terminal_text(warning));
  return text;
}

}  // namespace shaper::top
