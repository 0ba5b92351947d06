// Everything is done on one picture, `OurRules`: read from a save text or made from a policy. A transaction turns one
// picture into another. Lines are kept as iptables-save prints them, so "nothing changed" is equality of text.
#include "shaper/model/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cctype>
#include <sstream>

namespace shaper {
namespace {

constexpr std::array<std::string_view, 2> kOurChains{"shaper-in", "shaper-out"};

/// Where a jump of ours stands, and what it leads to.
struct Hook {
  std::string_view base;
  std::string_view chain;
};
constexpr std::array<Hook, 3> kHooks{{{"FORWARD", "shaper-in"}, {"INPUT", "shaper-in"}, {"POSTROUTING", "shaper-out"}}};

/// ICMPv6 without which the neighbours, and so the host, are lost: RFC 4890, 4.4.1. 130-132 and 143 MLD, 133-137 ND.
constexpr std::array<int, 9> kNeighbourDiscovery{130, 131, 132, 133, 134, 135, 136, 137, 143};

/// All that is ours in a table.
struct OurRules {
  std::vector<std::string> chains;
  std::vector<std::string> rules;  ///< "-A shaper-out ...", of our chains
  std::vector<std::string> jumps;  ///< "-A POSTROUTING ... -j shaper-out", of any other chain

  [[nodiscard]] bool empty() const { return chains.empty() && jumps.empty(); }
  friend bool operator==(const OurRules&, const OurRules&) = default;
};

struct Found {
  OurRules ours;
  std::vector<std::string> behind;
  std::vector<std::string> counted;  ///< ":INPUT ACCEPT [12:3456]", built-in chains whose policy has counted packets
};

bool contains(const auto& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

bool is_our_chain(std::string_view name) {
  return contains(kOurChains, name);
}

/// The word that begins at `from`.
std::string_view word_at(std::string_view line, std::size_t from) {
  return from < line.size() ? line.substr(from, line.find(' ', from) - from) : std::string_view{};
}

/// The chain that the rule leads to. Quoted text is skipped: a comment may well contain "-j shaper-out".
std::string_view target_of(std::string_view rule) {
  std::string_view target;
  bool quoted = false;
  for (std::size_t i = 0; i < rule.size(); ++i) {
    if (quoted && rule[i] == '\\') {
      ++i;
    } else if (rule[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && (rule.substr(i).starts_with(" -j ") || rule.substr(i).starts_with(" -g "))) {
      target = word_at(rule, i + 4);
    }
  }
  return target;
}

Found find_ours(std::string_view saved) {
  Found found;
  std::vector<std::string> jumped;  // chains that had a jump of ours already
  bool in_mangle = false;
  std::istringstream lines{std::string{saved}};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('*')) in_mangle = line == "*mangle";
    if (!in_mangle) continue;
    if (line.starts_with(':') && is_our_chain(word_at(line, 1))) found.ours.chains.emplace_back(word_at(line, 1));
    if (line.starts_with(':') && !line.ends_with(" [0:0]")) found.counted.push_back(line);
    if (!line.starts_with("-A ")) continue;
    const std::string_view chain = word_at(line, 3);
    if (is_our_chain(chain)) {
      found.ours.rules.push_back(line);
    } else if (is_our_chain(target_of(line))) {
      found.ours.jumps.push_back(line);
      jumped.emplace_back(chain);
    } else if (contains(jumped, chain)) {
      found.behind.push_back(line);
    }
  }
  // The order of chains depends on the back end; only that of the rules inside one counts. wanted_rules() sorts alike.
  std::ranges::sort(found.ours.chains);
  std::ranges::stable_sort(found.ours.rules, {}, [](const std::string& rule) { return word_at(rule, 3); });
  std::ranges::sort(found.ours.jumps);
  return found;
}

std::string queue_rule(std::string_view chain, const LinkPolicy& link, const QueuePair& pair) {
  return fmt::format("-A {} {} {} -j NFQUEUE --queue-num {}{}", chain,
                     link.direction == Direction::egress ? "-o" : "-i", link.interface, pair.fast,
                     link.without_daemon == WithoutDaemon::pass ? " --queue-bypass" : "");
}

void add_chain(OurRules& ours, std::string_view chain, Family family) {
  if (contains(ours.chains, chain)) return;
  ours.chains.emplace_back(chain);
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
  for (const Direction direction : {Direction::ingress, Direction::egress}) {
    const std::string_view chain = direction == Direction::egress ? "shaper-out" : "shaper-in";
    for (std::size_t i = 0; i < policy.links.size(); ++i) {
      const LinkPolicy& link = policy.links[i];
      if (link.direction != direction) continue;
      if (!is_safe_interface_name(link.interface)) {
        return tl::unexpected(fmt::format("link {}: its interface name cannot stand in a rule; rename it", i + 1));
      }
      const auto pair = std::ranges::find(queues, i, &QueuePair::link);
      assert(pair != queues.end());
      add_chain(ours, chain, family);
      ours.rules.push_back(queue_rule(chain, link, *pair));
    }
  }
  for (const Hook& hook : kHooks) {
    if (!contains(ours.chains, hook.chain)) continue;
    ours.jumps.push_back(fmt::format("-A {} -m comment --comment shaper -j {}", hook.base, hook.chain));
  }
  return ours;
}

/// Old jumps go by their own text, not by number: a foreign rule added since the save cannot be hit. Legacy iptables
/// forgets the counters of policies with every change, so they are said again (nft has none).
std::string transaction(const Found& found, const OurRules& wanted) {
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

tl::expected<std::string, std::string> rules_to_install(const Policy& policy, std::span<const QueuePair> queues,
                                                        Family family, std::string_view saved) {
  const auto wanted = wanted_rules(policy, queues, family);
  if (!wanted) return tl::unexpected(wanted.error());
  const Found found = find_ours(saved);
  if (found.ours == *wanted && found.behind.empty()) return "";
  return transaction(found, *wanted);
}

std::string rules_to_remove(std::string_view saved) {
  return rules_to_take_back("", saved);
}

std::string rules_to_take_back(std::string_view before, std::string_view saved) {
  const OurRules then = find_ours(before).ours;
  const Found found = find_ours(saved);
  return found.ours == then ? "" : transaction(found, then);
}

RulesReport inspect_rules(const Policy& policy, std::span<const QueuePair> queues, Family family,
                          std::string_view saved) {
  const auto wanted = wanted_rules(policy, queues, family);
  Found found = find_ours(saved);
  RulesState state = RulesState::partly;
  if (wanted && found.ours == *wanted) state = RulesState::present;
  if (found.ours.empty()) state = RulesState::missing;
  return {state, std::move(found.behind)};
}

}  // namespace shaper
