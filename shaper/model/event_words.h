// The words that several lines of an event log have in common, read off a line.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "shaper/core/packet.h"
#include "shaper/model/address_text.h"
#include "shaper/model/event_log.h"
#include "shaper/model/line_reader.h"

namespace shaper {

inline PacketId packet_id(LineReader& line) {
  const auto [queue, number] =
      line.numbers_in<std::uint16_t, std::uint32_t>(line.word(), ':', "a packet's queue and number, `7:15`");
  return {queue, number};
}

inline std::uint8_t protocol(LineReader& line) {
  const std::string_view word = line.word();
  if (word == "icmpv6") return kIcmpv6;
  const std::vector<std::uint8_t> numbers = parse_protocol(word);
  if (numbers.empty()) line.fail("a protocol");
  return numbers.empty() ? std::uint8_t{0} : numbers.front();
}

/// `PROTOCOL SOURCE > DESTINATION`, into a packet's headers or a flow's key.
inline void read_flow(LineReader& line, auto& flow) {
  flow.protocol = protocol(line);
  const EndPoint source = line.end_point("the source, address:port");
  line.expect(">");
  const EndPoint destination = line.end_point("the destination, address:port");
  if (source.family != destination.family) line.fail("two addresses of one family");
  flow.family = source.family;
  flow.source = source.address;
  flow.source_port = source.port.value_or(0);
  flow.destination = destination.address;
  flow.destination_port = destination.port.value_or(0);
}

/// `key=value`, or a word alone with an empty value.
inline std::pair<std::string_view, std::string_view> key_and_value(std::string_view option) {
  const std::size_t equals = std::min(option.find('='), option.size());
  return {option.substr(0, equals), option.substr(std::min(equals + 1, option.size()))};
}

/// `index:name`: the number counts, the name is for the eyes.
template <std::integral Index>
Index index_of(LineReader& line, std::string_view key) {
  const std::string_view value = line.value(key);
  return line.number_in<Index>(value.substr(0, value.find(':')), fmt::format("`{}=index:name`", key));
}

// event_parse_grants.cpp
[[nodiscard]] event::Granting granting(LineReader& line);
[[nodiscard]] event::Granted granted(LineReader& line);
[[nodiscard]] event::TakenBack taken_back(LineReader& line);
[[nodiscard]] event::Refused refused(LineReader& line);

}  // namespace shaper
