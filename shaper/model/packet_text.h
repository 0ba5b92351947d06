// A packet as people describe it for `shaper explain`, and what is explained about it.
//
//   tcp 10.0.0.1:40000 > 10.0.0.2:443 user=backup group=1000 mark=0x10 dscp=46 link=uplink
//   icmp 2001:db8::1 > 2001:db8::2
//   udp 10.0.0.1:40000 > 10.0.0.2:443 process=curl unit=backup.service
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "shaper/core/shaper.h"
#include "shaper/model/config.h"

namespace shaper {

/// A packet and the links on which it may travel. `packet.link` is not meant.
struct PacketQuestion {
  Packet packet;
  std::vector<std::string> links;  ///< names; empty: all links of the policy
  std::optional<Owner> owner;      ///< `process=`, `pid=`, `cgroup=`, `unit=`, `container=`
  std::vector<std::string> owner_words;
};

/// Ports are required for TCP and UDP. The error is a sentence that says what was expected.
[[nodiscard]] tl::expected<PacketQuestion, std::string> parse_packet(std::string_view text, const NameLookup& names);

/// The description again, users and groups as numbers: what a process without look-ups can read.
[[nodiscard]] std::string format_packet(const PacketQuestion& question);

/// For each link the class that the packet gets there, why, and what limits it; with `now` (of a running shaper) also
/// what waits there at this moment, and why the packet's flow is no faster. An error if a link does not exist.
[[nodiscard]] tl::expected<std::string, std::string> explain_packet(const PacketQuestion& question,
                                                                    const Policy& policy, const Shaper& shaper,
                                                                    std::optional<Instant> now = std::nullopt);

}  // namespace shaper
