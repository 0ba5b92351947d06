// Keys are joined by commas (all must hold), values by "or" (one must).
#include "shaper/model/match_text.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "shaper/model/address_text.h"
#include "shaper/model/dscp_text.h"
#include "shaper/model/plain_text.h"

namespace shaper {
namespace {

std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty()) text += separator;
    text += part;
  }
  return text;
}

/// The keys that are asked, each with its values.
class Keys {
 public:
  template <typename Value, typename Format>
  void add(std::string_view key, const std::vector<Value>& values, Format format) {
    std::vector<std::string> texts;
    for (const Value& value : values) texts.push_back(format(value));
    add_texts(key, texts);
  }
  void add_texts(std::string_view key, const std::vector<std::string>& texts) {
    if (!texts.empty()) keys_.push_back(std::string(key) + " " + joined(texts, " or "));
  }
  [[nodiscard]] std::string text() const { return keys_.empty() ? "everything" : joined(keys_, ", "); }

 private:
  std::vector<std::string> keys_;
};

template <typename Number>
std::string format_range(const Range<Number>& range) {
  const std::string first = std::to_string(range.first);
  return range.first == range.last ? first : first + "-" + std::to_string(range.last);
}

std::string format_mark(const MarkMatch& mark) {
  const auto hexadecimal = [](std::uint32_t value) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    for (; value != 0 || text.empty(); value >>= 4) text.insert(text.begin(), kDigits[value & 0xf]);
    return "0x" + text;
  };
  if (mark.mask == MarkMatch{}.mask) return hexadecimal(mark.value);
  return hexadecimal(mark.value) + "/" + hexadecimal(mark.mask);
}

/// "icmp" in a policy is both protocols, and is written once; one of them alone is a number.
std::vector<std::string> protocols(const std::vector<std::uint8_t>& numbers) {
  const auto has = [&](std::uint8_t number) {
    return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
  };
  const bool both = has(kIcmp) && has(kIcmpv6);
  std::vector<std::string> names;
  for (const std::uint8_t number : numbers) {
    if (number == kIcmp || number == kIcmpv6) {
      if (!both) names.push_back(std::to_string(number));
      if (both && number == kIcmp) names.emplace_back("icmp");
    } else {
      names.push_back(protocol_name(number));
    }
  }
  return names;
}

std::vector<std::string> owners(const OwnerMatch& owner) {
  std::vector<std::string> texts;
  for (const auto& range : owner.ids) texts.push_back(format_range(range));
  if (owner.unknown) texts.emplace_back("unknown");
  return texts;
}

/// In quotation marks unless it is a plain word.
std::string name_text(const std::string& name) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./_-@:";
  if (name.find_first_not_of(kPlain) == std::string::npos) return name;
  return quote_line(name);
}

}  // namespace

std::string describe_match(const Match& match) {
  Keys keys;
  keys.add_texts("protocol", protocols(match.protocol));
  keys.add("source", match.source, format_prefix);
  keys.add("source_port", match.source_port, format_range<std::uint16_t>);
  keys.add("destination", match.destination, format_prefix);
  keys.add("destination_port", match.destination_port, format_range<std::uint16_t>);
  keys.add("local", match.local, format_prefix);
  keys.add("local_port", match.local_port, format_range<std::uint16_t>);
  keys.add("remote", match.remote, format_prefix);
  keys.add("remote_port", match.remote_port, format_range<std::uint16_t>);
  keys.add("dscp", match.dscp, dscp_name);
  keys.add("mark", match.mark, format_mark);
  keys.add_texts("user", owners(match.user));
  keys.add_texts("group", owners(match.group));
  keys.add("cgroup", match.cgroup, name_text);
  keys.add("unit", match.unit, name_text);
  keys.add("process", match.process, name_text);
  keys.add("pid", match.pid, [](std::uint32_t pid) { return std::to_string(pid); });
  keys.add("container", match.container, name_text);
  for (const Match& excluded : match.none_of) keys.add_texts("not", {"(" + describe_match(excluded) + ")"});
  return keys.text();
}

}  // namespace shaper
