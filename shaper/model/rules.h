// The iptables rules of a policy, as text for `iptables-restore --noflush --counters`: pure, text in and text out.
//
// Ours are user chains of the table `mangle` and the jumps to two of them, each the last rule of its base chain:
//
//   POSTROUTING    ... -m comment --comment shaper -j shaper-out      -A shaper-out -o DEV -j NFQUEUE ...
//   INPUT, FORWARD ... -m comment --comment shaper -j shaper-in       -A shaper-in  -i DEV -j NFQUEUE ...
//
// Where packets may be told of congestion, a third one sets CE (RFC 3168), and each of the two begins with the way
// there:
//
//   -A shaper-out -m mark --mark BIT/BIT -g shaper-ce
//   -A shaper-ce -j TOS --set-tos 0x03/0x03     -A shaper-ce -j MARK --set-xmark 0x0/BIT     -A shaper-ce -j ACCEPT
//
// Where limits are kept on Redis, our own connections to it are left out: they have a mark of their own.
//
//   -A shaper-out -m mark --mark 0x53485052 -j RETURN
//
// A verdict NF_REPEAT with our bit in the fwmark sends a packet through the hook again, and so there; TOS is the
// traffic class for IPv6. Nothing of ours sees such a packet twice, but foreign rules before our jump do
// (rules_run_twice).
//
// A text is made from what `iptables-save -t mangle` says now, so it fits whatever an earlier crash left. It is one
// transaction, names nothing that is not ours, and so leaves foreign rules, chains, policies and counters as they are.
// It never deletes a base chain: that would make the kernel drop every held packet.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "shaper/core/packet.h"
#include "shaper/core/policy.h"

namespace shaper {

/// The two kernel queues of a link. Rules name the fast one only.
struct QueuePair {
  LinkIndex link = 0;
  std::uint16_t fast = 0;
  std::uint16_t split = 0;

  friend bool operator==(const QueuePair&, const QueuePair&) = default;
};

enum class RulesState : std::uint8_t {
  present,  ///< exactly one set of our rules
  missing,  ///< no trace of us
  partly,   ///< some are missing, doubled, or of another policy
};

struct RulesReport {
  RulesState state = RulesState::missing;
  std::vector<std::string> behind;  ///< foreign rules behind a jump of ours, as iptables-save prints them
};

/// The fwmark of our own connections to Redis, whole: they are not shaped, or a limit could wait for itself.
inline constexpr std::uint32_t kOwnTraffic = 0x53'48'50'52;

/// Names that mean one interface and nothing else to iptables: 1 to 15 of letters, digits and `._-@`, no leading `-`.
/// (A trailing `+` would be a wildcard, and a `+` alone takes loopback too.)
[[nodiscard]] bool is_safe_interface_name(std::string_view name);

/// Whether packets in this direction may be told of congestion by CE: some class there has `aqm` and `ecn`, and
/// something that its packets may wait for.
[[nodiscard]] bool sets_ce(const Policy& policy, Direction direction);

/// The foreign rules that change packets, or act on them, and run twice for one that gets CE: they stand before our
/// jump in its base chain or in a chain that this one leads to. As iptables-save prints them.
[[nodiscard]] std::vector<std::string> rules_run_twice(const Policy& policy, std::string_view saved);

/// The text that leaves exactly one set of our rules; empty if that is what is there. `saved` is this family's
/// `iptables-save -t mangle`, empty if the table does not exist. Every link needs its pair in `queues`.
/// Error: an interface name that must not be in a rule, or a family that is not an IP version.
[[nodiscard]] tl::expected<std::string, std::string> rules_to_install(const Policy& policy,
                                                                      std::span<const QueuePair> queues, Family family,
                                                                      std::string_view saved);

/// The text that takes away exactly our rules; empty if none are there.
[[nodiscard]] std::string rules_to_remove(std::string_view saved);

/// The text that makes our rules again what they were in `before`, from what they are in `saved`.
[[nodiscard]] std::string rules_to_take_back(std::string_view before, std::string_view saved);

/// How `saved` compares with what rules_to_install() would leave. A jump of ours that is not last is still present. For
/// a policy without classes, as one knows it from a daemon's report, whole sets of the rules for CE may be there or
/// not.
[[nodiscard]] RulesReport inspect_rules(const Policy& policy, std::span<const QueuePair> queues, Family family,
                                        std::string_view saved);

}  // namespace shaper
