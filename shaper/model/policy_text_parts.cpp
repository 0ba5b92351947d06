#include "shaper/model/policy_text_parts.h"

#include <algorithm>

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
  const auto bits = [&](const std::string& word) {
    if (key.bits_ipv4 == 32 && key.bits_ipv6 == 128) return word;
    return word + "/" + std::to_string(key.bits_ipv4) + "," + std::to_string(key.bits_ipv6);
  };
  switch (key.by) {
    case EachBy::flow:
      return "flow";
    case EachBy::source:
      return bits("source");
    case EachBy::destination:
      return bits("destination");
    case EachBy::local:
      return bits("local");
    case EachBy::remote:
      return bits("remote");
    case EachBy::user:
      return "user";
    case EachBy::cgroup:
      return "cgroup";
    case EachBy::process:
      return "process";
    case EachBy::container:
      return "container";
    case EachBy::all:
      break;
  }
  return "";
}

}  // namespace shaper
