#include "shaper/model/policy_text_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "shaper/model/report.h"
#include "shaper/model/units_text.h"

namespace shaper {

void Lines::add(std::string_view label, const std::string& value) {
  constexpr std::size_t kLabelWidth = 16;
  text_ += "  " + std::string(label);
  text_.append(kLabelWidth - std::min(kLabelWidth, label.size()), ' ');
  text_ += value + "\n";
}

std::string describe_derived(Nanos time) {
  using std::chrono::ceil;
  if (time < std::chrono::milliseconds{10}) return format_time(ceil<std::chrono::microseconds>(time));
  return format_time(ceil<std::chrono::milliseconds>(time));
}

std::string describe_burst(const Burst& burst, DataRate rate) {
  const ByteCount bytes = burst_bytes(burst, rate);
  const bool by_time = std::holds_alternative<Nanos>(burst);
  const std::string size = format_size(bytes);
  const std::string time = by_time ? format_time(std::get<Nanos>(burst)) : describe_derived(time_for(rate, bytes));
  return (by_time ? time + " = " + size : size + " = " + time) + ", on top of one full frame";
}

std::string describe_key(const KeyPolicy& key) {
  std::string word(each_name(key.by));
  if (key.bits_ipv4 == 32 && key.bits_ipv6 == 128) return word;
  return fmt::format("{}/{},{}", word, key.bits_ipv4, key.bits_ipv6);
}

}  // namespace shaper
