// Addresses, prefixes and protocols as people write them, in both directions.
//
// Pure text: no name is looked up. IPv6 is written as RFC 5952 asks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shaper/core/packet.h"
#include "shaper/core/policy.h"

namespace shaper {

/// "10.0.0.1", "2001:db8::1"; "-" for a packet that is neither IPv4 nor IPv6.
[[nodiscard]] std::string format_address(Family family, const Address& address);

/// An address without a prefix length, or nothing.
[[nodiscard]] std::optional<std::pair<Family, Address>> parse_address(std::string_view text);

/// "10.0.0.0/8"; a whole address without its length: "10.0.0.1".
[[nodiscard]] std::string format_prefix(const Prefix& prefix);

/// "10.0.0.0/8", or an address alone (all of its bits count). Nothing if that cannot be read; bits of the address
/// beyond the length are kept as they are written: see masked().
[[nodiscard]] std::optional<Prefix> parse_prefix(std::string_view text);

/// `prefix` with the bits beyond its length cleared.
[[nodiscard]] Prefix masked(const Prefix& prefix);

/// True if every address of `inner` is in `outer`.
[[nodiscard]] bool contains(const Prefix& outer, const Prefix& inner);

/// "tcp", "udp", "icmp" (ICMP and ICMPv6 alike), ... or the number.
[[nodiscard]] std::string protocol_name(std::uint8_t protocol);

/// The protocol numbers that a name or a number stands for: two for "icmp", none if the text is not known.
[[nodiscard]] std::vector<std::uint8_t> parse_protocol(std::string_view text);

/// The names that parse_protocol() knows.
[[nodiscard]] std::vector<std::string_view> protocol_names();

}  // namespace shaper
