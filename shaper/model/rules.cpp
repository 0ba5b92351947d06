// Everything is done on one picture, `OurRules`: read from a save text (saved_rules.h) or made from a policy. A
// transaction turns one picture into another. "Nothing changed" is equality of text.
#include "shaper/model/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cctype>
#include <iterator>

#include "shaper/model/saved_rules.h"

namespace shaper {
namespace {

/// Where a jump of ours stands, and what it leads to.
struct Hook {
  std::string_view base;
  Direction direction;
};
constexpr std::array<Hook, 3> kHooks{
    {{"FORWARD", Direction::ingress}, {"INPUT", Direction::ingress}, {"POSTROUTING", Direction::egress}}};

constexpr std::string_view chain_of(Direction direction) {
  return direction == Direction::egress ? "shaper-out" : "shaper-in";
}

/// Targets that change a packet or its mark, or copy it: running twice may be once too often.
constexpr std::array<std::string_view, 17> kActingTargets{
    "CLASSIFY", "CONNMARK", "CONNSECMARK", "DSCP",   "ECN",         "HL",  "HMARK", "MARK", "NETMAP",
    "RATEEST",  "SECMARK",  "SET",         "TCPMSS", "TCPOPTSTRIP", "TEE", "TOS",   "TTL"};

/// ICMPv6 without which the neighbours, and so the host, are lost: RFC 4890, 4.4.1. 130-132 and 143 MLD, 133-137 ND.
constexpr std::array<int, 9> kNeighbourDiscovery{130, 131, 132, 133, 134, 135, 136, 137, 143};

std::string mark_bit(const Policy& policy) {
  return fmt::format("{:#x}", policy.mark_mask);
}

std::string queue_rule(std::string_view chain, const LinkPolicy& link, const QueuePair& pair) {
  return fmt::format("-A {} {} {} -j NFQUEUE --queue-num {}{}", chain,
                     link.direction == Direction::egress ? "-o" : "-i", link.interface, pair.fast,
                     link.without_daemon == WithoutDaemon::pass ? " --queue-bypass" : "");
}

constexpr std::string_view kCeChain = "shaper-ce";

/// As iptables-save of both back ends and both families prints them. `bit` is one bit in hexadecimal.
std::string way_to_ce(std::string_view chain, std::string_view bit) {
  return fmt::format("-A {} -m mark --mark {}/{} -g {}", chain, bit, bit, kCeChain);
}
std::array<std::string, 3> ce_rules(std::string_view bit) {
  return {fmt::format("-A {} -j TOS --set-tos 0x03/0x03", kCeChain),
          fmt::format("-A {} -j MARK --set-xmark 0x0/{}", kCeChain, bit), fmt::format("-A {} -j ACCEPT", kCeChain)};
}

void add_ce_chain(OurRules& ours, std::string_view bit) {
  ours.chains.emplace_back(kCeChain);
  std::ranges::copy(ce_rules(bit), std::back_inserter(ours.rules));
}

bool is_on_redis(const LimitPolicy& limit) {
  return limit.scope == Scope::cluster;
}

void add_chain(OurRules& ours, const Policy& policy, Direction direction, Family family) {
  const std::string_view chain = chain_of(direction);
  if (contains(ours.chains, chain)) return;
  ours.chains.emplace_back(chain);
  if (sets_ce(policy, direction)) ours.rules.push_back(way_to_ce(chain, mark_bit(policy)));
  if (direction == Direction::egress && std::ranges::any_of(policy.limits, is_on_redis)) {
    ours.rules.push_back(fmt::format("-A {} -m mark --mark {:#x} -j RETURN", chain, kOwnTraffic));
  }
  if (family != Family::ipv6) return;
  for (const int type : kNeighbourDiscovery) {
    ours.rules.push_back(fmt::format("-A {} -p ipv6-icmp -m icmp6 --icmpv6-type {} -j RETURN", chain, type));
  }
}

/// Loopback needs no rule of its own: every queue rule names its interface.
tl::expected<OurRules, std::string> wanted_rules(const Policy& policy, std::span<const QueuePair> queues,
                                                 Family family) {
  if (family == Family::other) return tl::unexpected<std::string>("rules exist for IPv4 and IPv6 only");
  OurRules ours;
  if (sets_ce(policy, Direction::ingress) || sets_ce(policy, Direction::egress)) add_ce_chain(ours, mark_bit(policy));
  for (const Direction direction : {Direction::ingress, Direction::egress}) {
    for (std::size_t i = 0; i < policy.links.size(); ++i) {
      const LinkPolicy& link = policy.links[i];
      if (link.direction != direction) continue;
      if (!is_safe_interface_name(link.interface)) {
        return tl::unexpected(fmt::format("link {}: its interface name cannot stand in a rule; rename it", i + 1));
      }
      const auto pair = std::ranges::find(queues, i, &QueuePair::link);
      assert(pair != queues.end());
      add_chain(ours, policy, direction, family);
      ours.rules.push_back(queue_rule(chain_of(direction), link, *pair));
    }
  }
  for (const Hook& hook : kHooks) {
    const std::string_view chain = chain_of(hook.direction);
    if (!contains(ours.chains, chain)) continue;
    ours.jumps.push_back(fmt::format("-A {} -m comment --comment shaper -j {}", hook.base, chain));
  }
  return ours;
}

/// Without the chain that sets CE and the ways to it, if that chain is whole.
OurRules without_ce(OurRules ours, std::string_view bit) {
  const auto expected = ce_rules(bit);
  const auto of_chain = [](std::string_view chain) {
    return [chain](const std::string& rule) { return word_at(rule, 3) == chain; };
  };
  const auto end = std::ranges::find_if_not(ours.rules, of_chain(kCeChain));  // its rules come first: "ce" < "in"
  if (!std::equal(expected.begin(), expected.end(), ours.rules.begin(), end)) return ours;
  ours.rules.erase(ours.rules.begin(), end);
  std::erase(ours.chains, kCeChain);
  for (const std::string& chain : ours.chains) {
    const auto first = std::ranges::find_if(ours.rules, of_chain(chain));
    if (first != ours.rules.end() && *first == way_to_ce(chain, bit)) ours.rules.erase(first);
  }
  return ours;
}

/// Old jumps go by their own text, not by number: a foreign rule added since the save cannot be hit. Legacy iptables
/// forgets the counters of policies with every change, so they are said again (nft has none).
std::string transaction(const SavedRules& found, const OurRules& wanted) {
  const OurRules& now = found.ours;
  std::string text = "*mangle\n";
  for (const std::string& policy : found.counted) text += policy + '\n';
  for (const std::string_view chain : kOurChains) {
    if (contains(wanted.chains, chain) || contains(now.chains, chain)) text += fmt::format(":{} - [0:0]\n", chain);
  }  // this line makes a chain, or empties it
  for (const std::string& jump : now.jumps) text += fmt::format("-D{}\n", std::string_view{jump}.substr(2));
  for (const std::string& chain : now.chains) {
    if (!contains(wanted.chains, chain)) text += fmt::format("-X {}\n", chain);
  }
  for (const std::string& rule : wanted.rules) text += rule + '\n';
  for (const std::string& jump : wanted.jumps) text += jump + '\n';
  return text + "COMMIT\n";
}

}  // namespace

bool is_safe_interface_name(std::string_view name) {
  constexpr std::size_t kLongest = 15;  // IFNAMSIZ - 1
  const auto safe = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view{"._-@"}.find(c) != std::string_view::npos;
  };
  return !name.empty() && name.size() <= kLongest && name.front() != '-' && std::ranges::all_of(name, safe);
}

