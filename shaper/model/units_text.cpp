// A quantity is split into its digits (as an integer and a power of ten), its prefix and the rest of its unit; then the
// value in base units is digits x multiplier / 10^decimals, which must leave no remainder.
#include "shaper/model/units_text.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

namespace shaper {
namespace {

using Failure = tl::unexpected<std::string>;

/// "1.5mbit": digits 15, decimals 1, unit "mbit", number "1.5".
struct Quantity {
  Uint128 digits = 0;
  unsigned decimals = 0;
  std::string_view number;
  std::string_view unit;
};

// 10^20 times the largest multiplier (a tebibyte in bits, 9e12) stays far below 2^128.
constexpr std::size_t kMostDigits = 20;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

tl::expected<Quantity, std::string> split(std::string_view text, std::string_view example) {
  // What does not even begin like a quantity is not repeated: it may be anything.
  const std::string what = !text.empty() && is_digit(text[0]) ? quoted(text) : "this value";
  const std::string malformed = what + " is not a number with a unit such as \"" + std::string(example) + "\"";
  if (text.size() > 1 && text[0] == '-' && is_digit(text[1])) return Failure(quoted(text) + " is negative");
  Quantity result;
  std::size_t count = 0;
  std::size_t position = 0;
  bool point = false;
  for (; position < text.size() && (is_digit(text[position]) || (text[position] == '.' && !point)); ++position) {
    if (text[position] == '.') {
      point = true;
      continue;
    }
    if (++count > kMostDigits) return Failure("this number has more than 20 digits");
    result.digits = result.digits * 10 + static_cast<unsigned>(text[position] - '0');
    if (point) ++result.decimals;
  }
  result.number = text.substr(0, position);
  if (count == 0 || text[0] == '.' || result.number.back() == '.') return Failure(malformed);
  while (position < text.size() && text[position] == ' ') ++position;
  result.unit = text.substr(position);
  return result;
}

/// The value in base units, or nothing if it is not whole.
std::optional<Uint128> whole(const Quantity& quantity, std::uint64_t multiplier) {
  Uint128 divisor = 1;
  for (unsigned i = 0; i < quantity.decimals; ++i) divisor *= 10;
  const Uint128 product = quantity.digits * multiplier;
  if (product % divisor != 0) return std::nullopt;
  return product / divisor;
}

struct UnitPrefix {
  std::string_view small;  ///< in small letters
  std::string_view bits;   ///< as written before "bit"
  std::string_view bytes;  ///< as written before "B"
  std::uint64_t multiplier;
};

// The binary ones first: "ki" must not be read as "k" and a rest of "i".
constexpr std::array kUnitPrefixes{
    UnitPrefix{"ki", "kibit", "KiB", 1ULL << 10},
    UnitPrefix{"mi", "mibit", "MiB", 1ULL << 20},
    UnitPrefix{"gi", "gibit", "GiB", 1ULL << 30},
    UnitPrefix{"ti", "tibit", "TiB", 1ULL << 40},
    UnitPrefix{"k", "kbit", "kB", 1'000},
    UnitPrefix{"m", "mbit", "MB", 1'000'000},
    UnitPrefix{"g", "gbit", "GB", 1'000'000'000},
    UnitPrefix{"t", "tbit", "TB", 1'000'000'000'000},
    UnitPrefix{"", "bit", "B", 1},
};

const UnitPrefix& prefix_of(std::string_view small_unit) {
  return *std::find_if(kUnitPrefixes.begin(), kUnitPrefixes.end(),
                       [&](const UnitPrefix& prefix) { return small_unit.starts_with(prefix.small); });
}

std::string reading(const Quantity& quantity, const std::string& unit, std::uint64_t multiplier,
                    std::string_view base) {
  std::string text = "\"" + std::string(quantity.number) + unit + "\"";
  const auto value = whole(quantity, multiplier);
  if (value && *value <= std::numeric_limits<std::uint64_t>::max()) {
    text += " (" + std::to_string(static_cast<std::uint64_t>(*value)) + " " + std::string(base) + ")";
  }
  return text;
}

std::string unknown_unit(std::string_view text, std::string_view units) {
  return quoted(text) + " has an unknown unit: the units are " + std::string(units);
}

/// Bits per second that one of this rate unit stands for; or the error.
tl::expected<std::uint64_t, std::string> rate_multiplier(std::string_view text, const Quantity& quantity) {
  const std::string small = lower(quantity.unit);
  const UnitPrefix& prefix = prefix_of(small);
  const std::string rest = small.substr(prefix.small.size());
  if (rest == "bit" || rest == "bit/s") return prefix.multiplier;
  if (quantity.unit == std::string(prefix.bytes) + "/s") return prefix.multiplier * 8;
  constexpr std::array<std::string_view, 5> kAmbiguous{"", "b", "bps", "b/s", "ps"};
  if (std::find(kAmbiguous.begin(), kAmbiguous.end(), rest) == kAmbiguous.end()) {
    return Failure(unknown_unit(text, "bit kbit mbit gbit tbit, or B/s kB/s MB/s GB/s"));
  }
  return Failure(quoted(text) + (quantity.unit.empty() ? " has no unit" : " is ambiguous") + ": write " +
                 reading(quantity, std::string(prefix.bits), prefix.multiplier, "bit/s") + " or " +
                 reading(quantity, std::string(prefix.bytes) + "/s", prefix.multiplier * 8, "bit/s"));
}

/// Bytes that one of this size unit stands for; or the error.
tl::expected<std::uint64_t, std::string> size_multiplier(std::string_view text, const Quantity& quantity) {
  const std::string small = lower(quantity.unit);
  const UnitPrefix& prefix = prefix_of(small);
  const std::string rest = small.substr(prefix.small.size());
  const bool known = prefix.small.find('t') == std::string_view::npos;
  if (known && quantity.unit == prefix.bytes) return prefix.multiplier;
  if (!known || (!rest.empty() && rest != "b")) return Failure(unknown_unit(text, "B kB KiB MB MiB GB GiB"));
  if (prefix.small.empty()) {
    return Failure(quoted(text) + (rest.empty() ? " has no unit" : " is ambiguous") + ": write " +
                   reading(quantity, "B", 1, "bytes") + " or " + reading(quantity, "kB", 1000, "bytes"));
  }
  const std::string_view letter = prefix.small.substr(0, 1);
  const UnitPrefix& thousands = prefix_of(letter);
  const UnitPrefix& binary = prefix_of(std::string(letter) + "i");
  return Failure(quoted(text) + " is ambiguous: write " +
                 reading(quantity, std::string(thousands.bytes), thousands.multiplier, "bytes") + " or " +
                 reading(quantity, std::string(binary.bytes), binary.multiplier, "bytes"));
}

struct TimeUnit {
  std::string_view name;
  std::uint64_t nanoseconds;
};

constexpr std::array kTimeUnits{TimeUnit{"us", 1'000}, TimeUnit{"ms", 1'000'000}, TimeUnit{"s", 1'000'000'000},
                                TimeUnit{"m", 60'000'000'000}, TimeUnit{"h", 3'600'000'000'000}};

constexpr Uint128 kMostBytes = Uint128{1} << 62;
constexpr Uint128 kMostNanoseconds = static_cast<Uint128>(100'000) * 3'600'000'000'000;

}  // namespace

std::string quoted(std::string_view text, std::string_view otherwise) {
  const auto plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
  if (text.size() > 40 || !std::all_of(text.begin(), text.end(), plain)) return std::string(otherwise);
  return "\"" + std::string(text) + "\"";
}

tl::expected<DataRate, std::string> parse_rate(std::string_view text) {
  const auto quantity = split(text, "20mbit");
  if (!quantity) return Failure(quantity.error());
  const auto multiplier = rate_multiplier(text, *quantity);
  if (!multiplier) return Failure(multiplier.error());
  if (quantity->digits == 0) return Failure(quoted(text) + " is zero");
  const auto bits = whole(*quantity, *multiplier);
  if (quantity->digits * *multiplier < kSlowestRate.bits_per_second || (bits && *bits < kSlowestRate.bits_per_second)) {
    return Failure(quoted(text) + " is below the slowest rate, " + format_rate(kSlowestRate));
  }
  if (!bits) return Failure(quoted(text) + " is not a whole number of bits per second");
  if (*bits > kFastestRate.bits_per_second) {
    return Failure(quoted(text) + " is above the fastest rate, " + format_rate(kFastestRate));
  }
  return DataRate{static_cast<std::uint64_t>(*bits)};
}

tl::expected<ByteCount, std::string> parse_size(std::string_view text) {
  const auto quantity = split(text, "64KiB");
  if (!quantity) return Failure(quantity.error());
  const auto multiplier = size_multiplier(text, *quantity);
  if (!multiplier) return Failure(multiplier.error());
  if (quantity->digits == 0) return Failure(quoted(text) + " is zero");
  const auto bytes = whole(*quantity, *multiplier);
  if (!bytes) return Failure(quoted(text) + " is not a whole number of bytes");
  if (*bytes > kMostBytes) return Failure(quoted(text) + " is too large");
  return ByteCount{static_cast<std::uint64_t>(*bytes)};
}

tl::expected<Nanos, std::string> parse_time(std::string_view text) {
  const auto quantity = split(text, "250ms");
  if (!quantity) return Failure(quantity.error());
  if (quantity->unit.empty()) {
    const std::string number(quantity->number);
    return Failure(quoted(text) + " has no unit: write \"" + number + "ms\" or \"" + number + "s\"");
  }
  const auto unit = std::find_if(kTimeUnits.begin(), kTimeUnits.end(),
                                 [&](const TimeUnit& candidate) { return candidate.name == quantity->unit; });
  if (unit == kTimeUnits.end()) return Failure(unknown_unit(text, "us ms s m h"));
  if (quantity->digits == 0) return Failure(quoted(text) + " is zero");
  const auto nanoseconds = whole(*quantity, unit->nanoseconds);
  if (!nanoseconds) return Failure(quoted(text) + " is not a whole number of nanoseconds");
  if (*nanoseconds > kMostNanoseconds) return Failure(quoted(text) + " is too large");
  return Nanos{static_cast<std::int64_t>(*nanoseconds)};
}

}  // namespace shaper
