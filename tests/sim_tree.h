// Policies and traffic by chance: trees of links, classes and limits with every key that the core obeys.
#pragma once

#include <vector>

#include "shaper/core/guard.h"
#include "tests/sim_traffic.h"

namespace shaper::sim {

inline Burst random_burst(Random& random) {
  if (random.chance(50)) return kDefaultBurst;
  if (random.chance(50)) return random.up_to(50ms);
  return ByteCount{random.below(100'000)};
}

inline KeyPolicy random_key(Random& random) {
  constexpr std::uint8_t kBits[] = {16, 24, 25, 32};
  KeyPolicy key;
  key.by = static_cast<EachBy>(random.below(5));
  key.bits_ipv4 = kBits[random.below(4)];
  key.bits_ipv6 = static_cast<std::uint8_t>(key.bits_ipv4 * 2);
  return key;
}

inline Each random_each(Random& random) {
  const KeyPolicy key = random_key(random);
  const DataRate rate{random.log_between(8'000, 1'000'000'000)};
  return {key, rate, random_burst(random)};
}

inline void random_rates(ClassPolicy& policy, Random& random) {
  if (random.chance(70)) policy.rate = DataRate{random.log_between(8'000, 2'000'000'000)};
  if (random.chance(30)) {
    policy.ceil_is_link = true;
  } else if (random.chance(30)) {
    const std::uint64_t least = policy.rate ? policy.rate->bits_per_second : random.log_between(8'000, 2'000'000'000);
    policy.ceil = DataRate{least * random.between(1, 4)};
  }
}

/// Any class; `mark` selects it.
inline ClassPolicy random_class(Random& random, std::uint32_t mark, std::size_t limits = 0) {
  ClassPolicy policy = class_marked("c" + std::to_string(mark), mark);
  random_rates(policy, random);
  policy.burst = random_burst(random);
  if (random.chance(40)) policy.each = random_each(random);
  for (LimitIndex limit = 0; limit < limits; ++limit) {
    if (random.chance(40)) policy.limits.push_back(limit);
  }
  if (random.chance(50)) policy.priority = static_cast<std::uint8_t>(random.below(kPriorities));
  if (random.chance(50)) policy.fair = static_cast<Fair>(random.below(6));
  if (random.chance(25)) policy.over = random.chance(70) ? Over::drop : Over::count;
  policy.aqm = random.chance(50);
  policy.ecn = random.chance(70);
  if (random.chance(25)) policy.max_delay = 1ms + random.up_to(2s);
  if (random.chance(25)) policy.backlog = ByteCount{random.log_between(1, 1'000'000)};
  return policy;
}

/// Some of the flows that packet_of() makes.
inline Match random_match(Random& random) {
  Match match;
  if (random.chance(40)) match.mark = {{static_cast<std::uint32_t>(random.between(1, 3))}};
  if (random.chance(40)) match.source_port = {{1000, static_cast<std::uint16_t>(1000 + random.below(kFlowsPerHost))}};
  if (random.chance(40)) {
    const auto host = static_cast<std::uint32_t>(random.below(4));
    match.local = {{Family::ipv4, host_address(host, Family::ipv4), 32}};
  }
  return match;
}

inline LimitPolicy random_limit(Random& random, std::size_t number) {
  LimitPolicy limit = limit_named("m" + std::to_string(number), {random.log_between(8'000, 1'000'000'000)});
  limit.burst = random_burst(random);
  if (random.chance(40)) limit.by = random_key(random);
  if (random.chance(15)) {
    limit.scope = Scope::cluster;
  } else if (random.chance(30)) {
    limit.by = KeyPolicy{EachBy::all};
    limit.match = {random_match(random)};
  }
  return limit;
}

/// Guards the port at which packet_of() sends to this host, and half of those from which it sends.
inline void random_guard(Policy& policy, Random& random) {
  std::vector<std::uint16_t> ports{443};
  for (std::uint16_t port = 1000; port < 1000 + kFlowsPerHost; port += 2) ports.push_back(port);
  set_guard_ports(policy, random.chance(40) ? ports : std::vector<std::uint16_t>{});
}

/// One to three links, each with one to three classes for the marks 1, 2, 3 and a default class, and limits for all.
inline Policy random_policy(Random& random) {
  constexpr Cells kCells[] = {Cells::atm, Cells::ptm};
  Policy policy;
  const std::uint64_t limits = random.chance(50) ? random.between(1, 3) : 0;
  for (std::size_t n = 0; n < limits; ++n) policy.limits.push_back(random_limit(random, n));
  const std::uint64_t links = random.between(1, 3);
  for (LinkIndex link = 0; link < links; ++link) {
    const Direction direction = random.chance(50) ? Direction::egress : Direction::ingress;
    policy.links.push_back(link_named("l" + std::to_string(link), direction));
    LinkPolicy& made = policy.links.back();
    if (random.chance(60)) made.rate = DataRate{random.log_between(20'000, 2'000'000'000)};
    made.overhead = static_cast<std::uint32_t>(random.below(40));
    if (random.chance(20)) made.smallest_frame = static_cast<std::uint32_t>(random.below(200));
    if (random.chance(15)) made.cells = kCells[random.below(2)];
    made.guard = random.chance(80);
    const std::uint64_t marks = random.between(1, 3);
    for (std::uint32_t mark = 0; mark <= marks; ++mark) {
      policy.classes.push_back(random_class(random, mark, policy.limits.size()));
      policy.classes.back().name += made.name;
      policy.classes.back().link = link;
      policy.classes.back().is_default = mark == 0;
      if (mark == 0) policy.classes.back().match.clear();
    }
  }
  policy.max_flows = 4'096;  // its table is made at once: a small one makes a quick test
  if (random.chance(10)) policy.max_flows = static_cast<std::uint32_t>(random.between(1, 32));
  random_guard(policy, random);
  return policy;
}

/// Another policy for the same links, which may get other rates.
inline Policy random_successor(const Policy& before, Random& random) {
  Policy next = random_policy(random);
  while (next.links.size() != before.links.size()) next = random_policy(random);
  for (std::size_t link = 0; link < next.links.size(); ++link) {
    const std::optional<DataRate> rate = random.chance(50) ? next.links[link].rate : before.links[link].rate;
    next.links[link] = before.links[link];
    next.links[link].rate = rate;
    next.links[link].guard = random.chance(80);
  }
  random_guard(next, random);
  return next;
}

/// Traffic of a few flows for a class, between a fraction and a multiple of its smallest rate.
inline void add_random_traffic(std::vector<Source>& traffic, const Policy& policy, const ClassPolicy& cls,
                               Random& random) {
  const DataRate rate = policy.smallest_rate(cls).value_or(DataRate{10'000'000});
  const std::uint32_t mark = cls.match.empty() ? 0 : cls.match[0].mark[0].value;
  for (std::uint64_t flows = random.between(1, 4); flows > 0; --flows) {
    const auto bytes = static_cast<std::uint32_t>(random.log_between(40, random.chance(20) ? 60'000 : 1'500));
    const auto flow = static_cast<std::uint32_t>(random.below(8'192)) | (random.chance(30) ? kIpv6Flow : 0);
    Packet packet = packet_of(flow, bytes, mark);
    if (random.chance(30)) packet = tcp_packet_of(flow, bytes, mark);
    if (random.chance(20)) packet = super_packet_of(flow, 100 + bytes, mark);
    packet.link = cls.link;
    packet.headers.ecn = random.chance(40) ? 2 : 0;
    if (random.chance(30)) packet.user = static_cast<std::uint32_t>(random.below(3));
    const Nanos gap = time_for({rate.bits_per_second * random.between(1, 8) / 4}, {bytes + 14});
    const auto window = static_cast<std::uint32_t>(random.between(1, 20));
    switch (random.below(packet.super ? 4 : 5)) {
      case 0:
        traffic.push_back(constant(packet, gap));
        break;
      case 1:
        traffic.push_back(poisson(packet, gap));
        break;
      case 2:
        traffic.push_back(bursts(packet, 10, 10 * gap));
        break;
      case 3:
        traffic.push_back(greedy(packet, window));
        break;
      default:
        traffic.push_back(reno(packet, 1ms + random.up_to(100ms), window));
        break;
    }
  }
}

inline std::vector<Source> random_traffic(const Policy& policy, Random& random) {
  std::vector<Source> traffic;
  for (const ClassPolicy& cls : policy.classes) add_random_traffic(traffic, policy, cls, random);
  return traffic;
}

}  // namespace shaper::sim
