// What stands in the table `mangle`, read from the text of iptables-save: what is ours, and what is not; and which
// tables have rules of others at all. Pure. Lines are kept as iptables-save prints them.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace shaper {

/// Our user chains; nobody else's have these names.
inline constexpr std::array<std::string_view, 3> kOurChains{"shaper-ce", "shaper-in", "shaper-out"};

/// All that is ours in a table.
struct OurRules {
  std::vector<std::string> chains;
  std::vector<std::string> rules;  ///< "-A shaper-out ...", of our chains
  std::vector<std::string> jumps;  ///< "-A POSTROUTING ... -j shaper-out", of any other chain

  [[nodiscard]] bool empty() const { return chains.empty() && jumps.empty(); }
  friend bool operator==(const OurRules&, const OurRules&) = default;
};

struct SavedRules {
  OurRules ours;
  std::vector<std::string> behind;   ///< foreign rules behind a jump of ours
  std::vector<std::string> counted;  ///< ":INPUT ACCEPT [12:3456]", built-in chains whose policy has counted packets
};

[[nodiscard]] SavedRules read_saved_rules(std::string_view saved);

/// The rules of all chains that are not ours, by chain.
using ForeignChains = std::map<std::string, std::vector<std::string>, std::less<>>;
[[nodiscard]] ForeignChains foreign_chains(std::string_view saved);

/// The tables, of a text that may have all, that hold rules of others, a policy to drop, or what iptables cannot read.
/// Sorted: the order depends on the back end.
[[nodiscard]] std::vector<std::string> foreign_tables(std::string_view saved);

/// The word of `line` that begins at `from`; "-A CHAIN ..." has its chain at 3.
[[nodiscard]] std::string_view word_at(std::string_view line, std::size_t from);

/// The target or the chain that the rule leads to; empty if it only counts.
[[nodiscard]] std::string_view target_of(std::string_view rule);

[[nodiscard]] bool contains(const auto& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

}  // namespace shaper
