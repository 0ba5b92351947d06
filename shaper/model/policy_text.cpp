// Lines of a label and a value, indented below the link or class that they belong to.
#include "shaper/model/policy_text.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "shaper/model/match_text.h"
#include "shaper/model/units_text.h"

namespace shaper {
namespace {

constexpr std::size_t kLabelWidth = 16;

class Lines {
 public:
  void heading(const std::string& text) { text_ += text + "\n"; }
  void add(std::string_view label, const std::string& value) {
    text_ += "  " + std::string(label);
    text_.append(kLabelWidth - std::min(kLabelWidth, label.size()), ' ');
    text_ += value + "\n";
  }
  void blank() { text_ += "\n"; }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string count_of(std::size_t number, const std::string& one, const std::string& many) {
  return std::to_string(number) + " " + (number == 1 ? one : many);
}

/// A derived time: exact to the microsecond below 10 ms, else to the millisecond, rounded up.
std::string rounded(Nanos time) {
  using std::chrono::ceil;
  if (time < std::chrono::milliseconds{10}) return format_time(ceil<std::chrono::microseconds>(time));
  return format_time(ceil<std::chrono::milliseconds>(time));
}

std::string describe_burst(const Burst& burst, DataRate rate) {
  const ByteCount bytes = burst_bytes(burst, rate);
  const bool by_time = std::holds_alternative<Nanos>(burst);
  const std::string size = format_size(bytes);
  const std::string time = by_time ? format_time(std::get<Nanos>(burst)) : rounded(time_for(rate, bytes));
  return (by_time ? time + " = " + size : size + " = " + time) + ", on top of one full frame";
}

std::string each_key(const Each& each) {
  const auto bits = [&](const std::string& word) {
    if (each.bits_ipv4 == 32 && each.bits_ipv6 == 128) return word;
    return word + "/" + std::to_string(each.bits_ipv4) + "," + std::to_string(each.bits_ipv6);
  };
  switch (each.by) {
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
  }
  return "";
}

void describe_link(const LinkPolicy& link, Lines& lines) {
  lines.heading("link " + link.name);
  lines.add("interface", link.interface);
  lines.add("direction", link.direction == Direction::egress ? "egress" : "ingress");
  lines.add("rate", "no total");
  lines.add("overhead", std::to_string(link.overhead) + " B added to each frame's IP length, at least " +
                            std::to_string(link.smallest_frame) + " B charged");
  lines.add("without daemon",
            link.without_daemon == WithoutDaemon::pass ? "pass (traffic flows unshaped)" : "block (nothing passes)");
  lines.add("guard", "off");
}

std::string describe_over(const ClassPolicy& policy) {
  switch (policy.over) {
    case Over::delay:
      return "delay";
    case Over::drop:
      return "drop (policer)";
    case Over::count:
      return "count (measured, never held)";
  }
  return "";
}

void describe_matches(const ClassPolicy& policy, Lines& lines) {
  if (policy.is_default) return lines.add("match", "what no other class takes");
  if (policy.match.empty()) return lines.add("match", "everything");
  std::string_view label = "match";
  for (const Match& match : policy.match) {
    lines.add(label, describe_match(match));
    label = "   or";
  }
}

void describe_rates(const ClassPolicy& policy, Lines& lines) {
  lines.add("rate", policy.rate ? format_rate_both(*policy.rate) + " total, guaranteed" : "no guarantee");
  const auto limit = policy.limit();
  lines.add("ceil", limit ? format_rate_both(*limit) + " total, at most" : "no limit");
  if (limit) lines.add("burst", describe_burst(policy.burst, *limit));
  if (!policy.each) return;
  const Each& each = *policy.each;
  lines.add("each", format_rate_both(each.rate) + " each " + each_key(each) + ", at most");
  lines.add("each burst", describe_burst(each.burst, each.rate));
}

void describe_waiting(const ClassPolicy& policy, ByteCount full_frame, Lines& lines) {
  const auto rate = policy.smallest_rate();
  if (policy.over == Over::delay && rate) {
    const Nanos max_delay = policy.max_delay.value_or(default_max_delay(*rate, full_frame));
    lines.add("max delay", policy.max_delay ? format_time(max_delay) : rounded(max_delay) + " (default)");
    lines.add("backlog",
              policy.backlog ? format_size(*policy.backlog) : format_size(bytes_in(*rate, max_delay)) + " (default)");
  }
  lines.add("fair", "flow");
  lines.add("aqm", "off");
  lines.add("ecn", "off");
}

}  // namespace

std::string describe_policy(const Policy& policy) {
  Lines lines;
  lines.heading(count_of(policy.links.size(), "link", "links") + ", " +
                count_of(policy.classes.size(), "class", "classes") + ", at most " +
                count_of(policy.max_flows, "flow", "flows"));
  for (const LinkPolicy& link : policy.links) {
    lines.blank();
    describe_link(link, lines);
  }
  for (const ClassPolicy& each : policy.classes) {
    const LinkPolicy& link = policy.links.at(each.link);
    lines.blank();
    lines.heading("class " + each.name + " on link " + link.name);
    describe_matches(each, lines);
    describe_rates(each, lines);
    lines.add("over", describe_over(each));
    describe_waiting(each, Framing{.overhead = link.overhead, .smallest_frame = link.smallest_frame}.full_frame(),
                     lines);
  }
  return lines.take();
}

}  // namespace shaper
