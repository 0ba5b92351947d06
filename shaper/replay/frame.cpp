#include "shaper/replay/frame.h"

#include <pcap/dlt.h>

#include <algorithm>

namespace shaper {
namespace {

constexpr std::uint16_t kIpv4 = 0x0800;
constexpr std::uint16_t kIpv6 = 0x86dd;
constexpr std::uint16_t kVlan = 0x8100;
constexpr std::uint16_t kServiceVlan = 0x88a8;
constexpr std::uint16_t kOldServiceVlan = 0x9100;

/// More tags than this are no network that anybody built.
constexpr int kMostTags = 4;

using Bytes = std::span<const std::uint8_t>;

std::optional<std::uint16_t> number_at(Bytes bytes, std::size_t at) {
  if (at + 2 > bytes.size()) return std::nullopt;
  return static_cast<std::uint16_t>((bytes[at] << 8) | bytes[at + 1]);
}

/// The IP header's own idea of the packet's length; zero if it has none.
std::uint32_t length_in_header(Bytes packet) {
  const bool ipv4 = packet[0] >> 4 == 4;
  const std::uint32_t length = number_at(packet, ipv4 ? 2 : 4).value_or(0);
  return ipv4 || length == 0 ? length : length + 40;
}

std::optional<IpPacket> packet_at(std::size_t offset, Bytes captured, std::uint32_t frame_bytes) {
  if (offset >= captured.size() || offset >= frame_bytes) return std::nullopt;
  const Bytes packet = captured.subspan(offset);
  if (packet[0] >> 4 != 4 && packet[0] >> 4 != 6) return std::nullopt;
  const std::uint32_t in_frame = frame_bytes - static_cast<std::uint32_t>(offset);
  const std::uint32_t in_header = length_in_header(packet);
  const std::uint32_t length = in_header == 0 ? in_frame : std::min(in_header, in_frame);
  return IpPacket{packet.first(std::min<std::size_t>(packet.size(), length)), length, in_header, in_frame};
}

/// The packet behind a header whose protocol field is at `type_at`, and behind VLAN tags that follow it.
std::optional<IpPacket> packet_behind(std::size_t type_at, std::size_t header, Bytes captured,
                                      std::uint32_t frame_bytes) {
  std::optional<std::uint16_t> type = number_at(captured, type_at);
  for (int tag = 0; tag < kMostTags && (type == kVlan || type == kServiceVlan || type == kOldServiceVlan); ++tag) {
    type = number_at(captured, header + 2);
    header += 4;
  }
  if (type != kIpv4 && type != kIpv6) return std::nullopt;
  return packet_at(header, captured, frame_bytes);
}

}  // namespace

bool is_known_link_type(int link_type) {
  constexpr int kKnown[] = {DLT_EN10MB, DLT_LINUX_SLL, DLT_LINUX_SLL2, DLT_RAW, DLT_IPV4, DLT_IPV6, DLT_NULL, DLT_LOOP};
  return std::find(std::begin(kKnown), std::end(kKnown), link_type) != std::end(kKnown);
}

std::optional<IpPacket> find_ip_packet(int link_type, Bytes captured, std::uint32_t frame_bytes) {
  switch (link_type) {
    case DLT_EN10MB:
      return packet_behind(12, 14, captured, frame_bytes);
    case DLT_LINUX_SLL:
      return packet_behind(14, 16, captured, frame_bytes);
    case DLT_LINUX_SLL2:
      return packet_behind(0, 20, captured, frame_bytes);
    case DLT_NULL:
    case DLT_LOOP:
      return packet_at(4, captured, frame_bytes);
    case DLT_RAW:
    case DLT_IPV4:
    case DLT_IPV6:
      return packet_at(0, captured, frame_bytes);
    default:
      return std::nullopt;
  }
}

}  // namespace shaper
