// Policies and packets for experiments on the core, made by hand or by chance.
//
// A flow is a number here: flow n belongs to host n / 16 (10.0.0.0 and up) and to its source port 1000 + n % 16, so
// that tests can name flows of one host (0 and 1), of one /24 (0 and 16) and of different /24 (0 and 4096). Classes are
// told apart by the packet's mark: class_marked("bulk", 7) takes packets with mark 7.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "shaper/core/shaper.h"

namespace shaper::sim {

using namespace std::chrono_literals;

inline constexpr DataRate operator""_kbit(unsigned long long n) {
  return {n * 1'000};
}
inline constexpr DataRate operator""_mbit(unsigned long long n) {
  return {n * 1'000'000};
}
inline constexpr DataRate operator""_gbit(unsigned long long n) {
  return {n * 1'000'000'000};
}

/// A seeded source of chance with the same sequence on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_{seed} {}

  std::uint64_t below(std::uint64_t end) { return engine_() % end; }
  std::uint64_t between(std::uint64_t first, std::uint64_t last) { return first + below(last - first + 1); }
  bool chance(unsigned percent) { return below(100) < percent; }
  Nanos up_to(Nanos most) {
    return Nanos{static_cast<std::int64_t>(between(0, static_cast<std::uint64_t>(most.count())))};
  }

  /// Between `first` and `last`, all orders of magnitude alike.
  std::uint64_t log_between(std::uint64_t first, std::uint64_t last) {
    const double low = std::log(static_cast<double>(first));
    const double high = std::log(static_cast<double>(last));
    return static_cast<std::uint64_t>(std::exp(low + (high - low) * unit()));
  }

  /// A gap of a Poisson process.
  Nanos exponential(Nanos mean) {
    return Nanos{static_cast<std::int64_t>(-std::log(1.0 - unit()) * static_cast<double>(mean.count()))};
  }

 private:
  double unit() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }

  std::mt19937_64 engine_;
};

inline constexpr std::uint32_t kFlowsPerHost = 16;
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

inline LinkPolicy link_named(std::string name, Direction direction = Direction::egress) {
  LinkPolicy link;
  link.name = std::move(name);
  link.interface = "eth0";
  link.direction = direction;
  return link;
}

inline ClassPolicy class_marked(std::string name, std::uint32_t mark, std::optional<DataRate> rate = {}) {
  ClassPolicy policy;
  policy.name = std::move(name);
  policy.match.resize(1);
  policy.match[0].mark.push_back({mark, 0xffffffff});
  policy.rate = rate;
  return policy;
}

inline ClassPolicy default_class(std::optional<DataRate> rate = {}, std::string name = "default") {
  ClassPolicy policy;
  policy.name = std::move(name);
  policy.is_default = true;
  policy.rate = rate;
  return policy;
}

inline Each each_of(EachBy by, DataRate rate, std::uint8_t bits_ipv4 = 32, std::uint8_t bits_ipv6 = 128) {
  return {by, bits_ipv4, bits_ipv6, rate, kDefaultBurst};
}

/// One link with the given classes.
template <typename... Classes>
Policy policy_of(Classes... classes) {
  Policy policy;
  policy.links.push_back(link_named("uplink"));
  (policy.classes.push_back(std::move(classes)), ...);
  return policy;
}

inline Burst random_burst(Random& random) {
  if (random.chance(50)) return kDefaultBurst;
  if (random.chance(50)) return random.up_to(50ms);
  return ByteCount{random.below(100'000)};
}

inline Each random_each(Random& random) {
  constexpr std::uint8_t kBits[] = {16, 24, 25, 32};
  Each each;
  each.by = static_cast<EachBy>(random.below(5));
  each.bits_ipv4 = kBits[random.below(4)];
  each.bits_ipv6 = static_cast<std::uint8_t>(each.bits_ipv4 * 2);
  each.rate.bits_per_second = random.log_between(8'000, 1'000'000'000);
  each.burst = random_burst(random);
  return each;
}

/// Any class; `mark` selects it.
inline ClassPolicy random_class(Random& random, std::uint32_t mark) {
  ClassPolicy policy = class_marked("c" + std::to_string(mark), mark);
  if (random.chance(80)) policy.rate = DataRate{random.log_between(8'000, 2'000'000'000)};
  if (policy.rate && random.chance(20)) policy.ceil = DataRate{policy.rate->bits_per_second * random.between(1, 4)};
  policy.burst = random_burst(random);
  if (random.chance(50)) policy.each = random_each(random);
  if (random.chance(30)) policy.over = random.chance(70) ? Over::drop : Over::count;
  if (random.chance(25)) policy.max_delay = 1ms + random.up_to(2s);
  if (random.chance(25)) policy.backlog = ByteCount{random.log_between(1, 1'000'000)};
  return policy;
}

/// One or two links, each with one to three classes for the marks 1, 2, 3 and a default class.
inline Policy random_policy(Random& random) {
  Policy policy;
  for (std::uint16_t link = 0; link <= random.below(2); ++link) {
    policy.links.push_back(
        link_named("l" + std::to_string(link), random.chance(50) ? Direction::egress : Direction::ingress));
    policy.links.back().overhead = static_cast<std::uint32_t>(random.below(40));
    if (random.chance(20)) policy.links.back().smallest_frame = static_cast<std::uint32_t>(random.below(200));
    const auto first = policy.classes.size();
    for (std::uint32_t mark = 1; mark <= random.between(1, 3); ++mark)
      policy.classes.push_back(random_class(random, mark));
    policy.classes.push_back(random_class(random, 0));
    policy.classes.back().match.clear();
    policy.classes.back().is_default = true;
    for (auto n = first; n < policy.classes.size(); ++n) policy.classes[n].link = link;
  }
  policy.max_flows = 4'096;  // its table is made at once: a small one makes a quick test
  if (random.chance(10)) policy.max_flows = static_cast<std::uint32_t>(random.between(1, 32));
  return policy;
}

}  // namespace shaper::sim
