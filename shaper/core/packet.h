// A packet as the core sees it: who sends what to whom and how long it is, never its content.
//
// parse_headers() reads the first bytes of an IP packet. It trusts nothing in them: it never looks past what was
// captured, and the length is told by the caller (the kernel's word), because the IP length field is zero or too small
// in packets above 64 KiB (IPv6 BIG TCP).
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>

#include "shaper/core/units.h"

namespace shaper {

struct Owner;

enum class Family : std::uint8_t { other = 0, ipv4 = 4, ipv6 = 6 };

/// An IPv4 address (first four bytes, the rest zero) or an IPv6 address, in network order.
using Address = std::array<std::uint8_t, 16>;

/// IANA protocol numbers that are treated by name.
inline constexpr std::uint8_t kIcmp = 1;
inline constexpr std::uint8_t kTcp = 6;
inline constexpr std::uint8_t kUdp = 17;
inline constexpr std::uint8_t kDccp = 33;
inline constexpr std::uint8_t kIcmpv6 = 58;
inline constexpr std::uint8_t kSctp = 132;
inline constexpr std::uint8_t kUdpLite = 136;

/// What the headers of one packet say. Ports are in host order and zero where there are none (ICMP, a fragment that is
/// not the first, headers cut short).
struct Headers {
  Address source{};
  Address destination{};
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
  Family family = Family::other;
  std::uint8_t protocol = 0;          ///< of the payload, behind IPv6 extension headers
  std::uint8_t dscp = 0;              ///< 0..63
  std::uint8_t ecn = 0;               ///< 0..3
  std::uint16_t network_bytes = 0;    ///< IP header with options or extension headers
  std::uint16_t transport_bytes = 0;  ///< TCP header with options, UDP 8, else 0
  bool fragment = false;              ///< part of a larger datagram, the first part too

  friend bool operator==(const Headers&, const Headers&) = default;
};

/// Reads the headers in `captured` (an IP packet's first bytes). Anything unreadable leaves its fields at zero.
[[nodiscard]] Headers parse_headers(std::span<const std::uint8_t> captured);

/// The flow that an ICMP error tells of, in the direction of the error: the packet that it quotes went the other way.
/// Addresses, ports and protocol are filled. Nothing: it is no ICMP error, or too little of what it quotes was
/// captured. `headers`: those of `captured`.
[[nodiscard]] std::optional<Headers> parse_error_about(std::span<const std::uint8_t> captured, const Headers& headers);

/// Names a held packet to the kernel: the queue that it waits in and its number there.
struct PacketId {
  std::uint16_t queue = 0;
  std::uint32_t number = 0;

  friend constexpr auto operator<=>(const PacketId&, const PacketId&) = default;
};

using LinkIndex = std::uint16_t;   ///< position in Policy::links
using ClassIndex = std::uint32_t;  ///< position in Policy::classes

/// The two kernel queues of a link. Super-packets (GSO) stay whole in the fast one; the split one cuts them.
enum class QueueKind : std::uint8_t { fast, split };

/// One packet that arrived.
struct Packet {
  PacketId id;
  LinkIndex link = 0;
  QueueKind queue = QueueKind::fast;
  bool super = false;  ///< several segments in one (GSO)
  Headers headers;
  std::uint32_t ip_bytes = 0;         ///< true length of the IP packet, up to BIG TCP's sizes
  std::uint32_t mark = 0;             ///< fwmark
  std::optional<std::uint32_t> user;  ///< of the sending socket, if there is one
  std::optional<std::uint32_t> group;
  const Owner* owner = nullptr;  ///< of its flow; nothing: not known
  bool owner_pending = false;    ///< somebody is finding it out
  std::optional<Headers> about;  ///< parse_error_about()

  friend bool operator==(const Packet&, const Packet&) = default;
};

/// What a packet occupies on the wire.
struct WireSize {
  std::uint32_t frames = 1;  ///< segments or fragments
  ByteCount bytes;           ///< all frames, each with its own headers and the link's overhead
};

/// How frames are carried: as they are; in ATM cells of 53 bytes, of which 48 carry the frame; in PTM's 64/65 coding.
enum class Cells : std::uint8_t { none, atm, ptm };

/// How a link turns IP packets into frames.
struct Framing {
  std::uint32_t mtu = 1500;          ///< largest IP packet
  std::uint32_t overhead = 14;       ///< bytes added to each frame
  std::uint32_t smallest_frame = 0;  ///< mpu: a shorter frame is charged as this
  Cells cells = Cells::none;

  /// What one IP packet of at most `mtu` bytes occupies.
  [[nodiscard]] constexpr std::uint64_t on_wire(std::uint64_t ip_bytes) const {
    std::uint64_t frame = ip_bytes + overhead;
    if (frame < smallest_frame) frame = smallest_frame;
    if (cells == Cells::atm) return (frame + 47) / 48 * 53;
    if (cells == Cells::ptm) return frame + (frame + 63) / 64;
    return frame;
  }

  /// One full frame.
  [[nodiscard]] constexpr ByteCount full_frame() const { return {on_wire(mtu)}; }
};

/// The wire size of `packet`. The kernel does not export the segment size of a super-packet: `segment` is the IP length
/// of its full segments where that was learnt; zero: they fill the MTU. A plain packet above the MTU is counted as the
/// fragments that IP will make of it.
[[nodiscard]] WireSize wire_size(const Packet& packet, const Framing& framing, std::uint32_t segment = 0);

}  // namespace shaper
