// Where the IP packet begins in a captured frame, and how long it is. Pure; looks at nothing but the bytes given.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace shaper {

/// An IP packet in a frame: its captured bytes and its true length, which may be more.
struct IpPacket {
  std::span<const std::uint8_t> captured;
  std::uint32_t length = 0;
  std::uint32_t header_length = 0;  ///< what its IP header says; zero: nothing
  std::uint32_t room = 0;           ///< what the frame has for it, padding too
};

/// Whether frames of this link type (DLT_*, of pcap_datalink()) can be read: Ethernet, Linux cooked (both versions),
/// raw IP, BSD loopback.
[[nodiscard]] bool is_known_link_type(int link_type);

/// Finds the IP packet behind the link's header and any VLAN tags. `frame_bytes` is the frame's length on the wire.
/// The length is what the IP header says where the frame is longer (padding), else what the frame has: the header of a
/// BIG TCP packet says zero. Nothing for frames that carry no IP or are cut short before it.
[[nodiscard]] std::optional<IpPacket> find_ip_packet(int link_type, std::span<const std::uint8_t> captured,
                                                     std::uint32_t frame_bytes);

}  // namespace shaper
