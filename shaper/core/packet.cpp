// Headers in, wire size out. Everything that is read was checked to be captured; a packet that was cut short, or that
// lies about its own lengths, leaves the fields behind that point at zero.
//
// Formats: RFC 791 (IPv4), RFC 792 (ICMP), RFC 8200 (IPv6), RFC 4443 (ICMPv6), RFC 4302 (AH), RFC 6275 (mobility), RFC
// 7401 (HIP), RFC 5533 (shim6).
#include "shaper/core/packet.h"

#include <algorithm>
#include <cstddef>

namespace shaper {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::size_t kIpv4Bytes = 20;
constexpr std::size_t kIpv6Bytes = 40;
constexpr std::uint32_t kFragmentHeaderBytes = 8;
constexpr std::uint32_t kFragmentUnit = 8;  // all fragments but the last carry a multiple of this
constexpr std::uint16_t kUdpBytes = 8;
constexpr std::size_t kSmallestTcpBytes = 20;
constexpr std::size_t kIcmpBytes = 8;
// More extension headers than anybody sends; the sum of their lengths then fits 16 bits.
constexpr int kMostExtensions = 16;

// IANA numbers of the IPv6 extension headers.
constexpr std::uint8_t kHopByHop = 0;
constexpr std::uint8_t kRouting = 43;
constexpr std::uint8_t kFragment = 44;
constexpr std::uint8_t kAuthentication = 51;
constexpr std::uint8_t kDestinationOptions = 60;
constexpr std::uint8_t kMobility = 135;
constexpr std::uint8_t kHip = 139;
constexpr std::uint8_t kShim6 = 140;

std::uint16_t be16(Bytes bytes, std::size_t at) {
  return static_cast<std::uint16_t>(bytes[at] << 8 | bytes[at + 1]);
}

void read_traffic_class(std::uint8_t traffic_class, Headers& headers) {
  headers.dscp = static_cast<std::uint8_t>(traffic_class >> 2);
  headers.ecn = traffic_class & 3;
}

/// Ports and header length of the transport protocol, which begins behind network_bytes.
void read_transport(Bytes captured, Headers& headers) {
  const std::size_t begin = headers.network_bytes;
  if (captured.size() < begin + 4) return;
  switch (headers.protocol) {
    case kTcp:
      if (captured.size() > begin + 12) {
        const std::size_t length = std::size_t{captured[begin + 12]} >> 4 << 2;
        if (length >= kSmallestTcpBytes) headers.transport_bytes = static_cast<std::uint16_t>(length);
      }
      break;
    case kUdp:
      headers.transport_bytes = kUdpBytes;
      break;
    case kUdpLite:
    case kDccp:
    case kSctp:
      break;
    default:
      return;
  }
  headers.source_port = be16(captured, begin);
  headers.destination_port = be16(captured, begin + 2);
}

Headers parse_ipv4(Bytes captured) {
  Headers headers;
  const std::size_t length = (std::size_t{captured[0]} & 0x0f) << 2;
  if (length < kIpv4Bytes) return headers;
  headers.family = Family::ipv4;
  read_traffic_class(captured[1], headers);
  headers.protocol = captured[9];
  headers.network_bytes = static_cast<std::uint16_t>(length);
  std::copy_n(captured.begin() + 12, 4, headers.source.begin());
  std::copy_n(captured.begin() + 16, 4, headers.destination.begin());
  const std::uint16_t position = be16(captured, 6);
  headers.fragment = (position & 0x3fff) != 0;  // an offset, or more to come
  if ((position & 0x1fff) == 0) read_transport(captured, headers);
  return headers;
}

bool is_extension(std::uint8_t next) {
  switch (next) {
    case kHopByHop:
    case kRouting:
    case kFragment:
    case kAuthentication:
    case kDestinationOptions:
    case kMobility:
    case kHip:
    case kShim6:
      return true;
    default:
      return false;
  }
}

/// `units` is the length field of an extension header that is not a fragment header.
std::size_t extension_bytes(std::uint8_t type, std::size_t units) {
  return type == kAuthentication ? (units + 2) * 4 : (units + 1) * 8;
}

/// Walks to the transport header; sets protocol, network_bytes and fragment. True if the transport header is here.
bool walk_extensions(Bytes captured, std::uint8_t next, Headers& headers) {
  std::size_t at = kIpv6Bytes;
  bool first_part = true;
  for (int i = 0; i < kMostExtensions && is_extension(next) && first_part; ++i) {
    if (captured.size() < at + kFragmentHeaderBytes) break;  // the shortest extension header
    const std::uint8_t type = next;
    next = captured[at];
    if (type == kFragment) {
      const std::uint16_t position = be16(captured, at + 2);
      headers.fragment = (position & 0xfff9) != 0;  // an "atomic" fragment is whole
      first_part = position < kFragmentUnit;        // the offset begins at bit 3
      at += kFragmentHeaderBytes;
    } else {
      at += extension_bytes(type, captured[at + 1]);
    }
  }
  headers.network_bytes = static_cast<std::uint16_t>(at);
  if (is_extension(next)) return false;  // cut short: what comes behind is not known
  headers.protocol = next;
  return first_part;
}

Headers parse_ipv6(Bytes captured) {
  Headers headers;
  headers.family = Family::ipv6;
  read_traffic_class(static_cast<std::uint8_t>((captured[0] & 0x0f) << 4 | captured[1] >> 4), headers);
  std::copy_n(captured.begin() + 8, 16, headers.source.begin());
  std::copy_n(captured.begin() + 24, 16, headers.destination.begin());
  if (walk_extensions(captured, captured[6], headers)) read_transport(captured, headers);
  return headers;
}

/// Unreachable, source quench, redirect, time exceeded, parameter problem; ICMPv6 has all errors below 128.
bool is_icmp_error(std::uint8_t protocol, std::uint8_t type) {
  if (protocol == kIcmpv6) return type < 128;
  return protocol == kIcmp && (type == 3 || type == 4 || type == 5 || type == 11 || type == 12);
}

/// How a packet is cut: all frames but the last have the size `full`, each but the first repeats `repeated` bytes, each
/// has `added` bytes that the whole packet had not, and `room` of what is cut fits each.
struct Cut {
  std::uint32_t room = 0;  ///< zero: cannot be cut
  std::uint32_t repeated = 0;
  std::uint32_t added = 0;
};

std::uint32_t difference_or_zero(std::uint32_t a, std::uint32_t b) {
  return a > b ? a - b : 0;
}

/// A hop-by-hop header that Linux (5.19 and later) puts into super-packets above 64 KiB, and removes when it cuts them.
std::uint32_t jumbo_bytes(const Packet& packet) {
  constexpr std::uint32_t kJumboHeaderBytes = 8;
  const bool has_one = packet.headers.family == Family::ipv6 && packet.ip_bytes > kIpv6Bytes + 65535 &&
                       packet.headers.network_bytes >= kIpv6Bytes + kJumboHeaderBytes;
  return has_one ? kJumboHeaderBytes : 0;
}

/// A learnt `segment` that does not even hold the headers cannot be of this packet: then segments fill the MTU.
Cut segments(const Headers& headers, std::uint32_t jumbo, std::uint32_t mtu, std::uint32_t segment) {
  const std::uint32_t header = std::uint32_t{headers.network_bytes} + headers.transport_bytes - jumbo;
  const std::uint32_t full = segment > header ? std::min(segment, mtu) : mtu;
  return {.room = difference_or_zero(full, header), .repeated = header, .added = 0};
}

Cut fragments(const Headers& headers, std::uint32_t mtu) {
  switch (headers.family) {
    case Family::ipv4: {
      const std::uint32_t room = difference_or_zero(mtu, headers.network_bytes);
      return {.room = room / kFragmentUnit * kFragmentUnit, .repeated = headers.network_bytes, .added = 0};
    }
    case Family::ipv6: {
      const std::uint32_t room = difference_or_zero(mtu, kIpv6Bytes + kFragmentHeaderBytes);
      return {.room = room / kFragmentUnit * kFragmentUnit, .repeated = kIpv6Bytes, .added = kFragmentHeaderBytes};
    }
    case Family::other:
      break;
  }
  return {};
}

}  // namespace

