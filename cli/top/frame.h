// A picture of the whole screen, as lines with styles in them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/terminal.h"
#include "cli/top/graph.h"
#include "cli/top/state.h"
#include "shaper/model/text_table.h"

namespace shaper::top {

using cli::TerminalSize;

enum class Style : std::uint8_t {
  title,     ///< of the part that keys go to
  faint,     ///< of the other one
  strong,    ///< a name
  graph,     ///< the last minute
  good,      ///< below its limit
  full,      ///< takes all that it may, or waits
  bad,       ///< loses packets, or is not shaped
  selected,  ///< the row that keys are about
};

/// A style for `width` characters from `begin` on. Later ones cover earlier ones.
struct Span {
  std::size_t begin = 0;
  std::size_t width = 0;
  Style style = Style::title;
};

/// UTF-8, each character one place wide.
struct Line {
  std::string text;
  std::vector<Span> spans;

  void paint(const std::optional<TextTable::Place>& place, Style style) {
    if (place) spans.push_back({place->begin, place->width, style});
  }
};

struct Frame {
  std::vector<Line> lines;
  std::optional<std::size_t> cursor;  ///< column in the last line, where something is typed
};

/// As many lines as the screen has, or fewer; each fits.
[[nodiscard]] Frame draw(State& state, TerminalSize size, Charset charset);

/// A part of the screen: titles, and the rows around the cursor. Both move the cursor into sight.
[[nodiscard]] std::vector<Line> draw_meters(State& state, std::size_t rows, std::size_t columns, Charset charset);
[[nodiscard]] std::vector<Line> draw_flows(State& state, std::size_t rows, std::size_t columns);
inline constexpr std::size_t kTitleLines = 2;
/// With fewer lines a part has no titles.
inline constexpr std::size_t kLinesForTitles = 5;

/// One line with what the table has no room for.
[[nodiscard]] Line detail_line(const State& state);

/// `text` without what is beyond `columns`; "é" is one.
[[nodiscard]] std::string cut(const std::string& text, std::size_t columns);

[[nodiscard]] inline double in_seconds(Nanos time) {
  return std::chrono::duration<double>(time).count();
}

/// The lines of `text`.
[[nodiscard]] std::vector<std::string> lines_of(const std::string& text);

}  // namespace shaper::top
