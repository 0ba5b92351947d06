// Packets and policies for experiments on the core, made by hand.
//
// A flow is a number here: flow n belongs to host n / 64 (10.0.0.0 and up) and to its source port 1000 + n % 64, so
// that tests can name flows of one host (0 and 1), of one /24 (0 and 64) and of different /24 (0 and 16384). Classes
// are told apart by the packet's mark: class_marked("bulk", 7) takes packets with mark 7. They have no CoDel: most
// experiments keep a queue standing on purpose.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "shaper/core/shaper.h"
#include "tests/sim_random.h"

namespace shaper::sim {

inline constexpr DataRate operator""_kbit(unsigned long long n) {
  return {n * 1'000};
}
inline constexpr DataRate operator""_mbit(unsigned long long n) {
  return {n * 1'000'000};
}
inline constexpr DataRate operator""_gbit(unsigned long long n) {
  return {n * 1'000'000'000};
}

inline constexpr std::uint32_t kFlowsPerHost = 64;
inline constexpr std::uint32_t flow_of(std::uint32_t host, std::uint32_t port) {
  return host * kFlowsPerHost + port;
}
inline constexpr std::uint32_t kIpv6Flow = 1U << 31;  ///< added to a flow's number

inline Address ipv4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
  return {a, b, c, d};
}

/// The address of a host: 10.0.0.0 + host, or 2001:db8:: with the host in bits 40 to 64.
inline Address host_address(std::uint32_t host, Family family) {
  const auto byte = [host](unsigned shift) { return static_cast<std::uint8_t>(host >> shift); };
  if (family == Family::ipv4) return ipv4(10, byte(16), byte(8), byte(0));
  return {0x20, 0x01, 0x0d, 0xb8, 0, byte(16), byte(8), byte(0), 0, 0, 0, 0, 0, 0, 0, 1};
}

inline Headers headers_of(std::uint32_t flow, std::uint8_t protocol = kUdp) {
  Headers headers;
  headers.family = (flow & kIpv6Flow) != 0 ? Family::ipv6 : Family::ipv4;
  const std::uint32_t number = flow & ~kIpv6Flow;
  headers.source = host_address(number / kFlowsPerHost, headers.family);
  headers.destination = host_address(0xffffff, headers.family);
  headers.source_port = static_cast<std::uint16_t>(1000 + number % kFlowsPerHost);
  headers.destination_port = 443;
  headers.protocol = protocol;
  headers.network_bytes = headers.family == Family::ipv4 ? 20 : 40;
  headers.transport_bytes = protocol == kTcp ? 32 : 8;
  return headers;
}

/// The number of the flow that headers_of() gave these headers.
inline std::uint32_t flow_number(const Headers& headers) {
  const bool ipv6 = headers.family == Family::ipv6;
  const std::size_t at = ipv6 ? 5 : 1;
  const std::uint32_t host = std::uint32_t{headers.source[at]} << 16 | std::uint32_t{headers.source[at + 1]} << 8 |
                             std::uint32_t{headers.source[at + 2]};
  return (host * kFlowsPerHost + headers.source_port - 1000U) | (ipv6 ? kIpv6Flow : 0);
}

/// A packet of a flow; its id is set when it arrives.
inline Packet packet_of(std::uint32_t flow, std::uint32_t ip_bytes = 1500, std::uint32_t mark = 0) {
  Packet packet;
  packet.headers = headers_of(flow);
  packet.ip_bytes = ip_bytes;
  packet.mark = mark;
  return packet;
}

inline Packet tcp_packet_of(std::uint32_t flow, std::uint32_t ip_bytes = 1500, std::uint32_t mark = 0) {
  Packet packet = packet_of(flow, ip_bytes, mark);
  packet.headers = headers_of(flow, kTcp);
  return packet;
}

/// A TCP super-packet of a flow.
inline Packet super_packet_of(std::uint32_t flow, std::uint32_t ip_bytes = 64'000, std::uint32_t mark = 0) {
  Packet packet = tcp_packet_of(flow, ip_bytes, mark);
  packet.super = true;
  return packet;
}

inline Packet on_link(Packet packet, LinkIndex link) {
  packet.link = link;
  return packet;
}

inline LinkPolicy link_named(std::string name, Direction direction = Direction::egress) {
  LinkPolicy link;
  link.name = std::move(name);
  link.interface = "eth0";
  link.direction = direction;
  return link;
}

inline ClassPolicy default_class(std::optional<DataRate> rate = {}, std::string name = "default") {
  ClassPolicy policy;
  policy.name = std::move(name);
  policy.is_default = true;
  policy.rate = rate;
  policy.aqm = false;
  return policy;
}

inline ClassPolicy class_marked(std::string name, std::uint32_t mark, std::optional<DataRate> rate = {}) {
  ClassPolicy policy = default_class(rate, std::move(name));
  policy.is_default = false;
  policy.match.resize(1);
  policy.match[0].mark.push_back({mark, 0xffffffff});
  return policy;
}

/// A class that may borrow all that its link has free.
inline ClassPolicy borrowing(ClassPolicy policy) {
  policy.ceil_is_link = true;
  return policy;
}

inline Each each_of(EachBy by, DataRate rate, std::uint8_t bits_ipv4 = 32, std::uint8_t bits_ipv6 = 128) {
  return {{by, bits_ipv4, bits_ipv6}, rate, kDefaultBurst};
}

inline LimitPolicy limit_named(std::string name, DataRate rate, std::optional<KeyPolicy> by = {}) {
  LimitPolicy limit;
  limit.name = std::move(name);
  limit.rate = rate;
  limit.by = by;
  return limit;
}

/// One link with the given classes.
template <typename... Classes>
Policy policy_of(Classes... classes) {
  Policy policy;
  policy.links.push_back(link_named("uplink"));
  (policy.classes.push_back(std::move(classes)), ...);
  return policy;
}

/// One link of this rate with the given classes.
template <typename... Classes>
Policy link_of(DataRate rate, Classes... classes) {
  Policy policy = policy_of(std::move(classes)...);
  policy.links[0].rate = rate;
  return policy;
}

}  // namespace shaper::sim