Headers parse_headers(std::span<const std::uint8_t> captured) {
  if (captured.empty()) return {};
  const int version = captured[0] >> 4;
  if (version == 4 && captured.size() >= kIpv4Bytes) return parse_ipv4(captured);
  if (version == 6 && captured.size() >= kIpv6Bytes) return parse_ipv6(captured);
  return {};
}

std::optional<Headers> parse_error_about(Bytes captured, const Headers& headers) {
  if (headers.protocol != kIcmp && headers.protocol != kIcmpv6) return std::nullopt;
  const std::size_t begin = headers.network_bytes;
  if (headers.fragment || captured.size() < begin + kIcmpBytes) return std::nullopt;
  if (!is_icmp_error(headers.protocol, captured[begin])) return std::nullopt;
  const Headers quoted = parse_headers(captured.subspan(begin + kIcmpBytes));
  if (quoted.family != headers.family) return std::nullopt;
  Headers about;
  about.source = quoted.destination;
  about.destination = quoted.source;
  about.source_port = quoted.destination_port;
  about.destination_port = quoted.source_port;
  about.family = quoted.family;
  about.protocol = quoted.protocol;
  return about;
}

WireSize wire_size(const Packet& packet, const Framing& framing, std::uint32_t segment) {
  // (A super-packet below the MTU may still be several frames: segments of a small MSS.)
  if (!packet.super && packet.ip_bytes <= framing.mtu)
    return {.frames = 1, .bytes = {framing.on_wire(packet.ip_bytes)}};
  const std::uint32_t jumbo = packet.super ? jumbo_bytes(packet) : 0;
  const std::uint32_t length = packet.ip_bytes - jumbo;
  const Cut cut =
      packet.super ? segments(packet.headers, jumbo, framing.mtu, segment) : fragments(packet.headers, framing.mtu);
  // An MTU that does not even hold the headers, or headers longer than the packet: nothing that a link sends. One
  // frame.
  if (cut.room == 0 || length <= cut.repeated) return {.frames = 1, .bytes = {framing.on_wire(length)}};
  const std::uint32_t payload = length - cut.repeated;
  const std::uint32_t full_frames = (payload - 1) / cut.room;
  const std::uint32_t last = payload - full_frames * cut.room;
  const std::uint64_t each = std::uint64_t{cut.repeated} + cut.added;
  const std::uint64_t bytes = full_frames * framing.on_wire(each + cut.room) + framing.on_wire(each + last);
  return {.frames = full_frames + 1, .bytes = {bytes}};
}

}  // namespace shaper
