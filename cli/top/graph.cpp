#include "cli/top/graph.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "shaper/core/units.h"

namespace shaper::top {
namespace {

using Steps = std::array<std::string_view, 9>;

constexpr std::uint64_t kSteps = 8;  // of a character
constexpr Steps kAcross{" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
constexpr Steps kUp{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr Steps kAsciiAcross{" ", " ", " ", " ", "-", "-", "-", "-", "#"};
constexpr Steps kAsciiUp{" ", ".", ".", ":", "-", "=", "+", "*", "#"};

/// Of `most` steps, rounded to the nearest; at least one if there is anything.
std::uint64_t steps(std::uint64_t value, std::uint64_t whole, std::uint64_t most) {
  if (value == 0 || whole == 0) return 0;
  const Uint128 rounded = (Uint128{value} * most + whole / 2) / whole;
  return static_cast<std::uint64_t>(std::clamp<Uint128>(rounded, 1, most));
}

}  // namespace

std::string bar(std::uint64_t value, std::uint64_t whole, std::size_t cells, Charset charset) {
  const bool ascii = charset == Charset::ascii;
  const std::string_view track = ascii ? "." : "·";
  std::uint64_t left = steps(value, whole, kSteps * cells);
  if (ascii && left > 0) left = std::max(left, kSteps / 2);  // less is not seen
  std::string text;
  for (std::size_t cell = 0; cell < cells; ++cell) {
    const std::uint64_t filled = std::min(left, kSteps);
    const std::string_view step = (ascii ? kAsciiAcross : kAcross).at(filled);
    text += step == " " ? track : step;
    left -= filled;
  }
  return text;
}

std::string history_line(const std::vector<std::uint64_t>& values, std::uint64_t whole, Charset charset) {
  const Steps& up = charset == Charset::ascii ? kAsciiUp : kUp;
  std::string text;
  for (const std::uint64_t value : values) text += up.at(steps(value, whole, kSteps));
  return text;
}

}  // namespace shaper::top
