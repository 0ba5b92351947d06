// The registry: https://www.iana.org/assignments/dscp-registry (RFC 2474, 2597, 3246, 5865, 8622).
#include "shaper/model/dscp_text.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace shaper {
namespace {

struct NamedDscp {
  std::string_view name;
  std::uint8_t value;
};

// The first name of a number is the one that is written.
constexpr std::array kDscps{
    NamedDscp{"BE", 0},    NamedDscp{"LE", 1},    NamedDscp{"CS0", 0},   NamedDscp{"CS1", 8},   NamedDscp{"CS2", 16},
    NamedDscp{"CS3", 24},  NamedDscp{"CS4", 32},  NamedDscp{"CS5", 40},  NamedDscp{"CS6", 48},  NamedDscp{"CS7", 56},
    NamedDscp{"AF11", 10}, NamedDscp{"AF12", 12}, NamedDscp{"AF13", 14}, NamedDscp{"AF21", 18}, NamedDscp{"AF22", 20},
    NamedDscp{"AF23", 22}, NamedDscp{"AF31", 26}, NamedDscp{"AF32", 28}, NamedDscp{"AF33", 30}, NamedDscp{"AF41", 34},
    NamedDscp{"AF42", 36}, NamedDscp{"AF43", 38}, NamedDscp{"EF", 46},   NamedDscp{"VA", 44},
};

bool same_letters(char a, char b) {
  const auto upper = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; };
  return upper(a) == upper(b);
}

}  // namespace

std::optional<std::uint8_t> parse_dscp(std::string_view text) {
  for (const NamedDscp& known : kDscps) {
    if (std::equal(text.begin(), text.end(), known.name.begin(), known.name.end(), same_letters)) return known.value;
  }
  std::uint8_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number > 63) return std::nullopt;
  return number;
}

std::string dscp_name(std::uint8_t dscp) {
  for (const NamedDscp& known : kDscps) {
    if (known.value == dscp) return std::string(known.name);
  }
  return std::to_string(dscp);
}

std::vector<std::string_view> dscp_names() {
  std::vector<std::string_view> names;
  for (const NamedDscp& known : kDscps) names.push_back(known.name);
  return names;
}

}  // namespace shaper
