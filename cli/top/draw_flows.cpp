// The lower part: the flows that the filter leaves, in order; and the line about what is selected.
#include <fmt/format.h>

#include <algorithm>

#include "cli/top/flow_words.h"
#include "cli/top/frame.h"
#include "shaper/model/flow_columns.h"
#include "shaper/model/tables.h"
#include "shaper/model/units_text.h"

namespace shaper::top {
namespace {

/// "12 of 50 flows, 94.21 Mbit/s, backlog 61.20 kB in 43 packets; by rate, with 'text'"
std::string summary(const State& state) {
  std::string text = state.totals().text(state.all_flows(), state.flow_count());
  if (state.flows_every()) text += fmt::format("; listed every {:.0f} s", in_seconds(*state.flows_every()));
  text += fmt::format("; by {}{}", flow_sort_name(state.sort()), state.reverse() ? ", smallest first" : "");
  if (!state.filter().empty()) text += fmt::format(", with '{}'", terminal_text(state.filter()));
  return text;
}

void paint(Line& line, const FlowReport& flow, const TextTable& table) {
  const bool waits = flow.backlog_packets > 0;
  if (!waits) return;
  for (const char* title : {"state", "backlog", "p99"}) line.paint(table.place(title), Style::full);
}

/// What it waits for now, and the live limits that it obeys.
std::string limits_on(const State& state, const FlowReport& flow) {
  std::string text;
  if (flow.held_by) {
    text += fmt::format("waits for {} {}; ", terminal_text(flow.held_by->bucket), terminal_text(flow.held_by->name));
  }
  const auto ids = state.live_limits_of(flow);
  if (!ids.empty()) text += fmt::format("under live-{}; ", fmt::join(ids, ", live-"));
  return text;
}

std::string flow_detail(const State& state, const FlowReport& flow) {
  std::string text = limits_on(state, flow);
  if (flow.dropped_packets > 0) text += fmt::format("dropped {}; ", drop_reasons(flow.drops));
  text += fmt::format("{} on {}", terminal_text(flow.class_name), terminal_text(flow.link));
  if (flow.user) text += fmt::format("; {}", terminal_text(*flow.user));
  if (flow.owner) text += fmt::format(" {}", terminal_text(*flow.owner));
  text += fmt::format("; sent {}", with_unit(flow.wire_bytes.value, size_units()));
  if (flow.delay.p50 > Nanos{0}) {
    text += fmt::format("; p50 {}", with_unit(static_cast<std::uint64_t>(flow.delay.p50.count()), time_units()));
  }
  return text + "; " + flow_name(flow);
}

std::string meter_detail(const State& state, const Meter& meter) {
  for (const LimitReport& limit : state.status().limits) {
    if (meter.kind != MeterKind::limit || limit.name != meter.name || !limit.selector) continue;
    return fmt::format("{} {}; {}; u lifts it", terminal_text(limit.name), terminal_text(meter.state),
                       terminal_text(*limit.selector));
  }
  if (meter.kind != MeterKind::of_class)
    return fmt::format("{} {}", terminal_text(meter.name), terminal_text(meter.state));
  const std::string drops = drop_reasons(meter.history.drops_per_second());
  return fmt::format("{} on {}; {}e has more", terminal_text(meter.name), terminal_text(meter.link),
                     drops.empty() ? "" : fmt::format("drops {} each second; ", drops));
}

}  // namespace

std::vector<Line> draw_flows(State& state, std::size_t rows, std::size_t columns) {
  std::vector<Line> lines;
  const bool active = state.part == Part::flows;
  const Style of_title = active ? Style::title : Style::faint;
  const auto title = [&](const std::string& text) { lines.push_back({cut(text, columns), {{0, columns, of_title}}}); };
  title(summary(state));
  const bool titled = rows >= kLinesForTitles;
  const std::size_t above = titled ? 1 + kTitleLines : 1;
  const std::size_t shown = rows > above ? rows - above : 0;
  state.flow_cursor.fit(shown, state.flow_count());
  const std::size_t first = state.flow_cursor.first;
  std::vector<FlowReport> flows;
  for (std::size_t row = first; row < std::min(state.flow_count(), first + shown); ++row) {
    flows.push_back(state.flow(row));
  }
  if (!flows.empty()) {
    const TextTable table = flow_columns(flows, {columns, std::nullopt, true});
    const std::vector<std::string> text = lines_of(table.text());
    const std::size_t titles = text.size() - flows.size();
    for (std::size_t line = 0; line < titles && titled; ++line) title(text[line]);
    for (std::size_t row = 0; row < flows.size(); ++row) {
      Line& line = lines.emplace_back(Line{cut(text[titles + row], columns), {}});
      paint(line, flows[row], table);
      if (active && first + row == state.flow_cursor.at) line.spans.push_back({0, columns, Style::selected});
    }
  }
  lines.resize(rows);
  return lines;
}

Line detail_line(const State& state) {
  Line line;
  if (state.part == Part::meters) {
    if (state.meter() != nullptr) line.text = meter_detail(state, *state.meter());
  } else if (state.flow() != nullptr) {
    line.text = flow_detail(state, *state.flow());
  }
  line.spans.push_back({0, characters(line.text), Style::strong});
  return line;
}

}  // namespace shaper::top
