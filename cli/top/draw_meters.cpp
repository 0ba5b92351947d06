// The upper part: each link, class and limit against what it may have.
#include <fmt/format.h>

#include <algorithm>

#include "cli/top/frame.h"
#include "shaper/model/table_columns.h"
#include "shaper/model/tables.h"

namespace shaper::top {
namespace {

constexpr const char* kName = "link, class";

/// The titles that may go where there is no room for all, the first ones first.
const std::vector<std::string> kLessImportant{"of", "60 s", "backlog", "p99"};

/// What a terminal of this width has room for.
struct Widths {
  explicit Widths(std::size_t columns)
      : name(std::clamp<std::size_t>(columns / 6, 12, 40)),
        bar(std::clamp<std::size_t>(columns / 11, 6, 20)),
        history(std::clamp<std::size_t>(columns > 80 ? 10 + (columns - 80) / 2 : 10, 10, 60)) {}
  std::size_t name, bar, history;
  static constexpr std::size_t kLeastForDrops = 7;
};

bool loses_packets(const Meter& meter) {
  DropCounts drops = meter.history.drops_per_second();
  drops[static_cast<std::size_t>(DropReason::aqm)] = 0;  // CoDel's are how a TCP is told to slow down
  return std::any_of(drops.begin(), drops.end(), [](std::uint64_t count) { return count > 0; });
}

std::string name_of(const Meter& meter, std::size_t width) {
  const std::string before = meter.kind == MeterKind::of_class ? "  " : "";
  const std::string kind = meter.kind == MeterKind::limit && !meter.id ? "limit " : "";
  const std::string name = before + cut_in_the_middle(kind + terminal_text(meter.name), width - before.size());
  return fmt::format("{:<{}}", name, width);  // columns keep their place
}

std::string used_of(const Meter& meter, std::size_t cells, Charset charset) {
  const Cell share = percent(meter.rate, meter.most);
  if (!share) return std::string(cells, ' ') + "    -";
  return fmt::format("{} {:>3}%", bar(meter.rate.bits_per_second, meter.most->bits_per_second, cells, charset),
                     std::min<std::uint64_t>(*share, 999));
}

std::string history_of(const Meter& meter, std::size_t cells, Charset charset) {
  const std::vector<std::uint64_t> rates = meter.history.rates(cells);
  const std::uint64_t peak = rates.empty() ? 0 : *std::max_element(rates.begin(), rates.end());
  return history_line(rates, std::max(peak, meter.most ? meter.most->bits_per_second : 0), charset);
}

std::string drops_of(const Meter& meter) {
  return meter.kind == MeterKind::limit ? terminal_text(meter.state) : drop_reasons(meter.history.drops_per_second());
}

TextTable table_of(const std::vector<Meter>& meters, std::size_t columns, Charset charset) {
  const Widths widths(columns);
  std::uint64_t largest = 0;
  for (const Meter& meter : meters) {
    largest = std::max({largest, meter.rate.bits_per_second, meter.most ? meter.most->bits_per_second : 0});
  }
  TextTable table(1);
  table.words(kName, column(meters, [&](auto& row) { return name_of(row, widths.name); }));
  table.numbers("rate", column(meters, [](auto& row) { return bits(row.rate); }), rate_units(), largest);
  table.numbers("of", column(meters, [](auto& row) { return bits(row.most); }), rate_units(), largest);
  table.words("used", column(meters, [&](auto& row) { return used_of(row, widths.bar, charset); }));
  table.words("60 s", column(meters, [&](auto& row) { return history_of(row, widths.history, charset); }));
  table.numbers("backlog", column(meters, [](auto& row) { return bytes(row.backlog); }), size_units());
  table.numbers("p99", column(meters, [](auto& row) { return row.p99 ? nanos(*row.p99) : Cell(); }), time_units());
  for (const std::string& title : kLessImportant) {
    if (table.width() + 1 + Widths::kLeastForDrops > columns) table.leave_out(title);
  }
  const std::size_t rest = columns > table.width() ? columns - table.width() - 1 : 0;
  if (rest >= Widths::kLeastForDrops) {
    table.words("drops/s", column(meters, [&](auto& row) { return drops_of(row).substr(0, rest); }));
  }
  return table;
}

void paint(Line& line, const Meter& meter, const TextTable& table) {
  const bool waits = meter.backlog && meter.backlog->value > 0;
  const bool loses = loses_packets(meter) || meter.in_trouble;
  if (meter.kind == MeterKind::link) line.paint(table.place(kName), Style::strong);
  if (waits) line.paint(table.place(kName), Style::full);
  if (loses) line.paint(table.place(kName), Style::bad);
  line.paint(table.place("used"), meter.full ? Style::full : Style::good);
  line.paint(table.place("60 s"), Style::graph);
  if (waits) {
    line.paint(table.place("backlog"), Style::full);
    line.paint(table.place("p99"), Style::full);
  }
  line.paint(table.place("drops/s"), loses ? Style::bad : Style::full);
}

}  // namespace

std::vector<Line> draw_meters(State& state, std::size_t rows, std::size_t columns, Charset charset) {
  std::vector<Line> lines;
  const std::vector<Meter>& meters = state.meters();
  const bool titled = rows >= kLinesForTitles;
  const std::size_t shown = titled ? rows - kTitleLines : rows;
  state.meter_cursor.fit(shown, meters.size());
  if (meters.empty()) {
    lines.resize(rows);
    return lines;
  }
  const TextTable table = table_of(meters, columns, charset);
  const std::vector<std::string> text = lines_of(table.text());
  const std::size_t titles = text.size() - meters.size();
  const bool active = state.part == Part::meters;
  for (std::size_t title = 0; title < titles && titled; ++title) {
    lines.push_back({cut(text[title], columns), {{0, columns, active ? Style::title : Style::faint}}});
  }
  const std::size_t first = state.meter_cursor.first;
  for (std::size_t row = first; row < meters.size() && lines.size() < rows; ++row) {
    Line& line = lines.emplace_back(Line{cut(text[titles + row], columns), {}});
    paint(line, meters[row], table);
    if (active && row == state.meter_cursor.at) line.spans.push_back({0, columns, Style::selected});
  }
  lines.resize(rows);
  return lines;
}

}  // namespace shaper::top
