// Numbers as pictures in a line of text: eighths of a character where the terminal speaks UTF-8, else ASCII.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace shaper::top {

enum class Charset : std::uint8_t { ascii, utf8 };

/// `value` of `whole`, from left to right in `cells` characters. Anything above zero shows.
[[nodiscard]] std::string bar(std::uint64_t value, std::uint64_t whole, std::size_t cells, Charset charset);

/// A character for each of `values`: the higher, the more of `whole`.
[[nodiscard]] std::string history_line(const std::vector<std::uint64_t>& values, std::uint64_t whole, Charset charset);

}  // namespace shaper::top