bool sets_ce(const Policy& policy, Direction direction) {
  return std::ranges::any_of(policy.classes, [&](const ClassPolicy& cls) {
    const LinkPolicy& link = policy.links[cls.link];
    const bool may_wait = cls.over != Over::count || link.rate || !cls.limits.empty() || cls.each;
    return link.direction == direction && cls.aqm && cls.ecn && may_wait;
  });
}

std::vector<std::string> rules_run_twice(const Policy& policy, std::string_view saved) {
  const ForeignChains chains = foreign_chains(saved);
  std::vector<std::string> twice;
  std::vector<std::string> reached;  // chains, in the order in which they are looked at
  for (const Hook& hook : kHooks) {
    if (sets_ce(policy, hook.direction)) reached.emplace_back(hook.base);
  }
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const auto chain = chains.find(reached[i]);
    if (chain == chains.end()) continue;
    for (const std::string& rule : chain->second) {
      const std::string_view target = target_of(rule);
      if (contains(kActingTargets, target)) twice.push_back(rule);
      if (chains.contains(target) && !contains(reached, target)) reached.emplace_back(target);
    }
  }
  return twice;
}

tl::expected<std::string, std::string> rules_to_install(const Policy& policy, std::span<const QueuePair> queues,
                                                        Family family, std::string_view saved) {
  const auto wanted = wanted_rules(policy, queues, family);
  if (!wanted) return tl::unexpected(wanted.error());
  const SavedRules found = read_saved_rules(saved);
  if (found.ours == *wanted && found.behind.empty()) return "";
  return transaction(found, *wanted);
}

std::string rules_to_remove(std::string_view saved) {
  return rules_to_take_back("", saved);
}

std::string rules_to_take_back(std::string_view before, std::string_view saved) {
  const OurRules then = read_saved_rules(before).ours;
  const SavedRules found = read_saved_rules(saved);
  return found.ours == then ? "" : transaction(found, then);
}

RulesReport inspect_rules(const Policy& policy, std::span<const QueuePair> queues, Family family,
                          std::string_view saved) {
  const auto wanted = wanted_rules(policy, queues, family);
  SavedRules found = read_saved_rules(saved);
  RulesState state = RulesState::partly;
  const OurRules compared = policy.classes.empty() ? without_ce(found.ours, mark_bit(policy)) : found.ours;
  if (wanted && compared == *wanted) state = RulesState::present;
  if (found.ours.empty()) state = RulesState::missing;
  return {state, std::move(found.behind)};
}

}  // namespace shaper
