#include "cli/terminal.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

namespace shaper::cli {
namespace {

constexpr std::string_view kHideCursor = "\x1b[?25l";
constexpr std::string_view kShowCursor = "\x1b[?25h";
constexpr std::string_view kHome = "\x1b[H";
constexpr std::string_view kClearToEndOfLine = "\x1b[K";
constexpr std::string_view kClearBelow = "\x1b[J";

/// The handler is in force once: the signal then does what it always does.
void give_cursor_back(int signal) {
  (void)!::write(STDOUT_FILENO, kShowCursor.data(), kShowCursor.size());
  (void)::raise(signal);
}

void on_end(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
}

sigset_t size_changes() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGWINCH);
  return signals;
}

void put(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace

std::optional<TerminalSize> terminal_size() {
  if (::isatty(STDOUT_FILENO) != 1) return std::nullopt;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return TerminalSize{};
  return TerminalSize{size.ws_col, size.ws_row};
}

std::string cut_lines(std::string_view text, std::size_t columns) {
  std::string cut;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    cut += line.substr(0, columns);
    if (end == std::string_view::npos) break;
    cut += '\n';
    text.remove_prefix(end + 1);
  }
  return cut;
}

WatchScreen::WatchScreen() {
  const sigset_t signals = size_changes();
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);  // it comes in the pause
  on_end(give_cursor_back);
  put(std::string(kHideCursor) + std::string(kHome) + std::string(kClearBelow));
}

WatchScreen::~WatchScreen() {
  on_end(SIG_DFL);
  put(kShowCursor);
}

void WatchScreen::draw(std::string_view text) const {
  // Each line is overwritten, not the whole screen cleared: that would flicker.
  std::string frame(kHome);
  for (const char c : text) {
    if (c == '\n') frame += kClearToEndOfLine;
    frame += c;
  }
  put(frame + std::string(kClearBelow));
}

void WatchScreen::pause(std::chrono::nanoseconds time) const {
  const sigset_t signals = size_changes();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  const timespec limit{seconds.count(), (time - seconds).count()};
  (void)::sigtimedwait(&signals, nullptr, &limit);
}

}  // namespace shaper::cli
