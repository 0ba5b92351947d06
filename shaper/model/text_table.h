// A table of text: columns as wide as their widest cell, numbers to the right, words to the left. Text is UTF-8, each
// character one place wide.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shaper {

/// A step of a column's unit: `name` stands for `size` of the numbers given.
struct ColumnUnit {
  const char* name;
  std::uint64_t size;
};

/// The units of a kind, the smallest first.
using ColumnUnits = std::vector<ColumnUnit>;

[[nodiscard]] ColumnUnits rate_units();   ///< of bits per second
[[nodiscard]] ColumnUnits size_units();   ///< of bytes
[[nodiscard]] ColumnUnits time_units();   ///< of nanoseconds
[[nodiscard]] ColumnUnits plain_units();  ///< counts
[[nodiscard]] ColumnUnits percent_units();

/// "94.21 Mbit/s", in the largest unit that it fills.
[[nodiscard]] std::string with_unit(std::uint64_t value, const ColumnUnits& units);

/// Characters of UTF-8 text.
[[nodiscard]] std::size_t characters(std::string_view text);

/// "2001:db8:1:2:3:4:5:6" -> "2001:d..4:5:6", of ASCII.
[[nodiscard]] std::string cut_in_the_middle(const std::string& text, std::size_t width);

class TextTable {
 public:
  /// `gap` spaces between columns.
  explicit TextTable(std::size_t gap = 2) : gap_(gap) {}

  void words(std::string title, std::vector<std::string> cells);

  /// All in the largest unit that the largest number, or `beside`, fills. An absent number is written "-".
  void numbers(std::string title, const std::vector<std::optional<std::uint64_t>>& cells, const ColumnUnits& units,
               std::uint64_t beside = 0);

  /// A line of its own in front of row `row`, counted from 0.
  void heading(std::size_t row, std::string line) { headings_[row] = std::move(line); }

  /// Removes the column of that title, if there is one.
  void leave_out(const std::string& title);

  /// Where a column stands in a line, counted in characters.
  struct Place {
    std::size_t begin = 0;
    std::size_t width = 0;
  };
  /// Nothing: there is no column of that title.
  [[nodiscard]] std::optional<Place> place(const std::string& title) const;

  /// Characters of the longest line.
  [[nodiscard]] std::size_t width() const;

  /// The titles, the units, and one line for each row; no space at a line's end.
  [[nodiscard]] std::string text() const;

 private:
  struct Column {
    Column(std::vector<std::string> of_lines, bool right);

    std::vector<std::string> lines;  ///< title, unit, cells
    bool to_the_right;
    std::size_t width = 0;
  };
  std::size_t gap_;
  std::vector<Column> columns_;
  std::map<std::size_t, std::string> headings_;
};

}  // namespace shaper
