#include "cli/top/flow_words.h"

#include <fmt/format.h>

#include <tuple>

#include "shaper/model/address_text.h"
#include "shaper/model/flow_columns.h"
#include "shaper/model/plain_text.h"

namespace shaper::top {
bool same_flow(const FlowReport& a, const FlowReport& b) {
  const auto name = [](const FlowReport& flow) {
    return std::tie(flow.link, flow.protocol, flow.source, flow.source_port, flow.destination, flow.destination_port);
  };
  return name(a) == name(b);
}

std::optional<PacketQuestion> question_of(const FlowReport& flow, const NameLookup& names) {
  const auto source = parse_address(flow.source);
  const auto destination = parse_address(flow.destination);
  const auto protocol = parse_protocol(flow.protocol);
  if (!source || !destination || protocol.empty()) return std::nullopt;
  PacketQuestion question;
  question.links.push_back(flow.link);
  Headers& headers = question.packet.headers;
  std::tie(headers.family, headers.source) = *source;
  headers.destination = destination->second;
  headers.source_port = flow.source_port.value_or(0);
  headers.destination_port = flow.destination_port.value_or(0);
  headers.protocol = protocol.front();
  if (headers.protocol == kIcmp && headers.family == Family::ipv6) headers.protocol = kIcmpv6;
  if (flow.user) {
    question.packet.user = names.user ? names.user(*flow.user) : std::nullopt;
    if (!question.packet.user) question.packet.user = parse_number<std::uint32_t>(*flow.user);
  }
  return question;
}

std::optional<std::string> selector_of(const FlowReport& flow, Direction direction) {
  if (!parse_address(flow.source) || !parse_address(flow.destination)) return std::nullopt;
  std::string text = fmt::format("protocol={}", flow.protocol);
  const auto add = [&text](const char* side, const std::string& address, const std::optional<std::uint16_t>& port) {
    text += fmt::format(",{}={}", side, address);
    if (port) text += fmt::format(",{}_port={}", side, *port);
  };
  const bool out = direction == Direction::egress;
  add("local", out ? flow.source : flow.destination, out ? flow.source_port : flow.destination_port);
  add("remote", out ? flow.destination : flow.source, out ? flow.destination_port : flow.source_port);
  return text;
}

std::string flow_name(const FlowReport& flow) {
  return fmt::format("{} {} > {}", terminal_text(flow.protocol), end_point_text(flow.source, flow.source_port),
                     end_point_text(flow.destination, flow.destination_port));
}

}  // namespace shaper::top
