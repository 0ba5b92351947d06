// The small pieces of text that an event log and a packet's description are made of.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shaper/core/packet.h"

namespace shaper {

/// A whole number in decimal, or in hexadecimal behind `0x`: in range, and nothing around it.
template <std::integral Number>
[[nodiscard]] std::optional<Number> parse_number(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x");
  if (hexadecimal) text.remove_prefix(2);
  Number number{};
  const char* end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, number, hexadecimal ? 16 : 10);
  if (error != std::errc{} || last != end) return std::nullopt;
  return number;
}

/// Takes the first word off `text`; words stand between single spaces. Empty at the end.
[[nodiscard]] std::string_view take_word(std::string_view& text);

/// Takes the first line off `text`, without its line feed. Empty at the end.
[[nodiscard]] std::string_view take_line(std::string_view& text);

/// 16-bit numbers between single spaces, as ports and queues; what is none is left out.
[[nodiscard]] std::vector<std::uint16_t> parse_numbers(std::string_view text);

/// `text` in quotation marks, on one line: `\n`, `\t`, `\"`, `\\`, other control characters as `\xNN`.
[[nodiscard]] std::string quote_line(std::string_view text);

/// What quote_line() quoted, or nothing.
[[nodiscard]] std::optional<std::string> unquote_line(std::string_view quoted);

/// An address with a port: `10.0.0.1:443`, `[2001:db8::1]:443`.
struct EndPoint {
  Family family = Family::other;
  Address address{};
  std::optional<std::uint16_t> port;

  friend bool operator==(const EndPoint&, const EndPoint&) = default;
};

/// Without its port if it has none; the address `-` is neither IPv4 nor IPv6.
[[nodiscard]] std::string format_end_point(const EndPoint& end_point);

/// Reads what format_end_point() writes. An IPv6 address without a port may have brackets or not.
[[nodiscard]] std::optional<EndPoint> parse_end_point(std::string_view text);

}  // namespace shaper
