// The terminal as a full screen, by ncurses: takes it, paints pictures on it, reads keys, gives it back.
#pragma once

#include <optional>

#include "cli/terminal.h"
#include "cli/top/frame.h"
#include "cli/top/orders.h"

// ncurses' own: its header is full of macros.
struct screen;

namespace shaper::cli {

/// Throws CommandError where input or output is no terminal.
void require_terminal();

class Screen {
 public:
  /// Throws CommandError where the terminal cannot be steered.
  Screen();
  /// The terminal is as it was.
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  [[nodiscard]] TerminalSize size() const;
  [[nodiscard]] top::Charset charset() const { return charset_; }

  void paint(const top::Frame& frame) const;

  /// The next key that has been typed; nothing: none has.
  [[nodiscard]] std::optional<top::Key> key();

  void follow_size();
  /// Gives the terminal back for a while, and takes it again.
  void leave();
  void come_back();

 private:
  [[nodiscard]] bool can_be_steered() const;
  void give_back() const;

  screen* screen_ = nullptr;
  top::Charset charset_ = top::Charset::ascii;
  bool colours_ = false;
};

}  // namespace shaper::cli
