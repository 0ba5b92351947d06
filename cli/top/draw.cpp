// Where things stand: a line of state, the two parts, a line about the selected row, and one for keys and messages.
#include <fmt/format.h>

#include <algorithm>

#include "cli/top/frame.h"
#include "shaper/model/plain_text.h"
#include "shaper/model/tables.h"

namespace shaper::top {
namespace {

/// With fewer lines only one part is shown: the one that keys go to.
constexpr std::size_t kLinesForBothParts = 14;

constexpr std::string_view kKeys = "?:help l:limit u:lift e:explain s:sort /:filter Tab:part space:pause q:quit";

/// "shaping, rules present | warning: ... (1 of 3, e on a row above has all)"
std::string state_text(const State& state) {
  const StatusReport& status = state.status();
  std::string text(mode_name(status.mode));
  if (status.rules) text += fmt::format(", rules {}", rules_status_name(*status.rules));
  if (state.trouble()) text += fmt::format(": {}", terminal_text(*state.trouble()));
  if (status.warnings.empty()) return text;
  text += fmt::format(" | warning: {}", terminal_text(status.warnings.front()));
  return text;
}

Line state_line(const State& state, std::size_t columns) {
  std::string right;
  const std::size_t warnings = state.status().warnings.size();
  if (warnings > 1) right += fmt::format(" (1 of {})", warnings);
  right += state.paused ? "  paused" : fmt::format("  every {:.0f} s", in_seconds(state.status_every()));
  std::string left = state_text(state);
  const std::size_t room = columns > right.size() ? columns - right.size() : 0;
  if (left.size() > room) left = cut(left, room > 2 ? room - 2 : 0) + (room > 2 ? ".." : "");
  Line line{cut(fmt::format("{:<{}}{}", left, room, right), columns), {}};
  const StatusReport& status = state.status();
  const bool unshaped = status.mode != Mode::shaping || status.rules == RulesStatus::missing || state.trouble();
  const Style style = unshaped ? Style::bad : (warnings > 0 ? Style::full : Style::good);
  line.spans.push_back({0, left.size(), style});
  if (state.paused) line.spans.push_back({columns - std::min(columns, std::size_t{6}), 6, Style::selected});
  return line;
}

Line lowest_line(const State& state, std::size_t columns, std::optional<std::size_t>& cursor) {
  if (state.prompt) {
    const std::string& text = state.prompt->text;
    // What is typed is seen, whatever the question.
    const std::size_t room = columns > text.size() + 1 ? columns - text.size() - 1 : 0;
    std::string question = state.prompt->question;
    if (question.size() > room) question = cut_in_the_middle(question, std::max<std::size_t>(room, 3));
    Line line{cut(question + text, columns), {{0, std::min(question.size(), columns), Style::strong}}};
    cursor = std::min(question.size() + text.size(), columns > 0 ? columns - 1 : 0);
    return line;
  }
  if (state.message) {
    Line line{cut(terminal_text(state.message->text), columns), {}};
    line.spans.push_back({0, line.text.size(), state.message->failure ? Style::bad : Style::good});
    return line;
  }
  return {cut(std::string(state.page ? "q back  arrows, PgUp PgDn scroll" : kKeys), columns),
          {{0, columns, Style::faint}}};
}

/// `text` in lines of at most `columns`, broken between words where that is possible.
std::vector<std::string> wrapped(const std::string& text, std::size_t columns) {
  std::vector<std::string> lines;
  columns = std::max<std::size_t>(columns, 1);
  for (std::string line : lines_of(text)) {
    while (line.size() > columns) {
      const std::size_t space = line.rfind(' ', columns);
      const std::size_t indent = line.find_first_not_of(' ');
      const bool between_words = space != std::string::npos && space > std::min(indent, line.size());
      const std::size_t end = between_words ? space : columns;
      lines.push_back(line.substr(0, end));
      line.erase(0, between_words ? end + 1 : end);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

void draw_page(State& state, std::size_t rows, std::size_t columns, std::vector<Line>& lines) {
  const std::vector<std::string> text = wrapped(state.page->text, columns);
  const std::size_t shown = rows > 1 ? rows - 1 : 0;
  Cursor& cursor = state.page->cursor;
  cursor.rows = std::max<std::size_t>(shown, 1);
  cursor.first = std::min(cursor.first, text.size() > shown ? text.size() - shown : 0);
  const std::size_t end = std::min(text.size(), cursor.first + shown);
  const std::string title =
      fmt::format("{}{}", state.page->title,
                  text.size() > shown ? fmt::format("  ({} to {} of {} lines)", cursor.first + 1, end, text.size())
                                      : std::string());
  lines.push_back({cut(title, columns), {{0, columns, Style::title}}});
  for (std::size_t line = cursor.first; line < end; ++line) lines.push_back({text[line], {}});
  lines.resize(lines.size() + shown - (end - cursor.first));
}

void append(std::vector<Line>& lines, std::vector<Line> more) {
  lines.insert(lines.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

/// Both parts if there is room, and what is selected.
void draw_parts(State& state, TerminalSize size, std::size_t rows, Charset charset, std::vector<Line>& lines) {
  constexpr std::size_t kLinesForDetail = 6;
  const bool detail = rows >= kLinesForDetail;
  std::size_t left = rows - (detail ? 1 : 0);
  const bool both = size.rows >= kLinesForBothParts;
  if (both || state.part == Part::meters) {
    const std::size_t wanted = state.meters().size() + kTitleLines;
    const std::size_t most = both ? std::min(left / 2, wanted) : left;
    append(lines, draw_meters(state, most, size.columns, charset));
    left -= most;
  }
  if (both || state.part == Part::flows) append(lines, draw_flows(state, left, size.columns));
  if (detail) {
    Line line = detail_line(state);
    line.text = cut(line.text, size.columns);
    lines.push_back(std::move(line));
  }
}

}  // namespace

std::string cut(const std::string& text, std::size_t columns) {
  std::size_t end = 0;
  while (end < text.size() && characters(std::string_view(text).substr(0, end + 1)) <= columns) ++end;
  return text.substr(0, end);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::string_view rest = text;
  while (!rest.empty()) lines.emplace_back(take_line(rest));
  return lines;
}

Frame draw(State& state, TerminalSize size, Charset charset) {
  Frame frame;
  if (size.rows == 0) return frame;
  if (size.rows > 2) frame.lines.push_back(state_line(state, size.columns));
  const std::size_t rows = size.rows - frame.lines.size() - 1;
  if (state.page) {
    draw_page(state, rows, size.columns, frame.lines);
  } else if (rows > 0) {
    draw_parts(state, size, rows, charset, frame.lines);
  }
  frame.lines.resize(size.rows - 1);
  frame.lines.push_back(lowest_line(state, size.columns, frame.cursor));
  return frame;
}

}  // namespace shaper::top
