// The C library's inet_pton() and inet_ntop() do the reading and writing of addresses: strict (no octal, no short
// forms) and known to everybody.
#include "shaper/model/address_text.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace shaper {
namespace {

struct NamedProtocol {
  std::uint8_t number;
  std::string_view name;
};

// IANA protocol numbers; the names are those of /etc/protocols in small letters.
constexpr std::array kProtocols{
    NamedProtocol{kIcmp, "icmp"},       NamedProtocol{2, "igmp"},
    NamedProtocol{kTcp, "tcp"},         NamedProtocol{kUdp, "udp"},
    NamedProtocol{kDccp, "dccp"},       NamedProtocol{47, "gre"},
    NamedProtocol{50, "esp"},           NamedProtocol{51, "ah"},
    NamedProtocol{89, "ospf"},          NamedProtocol{kSctp, "sctp"},
    NamedProtocol{kUdpLite, "udplite"},
};

std::optional<std::uint8_t> parse_byte(std::string_view text) {
  std::uint8_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::uint8_t all_bits(Family family) {
  return family == Family::ipv4 ? 32 : 128;
}

}  // namespace

std::string format_address(Family family, const Address& address) {
  if (family == Family::other) return "-";
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(family == Family::ipv4 ? AF_INET : AF_INET6, address.data(), text.data(), text.size());
  return text.data();
}

std::optional<std::pair<Family, Address>> parse_address(std::string_view text) {
  // A NUL inside the text would end it early for inet_pton().
  if (text.size() >= INET6_ADDRSTRLEN || text.find('\0') != std::string_view::npos) return std::nullopt;
  const std::string terminated(text);
  Address address{};
  if (inet_pton(AF_INET, terminated.c_str(), address.data()) == 1) return std::pair{Family::ipv4, address};
  if (inet_pton(AF_INET6, terminated.c_str(), address.data()) == 1) return std::pair{Family::ipv6, address};
  return std::nullopt;
}

std::string format_prefix(const Prefix& prefix) {
  std::string text = format_address(prefix.family, prefix.address);
  if (prefix.bits != all_bits(prefix.family)) text += "/" + std::to_string(prefix.bits);
  return text;
}

std::optional<Prefix> parse_prefix(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto address = parse_address(text.substr(0, slash));
  if (!address) return std::nullopt;
  const auto& [family, bytes] = *address;
  if (slash == std::string_view::npos) return Prefix{family, bytes, all_bits(family)};
  const auto bits = parse_byte(text.substr(slash + 1));
  if (!bits || *bits > all_bits(family)) return std::nullopt;
  return Prefix{family, bytes, *bits};
}

Prefix masked(const Prefix& prefix) {
  return {prefix.family, masked(prefix.address, prefix.bits), prefix.bits};
}

bool contains(const Prefix& outer, const Prefix& inner) {
  if (outer.family != inner.family || outer.bits > inner.bits) return false;
  return masked({inner.family, inner.address, outer.bits}).address == masked(outer).address;
}

std::string protocol_name(std::uint8_t protocol) {
  if (protocol == kIcmpv6) return "icmp";
  for (const NamedProtocol& known : kProtocols) {
    if (known.number == protocol) return std::string(known.name);
  }
  return std::to_string(protocol);
}

std::vector<std::uint8_t> parse_protocol(std::string_view text) {
  if (text == "icmp") return {kIcmp, kIcmpv6};
  for (const NamedProtocol& known : kProtocols) {
    if (known.name == text) return {known.number};
  }
  if (const auto number = parse_byte(text)) return {*number};
  return {};
}

std::vector<std::string_view> protocol_names() {
  std::vector<std::string_view> names;
  for (const NamedProtocol& known : kProtocols) names.push_back(known.name);
  return names;
}

}  // namespace shaper
