// The flowtables of nf_tables in this network namespace. A forwarded flow that one has taken goes past every iptables
// rule, so a shaper never sees it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shaper {

struct Flowtable {
  std::string table;
  std::string name;

  friend bool operator==(const Flowtable&, const Flowtable&) = default;
};

/// Reads one datagram of the kernel's answer (nfnetlink, NFT_MSG_NEWFLOWTABLE) and appends what it names. True: there
/// is more to come.
[[nodiscard]] bool parse_flowtables(std::span<const std::uint8_t> datagram, std::vector<Flowtable>& flowtables);

/// All of them; none where the kernel has no nf_tables or does not tell.
[[nodiscard]] std::vector<Flowtable> read_flowtables();

}  // namespace shaper
