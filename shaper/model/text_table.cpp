#include "shaper/model/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace shaper {
namespace {

/// The largest that `value` fills, or the smallest.
const ColumnUnit& unit_for(std::uint64_t value, const ColumnUnits& units) {
  const auto larger = std::find_if(units.begin() + 1, units.end(), [&](auto& unit) { return unit.size > value; });
  return *(larger - 1);
}

/// `value` in units of `unit`; whole where that is the number's own. Zero is "0", and nothing else looks like it.
std::string in_unit(std::uint64_t value, const ColumnUnit& unit) {
  constexpr std::uint64_t kHalfOfTheLastDigit = 200;
  if (unit.size == 1 || value == 0) return std::to_string(value);
  if (value < unit.size / kHalfOfTheLastDigit) return "<0.01";
  return fmt::format("{:.2f}", static_cast<double>(value) / static_cast<double>(unit.size));
}

}  // namespace

ColumnUnits rate_units() {
  return {{"bit/s", 1}, {"kbit/s", 1000}, {"Mbit/s", 1'000'000}, {"Gbit/s", 1'000'000'000}};
}

ColumnUnits size_units() {
  return {{"B", 1}, {"kB", 1000}, {"MB", 1'000'000}, {"GB", 1'000'000'000}};
}

ColumnUnits time_units() {
  return {{"us", 1000}, {"ms", 1'000'000}, {"s", 1'000'000'000}};
}

ColumnUnits plain_units() {
  return {{"", 1}};
}

ColumnUnits percent_units() {
  return {{"%", 1}};
}

std::string with_unit(std::uint64_t value, const ColumnUnits& units) {
  const ColumnUnit& unit = unit_for(value, units);
  return fmt::format("{} {}", in_unit(value, unit), unit.name);
}

std::size_t characters(std::string_view text) {
  constexpr unsigned kTopBits = 0xc0;
  constexpr unsigned kContinues = 0x80;
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & kTopBits) != kContinues; }));
}

std::string cut_in_the_middle(const std::string& text, std::size_t width) {
  constexpr std::string_view kGap = "..";
  if (text.size() <= width || width <= kGap.size()) return text;
  const std::size_t head = (width - kGap.size()) / 2;
  const std::size_t tail = width - kGap.size() - head;
  return fmt::format("{}{}{}", text.substr(0, head), kGap, text.substr(text.size() - tail));
}

TextTable::Column::Column(std::vector<std::string> of_lines, bool right)
    : lines(std::move(of_lines)), to_the_right(right) {
  for (const std::string& line : lines) width = std::max(width, characters(line));
}

void TextTable::words(std::string title, std::vector<std::string> cells) {
  cells.insert(cells.begin(), {std::move(title), ""});
  columns_.emplace_back(std::move(cells), false);
}

void TextTable::numbers(std::string title, const std::vector<std::optional<std::uint64_t>>& cells,
                        const ColumnUnits& units, std::uint64_t beside) {
  std::uint64_t largest = beside;
  for (const std::optional<std::uint64_t>& cell : cells) largest = std::max(largest, cell.value_or(0));
  const ColumnUnit& unit = unit_for(largest, units);
  const bool empty = std::none_of(cells.begin(), cells.end(), [](const auto& cell) { return cell.has_value(); });

  std::vector<std::string> lines{std::move(title), empty ? "" : unit.name};
  for (const std::optional<std::uint64_t>& cell : cells) lines.push_back(cell ? in_unit(*cell, unit) : "-");
  columns_.emplace_back(std::move(lines), true);
}

void TextTable::leave_out(const std::string& title) {
  std::erase_if(columns_, [&](const Column& column) { return column.lines.front() == title; });
}

std::size_t TextTable::width() const {
  std::size_t width = 0;
  for (const Column& column : columns_) width += (width == 0 ? 0 : gap_) + column.width;
  return width;
}

std::optional<TextTable::Place> TextTable::place(const std::string& title) const {
  std::size_t begin = 0;
  for (const Column& column : columns_) {
    if (column.lines.front() == title) return Place{begin, column.width};
    begin += column.width + gap_;
  }
  return std::nullopt;
}

std::string TextTable::text() const {
  std::string text;
  const std::size_t lines = columns_.empty() ? 0 : columns_.front().lines.size();
  constexpr std::size_t kHead = 2;  // title and unit
  for (std::size_t line = 0; line < lines; ++line) {
    const auto heading = line < kHead ? headings_.end() : headings_.find(line - kHead);
    if (heading != headings_.end()) text += heading->second + '\n';
    std::string row;
    for (const Column& column : columns_) {
      row += fmt::format(fmt::runtime(column.to_the_right ? "{:>{}}{}" : "{:<{}}{}"), column.lines.at(line),
                         column.width, std::string(gap_, ' '));
    }
    row.erase(row.find_last_not_of(' ') + 1);
    if (line != 1 || !row.empty()) text += row + '\n';
  }
  return text;
}

}  // namespace shaper
