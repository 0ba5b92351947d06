// What this host has of iptables: programs by family and back end, tables that exist, families that rules can be for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shaper/core/packet.h"
#include "shaper/live/iptables.h"

namespace shaper {

/// "IPv4" or "IPv6".
[[nodiscard]] std::string_view family_name(Family family);

/// The program for a verb, "save" or "restore".
[[nodiscard]] std::string program(Family family, Backend backend, std::string_view verb);

[[nodiscard]] Backend other_than(Backend backend);

/// What the kernel says about the legacy table: asking iptables itself would create it.
enum class LegacyTable : std::uint8_t {
  missing,
  there,
  unknown,  ///< in a user namespace, the list is not ours
};
[[nodiscard]] LegacyTable legacy_table(Family family);

/// Why rules for IPv6 are left out; nothing: they are not.
[[nodiscard]] std::optional<std::string> reason_without_ipv6(Backend backend);

/// The notice of it.
[[nodiscard]] std::string without_ipv6(std::string_view reason);

/// The families that rules are for.
[[nodiscard]] std::vector<Family> families(Backend backend);

/// From iptables' own words: the kernel lacks the table or the whole family, so no rule can be there.
[[nodiscard]] bool means_no_table(std::string_view error);

}  // namespace shaper
