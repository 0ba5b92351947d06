// The terminal on stdout: how large it is, and a screen that is drawn again and again.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace shaper::cli {

struct TerminalSize {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

/// Nothing: stdout is no terminal.
[[nodiscard]] std::optional<TerminalSize> terminal_size();

/// `text` with no line longer than `columns` characters; it has one byte for each.
[[nodiscard]] std::string cut_lines(std::string_view text, std::size_t columns);

/// Takes the terminal while it lives: without a cursor, and with a pause that ends when the size changes. A signal that
/// ends the process gives the cursor back first.
class WatchScreen {
 public:
  WatchScreen();
  ~WatchScreen();
  WatchScreen(const WatchScreen&) = delete;
  WatchScreen& operator=(const WatchScreen&) = delete;

  /// In place of what stood there.
  void draw(std::string_view text) const;

  /// Waits for that long, or until the terminal has another size.
  void pause(std::chrono::nanoseconds time) const;
};

}  // namespace shaper::cli
