// Quantities into text: exact decimals, made from integers alone.
#include <array>
#include <utility>

#include "shaper/model/units_text.h"

namespace shaper {
namespace {

/// `value` / 10^decimals without trailing zeros.
std::string decimal(Uint128 value, unsigned decimals) {
  std::string digits;
  do {
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(value % 10)));
    value /= 10;
  } while (value != 0 || digits.size() <= decimals);
  if (decimals == 0) return digits;
  digits.insert(digits.size() - decimals, ".");
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return digits;
}

/// `value` / 10^decimals with the largest of "", k, M, G, T that leaves at least one before the point.
std::string with_prefix(Uint128 value, unsigned decimals, std::string_view unit) {
  constexpr std::array<std::string_view, 5> kPrefixes{"", "k", "M", "G", "T"};
  Uint128 one = 1;
  for (unsigned i = 0; i < decimals; ++i) one *= 10;
  std::size_t prefix = 0;
  for (; prefix + 1 < kPrefixes.size() && value >= one * 1000; ++prefix) {
    one *= 1000;
    decimals += 3;
  }
  return decimal(value, decimals) + " " + std::string(kPrefixes[prefix]) + std::string(unit);
}

}  // namespace

std::string format_rate(DataRate rate) {
  return with_prefix(rate.bits_per_second, 0, "bit/s");
}

std::string format_rate_both(DataRate rate) {
  // An eighth is 125 thousandths.
  return format_rate(rate) + " = " + with_prefix(static_cast<Uint128>(rate.bits_per_second) * 125, 3, "B/s");
}

std::string format_size(ByteCount size) {
  struct Unit {
    std::string_view name;
    std::uint64_t one;
  };
  constexpr std::array kUnits{Unit{" kB", 1'000},       Unit{" KiB", 1ULL << 10},   Unit{" MB", 1'000'000},
                              Unit{" MiB", 1ULL << 20}, Unit{" GB", 1'000'000'000}, Unit{" GiB", 1ULL << 30}};
  std::string shortest = std::to_string(size.value) + " B";
  for (const Unit& unit : kUnits) {
    if (size.value < unit.one || size.value % unit.one != 0) continue;
    std::string text = std::to_string(size.value / unit.one) + std::string(unit.name);
    if (text.size() <= shortest.size()) shortest = std::move(text);
  }
  return shortest;
}

std::string format_time(Nanos time) {
  const bool negative = time.count() < 0;
  // Negated as unsigned: the smallest 64-bit value has no positive twin.
  const std::uint64_t bits = static_cast<std::uint64_t>(time.count());
  const std::uint64_t nanoseconds = negative ? 0 - bits : bits;
  const std::string sign = negative ? "-" : "";
  if (nanoseconds == 0) return "0 s";
  for (const auto& [unit, one] : {std::pair{" h", 3'600'000'000'000ULL}, std::pair{" m", 60'000'000'000ULL}}) {
    if (nanoseconds % one == 0) return sign + std::to_string(nanoseconds / one) + unit;
  }
  if (nanoseconds >= 1'000'000'000) return sign + decimal(nanoseconds, 9) + " s";
  if (nanoseconds >= 1'000'000) return sign + decimal(nanoseconds, 6) + " ms";
  return sign + decimal(nanoseconds, 3) + " us";
}

}  // namespace shaper
