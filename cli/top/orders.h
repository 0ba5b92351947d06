// What keys ask for beyond the screen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace shaper::top {

struct Quit {};

struct SetLimit {
  std::string selector;
  std::string rate;
  std::optional<std::string> time;
};

struct Lift {
  std::uint64_t id = 0;
};

struct Explain {
  std::string flow;    ///< for people
  std::string packet;  ///< for the daemon
};

using Order = std::variant<std::monostate, Quit, SetLimit, Lift, Explain>;

enum class KeyCode : std::uint8_t {
  character,
  up,
  down,
  page_up,
  page_down,
  home,
  end,
  tab,
  enter,
  escape,
  backspace,
  other
};

struct Key {
  KeyCode code = KeyCode::other;
  char character = 0;  ///< printable ASCII
};

}  // namespace shaper::top
