#include "shaper/model/flow_selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "shaper/model/address_text.h"

namespace shaper {
namespace {

/// In the order of the enumeration.
constexpr std::array<std::string_view, 7> kSortNames{"rate", "bytes", "packets", "backlog", "delay", "drops", "age"};

std::uint64_t sort_key(const FlowReport& flow, FlowSort by) {
  switch (by) {
    case FlowSort::rate:
      return flow.rate.bits_per_second;
    case FlowSort::bytes:
      return flow.wire_bytes.value;
    case FlowSort::packets:
      return flow.packets;
    case FlowSort::backlog:
      return flow.backlog_bytes.value;
    case FlowSort::delay:
      return static_cast<std::uint64_t>(std::max(flow.delay.p99, Nanos{0}).count());
    case FlowSort::drops:
      return flow.dropped_packets;
    case FlowSort::age:
      break;
  }
  return 0;
}

bool is_in(const Prefix& prefix, const std::string& address) {
  const auto parsed = parse_address(address);
  if (!parsed) return false;
  const std::uint8_t all_bits = parsed->first == Family::ipv4 ? 32 : 128;
  return contains(prefix, Prefix{parsed->first, parsed->second, all_bits});
}

bool is_one_of(const std::vector<std::string>& words, const std::string& word) {
  return words.empty() || std::find(words.begin(), words.end(), word) != words.end();
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool has_text(const std::string& words, const std::string& text) {
  const auto same = [](char a, char b) { return lower(a) == lower(b); };
  return std::search(words.begin(), words.end(), text.begin(), text.end(), same) != words.end();
}

std::string words_of(const FlowReport& flow) {
  const auto port = [](const std::optional<std::uint16_t>& number) {
    return number ? ":" + std::to_string(*number) : std::string();
  };
  return fmt::format("{} {}{} > {}{} {} {} {} {} {}", flow.protocol, flow.source, port(flow.source_port),
                     flow.destination, port(flow.destination_port), flow.class_name, flow.link, flow.user.value_or(""),
                     flow.owner.value_or(""), activity_name(flow.activity));
}

/// What tells flows apart, but for marks: of those that differ by nothing else, the how many-th.
using FlowName = std::tuple<std::string, std::string, std::string, std::string, std::optional<std::uint16_t>,
                            std::string, std::optional<std::uint16_t>, std::uint64_t>;

/// Names flows in the order in which it is given them.
class FlowNames {
 public:
  FlowName operator()(const FlowReport& flow) {
    FlowName name{flow.link,        flow.class_name,  flow.protocol,         flow.source,
                  flow.source_port, flow.destination, flow.destination_port, 0};
    const std::uint64_t twins = seen_[name]++;
    std::get<std::uint64_t>(name) = twins;
    return name;
  }

 private:
  std::map<FlowName, std::uint64_t> seen_;
};

}  // namespace

std::optional<FlowSort> parse_flow_sort(std::string_view word) {
  const auto found = std::find(kSortNames.begin(), kSortNames.end(), word);
  if (found == kSortNames.end()) return std::nullopt;
  return static_cast<FlowSort>(found - kSortNames.begin());
}

std::string_view flow_sort_name(FlowSort sort) {
  return kSortNames.at(static_cast<std::size_t>(sort));
}

std::string flow_sorts() {
  return fmt::format("{} or {}", fmt::join(kSortNames.begin(), kSortNames.end() - 1, ", "), kSortNames.back());
}

void sort_flows(std::vector<FlowReport>& flows, FlowSort by, bool reverse) {
  const auto larger = [by](const FlowReport& a, const FlowReport& b) {
    if (by == FlowSort::age && a.first_seen != b.first_seen) return a.first_seen < b.first_seen;
    return std::pair(sort_key(a, by), a.wire_bytes) > std::pair(sort_key(b, by), b.wire_bytes);
  };
  std::stable_sort(flows.begin(), flows.end(),
                   [&](const FlowReport& a, const FlowReport& b) { return reverse ? larger(b, a) : larger(a, b); });
}

bool FlowFilter::matches(const FlowReport& flow) const {
  if (of_class && flow.class_name != *of_class) return false;
  if (address && !is_in(*address, flow.source) && !is_in(*address, flow.destination)) return false;
  if (port && flow.source_port != port && flow.destination_port != port) return false;
  if (!is_one_of(protocols, flow.protocol)) return false;
  if (!users.empty() && !(flow.user && is_one_of(users, *flow.user))) return false;
  return !text || has_text(words_of(flow), *text);
}

void set_mean_rates(const FlowsReport& before, FlowsReport& after, const std::string& since, Nanos elapsed) {
  if (elapsed <= Nanos{0}) return;
  std::map<FlowName, std::uint64_t> sent_before;
  FlowNames names_before;
  for (const FlowReport& flow : before.flows) sent_before[names_before(flow)] = flow.wire_bytes.value;
  FlowNames names;
  for (FlowReport& flow : after.flows) {
    const auto found = sent_before.find(names(flow));
    std::uint64_t first = 0;
    if (flow.first_seen < since) {
      if (found == sent_before.end() || found->second > flow.wire_bytes.value) continue;
      first = found->second;
    }
    const Uint128 bits = Uint128{8} * (flow.wire_bytes.value - first) * std::nano::den;
    flow.rate.bits_per_second = static_cast<std::uint64_t>(bits / static_cast<std::uint64_t>(elapsed.count()));
  }
}

}  // namespace shaper
