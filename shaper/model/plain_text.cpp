#include "shaper/model/plain_text.h"

#include <fmt/format.h>

#include "shaper/model/address_text.h"

namespace shaper {

std::string_view take_word(std::string_view& text) {
  const std::size_t end = text.find(' ');
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return word;
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

std::vector<std::uint16_t> parse_numbers(std::string_view text) {
  std::vector<std::uint16_t> numbers;
  for (std::string_view word = take_word(text); !word.empty(); word = take_word(text)) {
    if (const auto number = parse_number<std::uint16_t>(word)) numbers.push_back(*number);
  }
  return numbers;
}

std::string quote_line(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < ' ' || byte == 0x7f) {
      quoted += fmt::format("\\x{:02x}", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::optional<std::string> unquote_line(std::string_view quoted) {
  if (quoted.size() < 2 || quoted.front() != '"' || quoted.back() != '"') return std::nullopt;
  quoted = quoted.substr(1, quoted.size() - 2);
  std::string text;
  for (std::size_t at = 0; at < quoted.size(); ++at) {
    if (quoted[at] == '"') return std::nullopt;
    if (quoted[at] != '\\') {
      text += quoted[at];
      continue;
    }
    if (++at == quoted.size()) return std::nullopt;
    if (quoted[at] == 'n') {
      text += '\n';
    } else if (quoted[at] == 't') {
      text += '\t';
    } else if (quoted[at] == '"' || quoted[at] == '\\') {
      text += quoted[at];
    } else if (quoted[at] == 'x' && at + 2 < quoted.size()) {
      const auto byte = parse_number<std::uint8_t>(fmt::format("0x{}", quoted.substr(at + 1, 2)));
      if (!byte) return std::nullopt;
      text += static_cast<char>(*byte);
      at += 2;
    } else {
      return std::nullopt;
    }
  }
  return text;
}

std::string format_end_point(const EndPoint& end_point) {
  std::string address = format_address(end_point.family, end_point.address);
  if (!end_point.port) return address;
  return fmt::format(fmt::runtime(end_point.family == Family::ipv6 ? "[{}]:{}" : "{}:{}"), address, *end_point.port);
}

std::optional<EndPoint> parse_end_point(std::string_view text) {
  EndPoint end_point;
  const bool whole_ipv6 = !text.starts_with('[') && text.find(':') != text.rfind(':');
  const std::size_t colon = text.ends_with(']') || whole_ipv6 ? std::string_view::npos : text.rfind(':');
  if (colon != std::string_view::npos) {
    end_point.port = parse_number<std::uint16_t>(text.substr(colon + 1));
    if (!end_point.port) return std::nullopt;
    text = text.substr(0, colon);
  }
  if (text == "-") return end_point;
  const bool brackets = text.starts_with('[') && text.ends_with(']');
  const auto address = parse_address(brackets ? text.substr(1, text.size() - 2) : text);
  if (!address || (brackets && address->first != Family::ipv6)) return std::nullopt;
  std::tie(end_point.family, end_point.address) = *address;
  return end_point;
}

}  // namespace shaper
