#include "cli/screen.h"

#define NCURSES_NOMACROS 1
#define NCURSES_WIDECHAR 1
#include <fmt/format.h>
#include <langinfo.h>
#include <ncurses.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <clocale>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string_view>

#include "cli/commands.h"
#include "shaper/model/units_text.h"

namespace shaper::cli {
namespace {

using top::Key;
using top::KeyCode;
using top::Style;

enum Pair : short { kPlain, kGreen, kYellow, kRed, kCyan };

struct Look {
  attr_t attributes;
  Pair colour;
  attr_t without_colours;  ///< instead of a colour
};

Look look_of(Style style) {
  switch (style) {
    case Style::title:
      return {A_BOLD, kPlain, 0};
    case Style::faint:
      return {A_DIM, kPlain, 0};
    case Style::strong:
      return {A_BOLD, kPlain, 0};
    case Style::good:
      return {A_NORMAL, kGreen, 0};
    case Style::graph:
      return {A_NORMAL, kCyan, 0};
    case Style::full:
      return {A_NORMAL, kYellow, A_BOLD};
    case Style::bad:
      return {A_BOLD, kRed, A_UNDERLINE};
    case Style::selected:
      return {A_REVERSE, kPlain, 0};
  }
  return {A_NORMAL, kPlain, 0};
}

/// https://no-color.org
bool wants_colours() {
  const char* none = std::getenv("NO_COLOR");
  return none == nullptr || *none == '\0';
}

/// Colours on the background that the terminal has.
bool start_colours() {
  if (!wants_colours() || !has_colors() || start_color() == ERR || use_default_colors() == ERR) return false;
  init_pair(kGreen, COLOR_GREEN, -1);
  init_pair(kYellow, COLOR_YELLOW, -1);
  init_pair(kRed, COLOR_RED, -1);
  init_pair(kCyan, COLOR_CYAN, -1);
  return true;
}

Key key_of_code(wint_t code) {
  static const std::map<wint_t, KeyCode> kCodes{
      {KEY_UP, KeyCode::up},           {KEY_DOWN, KeyCode::down},   {KEY_PPAGE, KeyCode::page_up},
      {KEY_NPAGE, KeyCode::page_down}, {KEY_HOME, KeyCode::home},   {KEY_END, KeyCode::end},
      {KEY_BTAB, KeyCode::tab},        {KEY_ENTER, KeyCode::enter}, {KEY_BACKSPACE, KeyCode::backspace}};
  const auto known = kCodes.find(code);
  return {known == kCodes.end() ? KeyCode::other : known->second, 0};
}

Key key_of_character(wint_t character) {
  switch (character) {
    case '\t':
      return {KeyCode::tab, 0};
    case '\n':
    case '\r':
      return {KeyCode::enter, 0};
    case '\x1b':
      return {KeyCode::escape, 0};
    case '\b':
    case '\x7f':
      return {KeyCode::backspace, 0};
    default:
      break;
  }
  if (character < ' ' || character > '~') return {};
  return {KeyCode::character, static_cast<char>(character)};
}

}  // namespace

void require_terminal() {
  if (::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1) return;
  throw CommandError(ExitCode::wrong_usage, "top needs a terminal; 'shaper status' and 'shaper flows' do not");
}

Screen::Screen() {
  constexpr int kEscapeDelayMs = 25;  // a lone Esc is one at once; ncurses waits a second for more of a sequence
  std::setlocale(LC_CTYPE, "");
  if (std::string_view(::nl_langinfo(CODESET)) == "UTF-8") charset_ = top::Charset::utf8;
  screen_ = newterm(nullptr, stdout, stdin);
  if (!can_be_steered()) {
    if (screen_ != nullptr) give_back();
    const char* kind = std::getenv("TERM");
    throw CommandError(ExitCode::wrong_usage, fmt::format("top cannot steer a terminal of TERM={}; set another TERM",
                                                          kind == nullptr ? "" : quoted(kind, "(odd)")));
  }
  set_escdelay(kEscapeDelayMs);
  cbreak();
  noecho();
  nonl();
  keypad(stdscr, true);
  nodelay(stdscr, true);
  colours_ = start_colours();
}

Screen::~Screen() {
  give_back();
}

/// Whether its cursor can be moved.
bool Screen::can_be_steered() const {
  if (screen_ == nullptr) return false;
  const char* move_cursor = tigetstr("cup");
  return move_cursor != nullptr && std::bit_cast<std::intptr_t>(move_cursor) != -1;
}

void Screen::give_back() const {
  endwin();
  delscreen(screen_);
}

TerminalSize Screen::size() const {
  return {static_cast<std::size_t>(std::max(getmaxx(stdscr), 0)),
          static_cast<std::size_t>(std::max(getmaxy(stdscr), 0))};
}

void Screen::paint(const top::Frame& frame) const {
  erase();
  for (std::size_t row = 0; row < frame.lines.size(); ++row) {
    const top::Line& line = frame.lines[row];
    const int y = static_cast<int>(row);
    mvaddstr(y, 0, line.text.c_str());
    for (const top::Span& span : line.spans) {
      const Look look = look_of(span.style);
      const attr_t attributes = look.attributes | (colours_ ? A_NORMAL : look.without_colours);
      mvchgat(y, static_cast<int>(span.begin), static_cast<int>(span.width), attributes,
              colours_ ? look.colour : kPlain, nullptr);
    }
  }
  curs_set(frame.cursor ? 1 : 0);
  if (frame.cursor) move(static_cast<int>(frame.lines.size()) - 1, static_cast<int>(*frame.cursor));
  refresh();
}

std::optional<Key> Screen::key() {
  wint_t character = 0;
  const int result = get_wch(&character);
  if (result == ERR) return std::nullopt;
  return result == KEY_CODE_YES ? key_of_code(character) : key_of_character(character);
}

void Screen::follow_size() {
  const auto now = terminal_size();
  if (!now) return;
  resizeterm(static_cast<int>(std::max<std::size_t>(now->rows, 1)),
             static_cast<int>(std::max<std::size_t>(now->columns, 1)));
}

void Screen::leave() {
  endwin();
}

void Screen::come_back() {
  follow_size();
  reset_prog_mode();
  clearok(curscr, true);  // whatever was written meanwhile goes
  refresh();
}

}  // namespace shaper::cli
