// Headers from bytes made by hand, and wire sizes worked out by hand.
#include "shaper/core/packet.h"

#include <gtest/gtest.h>

#include <random>
#include <span>
#include <string>
#include <vector>

namespace shaper {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes operator+(Bytes left, const Bytes& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

Bytes high_low(unsigned value) {
  return {static_cast<std::uint8_t>(value >> 8), static_cast<std::uint8_t>(value & 0xff)};
}

/// IPv4 from 192.0.2.1 to 198.51.100.2, DSCP EF, ECT(0). `position` is the field of flags and fragment offset.
Bytes ipv4(std::uint8_t protocol, unsigned position = 0, std::uint8_t option_words = 0) {
  const auto first = static_cast<std::uint8_t>(0x45 + option_words);
  return Bytes{first, 46 << 2 | 2, 0, 0, 0, 0} + high_low(position) + Bytes{64, protocol, 0, 0} +
         Bytes{192, 0, 2, 1, 198, 51, 100, 2} + Bytes(std::size_t{option_words} * 4, 1);
}

/// IPv6 from 2001:db8::1 to 2001:db8::2, DSCP CS1 (8), CE.
Bytes ipv6(std::uint8_t next) {
  const Bytes network{0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  return Bytes{0x62, 0x3f, 0xff, 0xff, 0, 0, next, 64} + network + Bytes{1} + network + Bytes{2};
}

Bytes extension(std::uint8_t next, std::uint8_t length_field, std::size_t bytes) {
  Bytes header(bytes, 0);
  header[0] = next;
  header[1] = length_field;
  return header;
}

Bytes fragment(std::uint8_t next, unsigned position) {
  return Bytes{next, 0} + high_low(position) + Bytes{0, 0, 0, 7};
}

Bytes tcp(std::uint8_t option_words = 0) {
  Bytes header = high_low(40000) + high_low(443) + Bytes(16 + std::size_t{option_words} * 4, 0);
  header[12] = static_cast<std::uint8_t>((5 + option_words) << 4);
  return header;
}

Bytes prefix(const Bytes& bytes, std::size_t size) {
  return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)};
}

Bytes udp() {
  return high_low(5353) + high_low(53) + Bytes{0, 8, 0, 0};
}

struct ParseCase {
  const char* sentence;
  Bytes bytes;
  Family family;
  std::uint8_t protocol;
  unsigned source_port, destination_port, network_bytes, transport_bytes;
  bool fragment;
};

std::vector<ParseCase> parse_cases() {
  const Family v4 = Family::ipv4;
  const Family v6 = Family::ipv6;
  const Bytes options = extension(kTcp, 1, 16);
  return {
      {"a TCP segment without options", ipv4(kTcp) + tcp(), v4, kTcp, 40000, 443, 20, 20, false},
      {"TCP options count as header", ipv4(kTcp) + tcp(3), v4, kTcp, 40000, 443, 20, 32, false},
      {"IPv4 options shift the ports", ipv4(kTcp, 0, 10) + tcp(10), v4, kTcp, 40000, 443, 60, 60, false},
      {"UDP", ipv4(kUdp) + udp(), v4, kUdp, 5353, 53, 20, 8, false},
      {"UDP-Lite has ports", ipv4(kUdpLite) + udp(), v4, kUdpLite, 5353, 53, 20, 0, false},
      {"DCCP has ports", ipv4(kDccp) + udp(), v4, kDccp, 5353, 53, 20, 0, false},
      {"SCTP has ports", ipv4(kSctp) + udp(), v4, kSctp, 5353, 53, 20, 0, false},
      {"ICMP has none", ipv4(kIcmp) + udp(), v4, kIcmp, 0, 0, 20, 0, false},
      {"an unknown protocol has none", ipv4(200) + udp(), v4, 200, 0, 0, 20, 0, false},
      {"do-not-fragment is no fragment", ipv4(kUdp, 0x4000) + udp(), v4, kUdp, 5353, 53, 20, 8, false},
      {"the first fragment has ports", ipv4(kUdp, 0x2000) + udp(), v4, kUdp, 5353, 53, 20, 8, true},
      {"a middle fragment has no ports", ipv4(kUdp, 0x20b9) + udp(), v4, kUdp, 0, 0, 20, 0, true},
      {"the last fragment has no ports", ipv4(kUdp, 0x00b9) + udp(), v4, kUdp, 0, 0, 20, 0, true},
      {"a TCP header that claims 16 bytes has no length", ipv4(kTcp) + Bytes{1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0x40},
       v4, kTcp, 0x0102, 0x0304, 20, 0, false},
      {"IPv4 options cut off: the protocol is known, the ports are not", prefix(ipv4(kTcp, 0, 5) + tcp(), 30), v4, kTcp,
       0, 0, 40, 0, false},
      {"IPv6 TCP", ipv6(kTcp) + tcp(3), v6, kTcp, 40000, 443, 40, 32, false},
      {"ICMPv6", ipv6(kIcmpv6) + udp(), v6, kIcmpv6, 0, 0, 40, 0, false},
      {"hop-by-hop options", ipv6(0) + options + tcp(), v6, kTcp, 40000, 443, 56, 20, false},
      {"routing header", ipv6(43) + options + tcp(), v6, kTcp, 40000, 443, 56, 20, false},
      {"destination options", ipv6(60) + options + tcp(), v6, kTcp, 40000, 443, 56, 20, false},
      {"mobility header", ipv6(135) + options + tcp(), v6, kTcp, 40000, 443, 56, 20, false},
      {"HIP", ipv6(139) + options + tcp(), v6, kTcp, 40000, 443, 56, 20, false},
      {"shim6", ipv6(140) + options + tcp(), v6, kTcp, 40000, 443, 56, 20, false},
      {"AH counts its length in words", ipv6(51) + extension(kUdp, 4, 24) + udp(), v6, kUdp, 5353, 53, 64, 8, false},
      {"a chain of three and a first fragment",
       ipv6(0) + extension(43, 0, 8) + extension(60, 0, 8) + extension(44, 0, 8) + fragment(kUdp, 1) + udp(), v6, kUdp,
       5353, 53, 72, 8, true},
      {"an atomic fragment is whole", ipv6(44) + fragment(kUdp, 0) + udp(), v6, kUdp, 5353, 53, 48, 8, false},
      {"a later IPv6 fragment has no ports", ipv6(44) + fragment(kUdp, 0x05a9) + udp(), v6, kUdp, 0, 0, 48, 0, true},
      {"the last IPv6 fragment has no ports", ipv6(44) + fragment(kUdp, 0x05a8) + udp(), v6, kUdp, 0, 0, 48, 0, true},
      {"ESP hides the rest", ipv6(50) + tcp(), v6, 50, 0, 0, 40, 0, false},
      {"no next header", ipv6(59) + tcp(), v6, 59, 0, 0, 40, 0, false},
      {"an extension longer than the packet", ipv6(60) + extension(kTcp, 255, 8), v6, kTcp, 0, 0, 2088, 0, false},
      {"a chain that leaves the packet has no protocol", ipv6(60) + extension(43, 255, 8), v6, 0, 0, 0, 2088, 0, false},
  };
}

TEST(ParseHeaders, ReadsEveryKindOfPacket) {
  for (const ParseCase& expected : parse_cases()) {
    SCOPED_TRACE(expected.sentence);
    const Headers headers = parse_headers(expected.bytes);
    EXPECT_EQ(headers.family, expected.family);
    EXPECT_EQ(headers.protocol, expected.protocol);
    EXPECT_EQ(headers.source_port, expected.source_port);
    EXPECT_EQ(headers.destination_port, expected.destination_port);
    EXPECT_EQ(headers.network_bytes, expected.network_bytes);
    EXPECT_EQ(headers.transport_bytes, expected.transport_bytes);
    EXPECT_EQ(headers.fragment, expected.fragment);
  }
}

TEST(ParseHeaders, ReadsAddressesAndTrafficClass) {
  const Headers v4 = parse_headers(ipv4(kUdp) + udp());
  EXPECT_EQ(v4.source, (Address{192, 0, 2, 1}));
  EXPECT_EQ(v4.destination, (Address{198, 51, 100, 2}));
  EXPECT_EQ(v4.dscp, 46);
  EXPECT_EQ(v4.ecn, 2);

  const Headers v6 = parse_headers(ipv6(kUdp) + udp());
  EXPECT_EQ(v6.source, (Address{0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(v6.destination, (Address{0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}));
  EXPECT_EQ(v6.dscp, 8);
  EXPECT_EQ(v6.ecn, 3);
}

TEST(ParseHeaders, LeavesEverythingAtZeroWhenThereIsNoIpHeader) {
  const std::pair<const char*, Bytes> cases[] = {
      {"nothing", {}},
      {"one byte", {0x45}},
      {"an IPv4 header that is one byte short", prefix(ipv4(kTcp), 19)},
      {"an IPv6 header that is one byte short", prefix(ipv6(kTcp), 39)},
      {"an IPv4 header that claims 16 bytes", Bytes{0x44} + Bytes(40, 1)},
      {"version 5", Bytes{0x55} + Bytes(60, 1)},
      {"version 0", Bytes(60, 0)},
  };
  for (const auto& [sentence, bytes] : cases) EXPECT_EQ(parse_headers(bytes), Headers{}) << sentence;
}

TEST(ParseErrorAbout, IsTheQuotedFlowTheOtherWayRound) {
  const auto about = [](const Bytes& bytes) { return parse_error_about(bytes, parse_headers(bytes)); };
  const auto icmp = [](std::uint8_t type) { return Bytes{type, 0, 0, 0, 0, 0, 0, 0}; };
  const Headers sent4 = parse_headers(ipv4(kTcp) + tcp());
  const Headers sent6 = parse_headers(ipv6(kUdp) + udp());
  const Headers tcp4{sent4.destination, sent4.source, 443, 40000, Family::ipv4, kTcp};
  const Headers udp6{sent6.destination, sent6.source, 53, 5353, Family::ipv6, kUdp};

  for (const std::uint8_t type : Bytes{3, 4, 5, 11, 12}) {
    EXPECT_EQ(about(ipv4(kIcmp) + icmp(type) + ipv4(kTcp) + prefix(tcp(), 8)), tcp4) << int{type};
  }
  for (const std::uint8_t type : Bytes{1, 2, 3, 4, 127}) {
    EXPECT_EQ(about(ipv6(kIcmpv6) + icmp(type) + ipv6(kUdp) + udp()), udp6) << int{type};
  }
  EXPECT_EQ(about(ipv6(0) + extension(kIcmpv6, 0, 8) + icmp(1) + ipv6(kUdp) + udp()), udp6);

  EXPECT_EQ(about(ipv4(kIcmp) + icmp(8) + ipv4(kTcp) + tcp()), std::nullopt) << "an echo request";
  EXPECT_EQ(about(ipv6(kIcmpv6) + icmp(128) + ipv6(kUdp) + udp()), std::nullopt) << "an echo request";
  EXPECT_EQ(about(ipv4(kUdp) + icmp(3) + ipv4(kTcp) + tcp()), std::nullopt) << "no ICMP";
  EXPECT_EQ(about(ipv4(kIcmp) + icmp(3) + ipv6(kUdp) + udp()), std::nullopt) << "another family";
  EXPECT_EQ(about(ipv4(kIcmp, 7) + icmp(3) + ipv4(kTcp) + tcp()), std::nullopt) << "a later fragment";
  EXPECT_EQ(about(ipv4(kIcmp) + icmp(3) + prefix(ipv4(kTcp), 19)), std::nullopt) << "cut short";
  EXPECT_EQ(about(ipv4(kIcmp) + prefix(icmp(3), 7)), std::nullopt) << "cut short";
}

// Each prefix lives in memory of exactly its size, so a sanitizer sees a byte read too far.
TEST(ParseHeaders, SaysOfAPrefixOnlyWhatTheWholePacketSays) {
  for (const ParseCase& whole : parse_cases()) {
    const Headers all = parse_headers(whole.bytes);
    for (std::size_t size = 0; size < whole.bytes.size(); ++size) {
      SCOPED_TRACE(std::string(whole.sentence) + ", first bytes: " + std::to_string(size));
      const Headers some = parse_headers(prefix(whole.bytes, size));
      EXPECT_TRUE(some.family == Family::other || some.source == all.source);
      EXPECT_TRUE(some.protocol == 0 || some.protocol == all.protocol);
      EXPECT_TRUE(some.source_port == 0 || some.source_port == all.source_port);
      EXPECT_TRUE(some.destination_port == 0 || some.destination_port == all.destination_port);
      EXPECT_LE(some.network_bytes, all.network_bytes);
      EXPECT_TRUE(some.transport_bytes == 0 || some.transport_bytes == all.transport_bytes);
    }
  }
}

TEST(ParseHeaders, SurvivesAnEndlessChainOfExtensions) {
  Bytes bytes = ipv6(60);
  for (int i = 0; i < 100; ++i) bytes = bytes + extension(60, 255, 2048);
  const Headers headers = parse_headers(bytes);
  EXPECT_EQ(headers.protocol, 0);
  EXPECT_EQ(headers.network_bytes, 40 + 16 * 2048);
}

Packet packet(Family family, unsigned network, unsigned transport, std::uint32_t length, bool super) {
  Packet made;
  made.headers.family = family;
  made.headers.network_bytes = static_cast<std::uint16_t>(network);
  made.headers.transport_bytes = static_cast<std::uint16_t>(transport);
  made.ip_bytes = length;
  made.super = super;
  return made;
}

struct WireCase {
  const char* sentence;
  Packet packet;
  Framing framing;
  std::uint32_t frames;
  std::uint64_t bytes;
  std::uint32_t segment = 0;
};

void check_wire_sizes(std::span<const WireCase> cases) {
  for (const WireCase& expected : cases) {
    SCOPED_TRACE(expected.sentence);
    const WireSize size = wire_size(expected.packet, expected.framing, expected.segment);
    EXPECT_EQ(size.frames, expected.frames);
    EXPECT_EQ(size.bytes.value, expected.bytes);
  }
}

TEST(WireSize, IsWhatWasWorkedOutByHand) {
  const Family v4 = Family::ipv4;
  const Family v6 = Family::ipv6;
  const Framing ethernet{.mtu = 1500, .overhead = 14, .smallest_frame = 0};
  const Framing padded{.mtu = 1500, .overhead = 38, .smallest_frame = 84};
  const Framing bare{.mtu = 1500, .overhead = 0, .smallest_frame = 0};
  const WireCase cases[] = {
      {"a small packet: 100 + 14", packet(v4, 20, 32, 100, false), ethernet, 1, 114},
      {"a full frame: 1500 + 14", packet(v4, 20, 32, 1500, false), ethernet, 1, 1514},
      {"a small packet is charged as the smallest frame", packet(v4, 20, 8, 40, false), padded, 1, 84},
      {"one byte above the smallest frame", packet(v4, 20, 8, 47, false), padded, 1, 85},
      {"45 full segments of 1448: 45 x 1500 + 45 x 14", packet(v4, 20, 32, 65212, true), ethernet, 45, 68130},
      {"1448 + 100 of payload: 1500 + 152 + 2 x 14", packet(v4, 20, 32, 1600, true), ethernet, 2, 1680},
      {"the last segment has one byte: 1500 + 38, 53 + 38", packet(v4, 20, 32, 1501, true), padded, 2, 1538 + 91},
      {"a last segment below the smallest frame: 1500, 53 as 84",
       packet(v4, 20, 32, 1501, true),
       {.mtu = 1500, .overhead = 0, .smallest_frame = 84},
       2,
       1584},
      {"a super-packet that fits one frame", packet(v4, 20, 32, 1500, true), ethernet, 1, 1514},
      {"IPv6 BIG TCP: 129 x 1500 + 80 + 130 x 14", packet(v6, 40, 32, 184292, true), ethernet, 130, 195400},
      {"the same with the jumbo header that the kernel takes out again", packet(v6, 48, 32, 184300, true), ethernet,
       130, 195400},
      {"UDP_SEGMENT: 8 x 1500 + 28 + 224 + 9 x 14", packet(v4, 20, 8, 12028, true), ethernet, 9, 12378},
      {"IPv4 fragments: 8028 + 5 x 20 + 6 x 14", packet(v4, 20, 8, 8028, false), ethernet, 6, 8212},
      {"1491 - 20 holds 183 x 8 bytes, not 1471: 3000 + 2 x 20",
       packet(v4, 20, 8, 3000, false),
       {.mtu = 1491, .overhead = 0, .smallest_frame = 0},
       3,
       3040},
      {"IPv4 options are repeated: 3024 + 2 x 24", packet(v4, 24, 8, 3024, false), bare, 3, 3072},
      {"IPv6 fragments: 8048 + 6 x 8 + 5 x 40 + 6 x 14", packet(v6, 40, 8, 8048, false), ethernet, 6, 8380},
      {"one byte above the MTU, IPv4", packet(v4, 20, 8, 1501, false), bare, 2, 1521},
      {"one byte above the MTU, IPv6", packet(v6, 40, 8, 1501, false), bare, 2, 1557},
      {"not IP: nobody cuts it", packet(Family::other, 0, 0, 3000, false), ethernet, 1, 3014},
      {"unreadable headers: nothing is repeated", packet(Family::other, 0, 0, 3000, true), ethernet, 2, 3028},
      {"length 0", packet(v4, 20, 8, 0, false), ethernet, 1, 14},
      {"length 0 and super", packet(v4, 20, 8, 0, true), ethernet, 1, 14},
      {"MTU 0", packet(v4, 20, 8, 1500, false), {.mtu = 0, .overhead = 14, .smallest_frame = 0}, 1, 1514},
      {"MTU 0 and super", packet(v4, 20, 8, 1500, true), {.mtu = 0, .overhead = 14, .smallest_frame = 0}, 1, 1514},
      {"an MTU that only holds the headers",
       packet(v4, 20, 20, 100, true),
       {.mtu = 40, .overhead = 0, .smallest_frame = 0},
       1,
       100},
      {"an MTU with room for 7 bytes: no fragment fits",
       packet(v4, 20, 8, 100, false),
       {.mtu = 27, .overhead = 0, .smallest_frame = 0},
       1,
       100},
      {"headers that claim more than the packet has",
       packet(v4, 60, 60, 90, true),
       {.mtu = 80, .overhead = 0, .smallest_frame = 0},
       1,
       90},
  };
  check_wire_sizes(cases);
}

TEST(WireSize, CutsASuperPacketByTheSegmentThatWasLearnt) {
  const Family v4 = Family::ipv4;
  const Family v6 = Family::ipv6;
  const Framing ethernet{.mtu = 1500, .overhead = 14, .smallest_frame = 0};
  const Framing padded{.mtu = 1500, .overhead = 38, .smallest_frame = 84};
  const WireCase cases[] = {
      {"MSS 536, ten segments: 10 x (576 + 14)", packet(v4, 20, 20, 5400, true), ethernet, 10, 5900, 576},
      {"MSS 536 with timestamps carries 524: 4 x (576 + 14)", packet(v4, 20, 32, 2148, true), ethernet, 4, 2360, 576},
      {"MSS 536, the last segment has 100: 10 x 590 + 140 + 14", packet(v4, 20, 20, 5500, true), ethernet, 11, 6054,
       576},
      {"the last segment has one byte and is padded: 2 x (576 + 38) + 84", packet(v4, 20, 20, 1113, true), padded, 3,
       1312, 576},
      {"two segments that fit one MTU are two: 2 x 590", packet(v4, 20, 20, 1112, true), ethernet, 2, 1180, 576},
      {"one segment that is not full", packet(v4, 20, 20, 500, true), ethernet, 1, 514, 576},
      {"one full segment", packet(v4, 20, 20, 576, true), ethernet, 1, 590, 576},
      {"one byte above: 590 + 41 + 14", packet(v4, 20, 20, 577, true), ethernet, 2, 645, 576},
      {"UDP of 1200: 5 x (1228 + 14)", packet(v4, 20, 8, 6028, true), ethernet, 5, 6210, 1228},
      {"UDP of 1200, the last has one byte: 5 x 1242 + 29 + 14", packet(v4, 20, 8, 6029, true), ethernet, 6, 6253,
       1228},
      {"IPv6, UDP of 1200: 5 x (1248 + 14)", packet(v6, 40, 8, 6048, true), ethernet, 5, 6310, 1248},
      {"IPv6 at the smallest MTU: 20 x (1280 + 14)", packet(v6, 40, 20, 24460, true), ethernet, 20, 25880, 1280},
      {"BIG TCP: 150 x (1280 + 14)", packet(v6, 40, 32, 181272, true), ethernet, 150, 194100, 1280},
      {"BIG TCP with the jumbo header, which no segment has", packet(v6, 48, 32, 181280, true), ethernet, 150, 194100,
       1280},
      {"a segment above the MTU is not sent: 1514 + 152 + 14", packet(v4, 20, 32, 1600, true), ethernet, 2, 1680, 9000},
      {"a segment of the MTU is what is assumed anyway", packet(v4, 20, 32, 1600, true), ethernet, 2, 1680, 1500},
      {"a segment as short as the headers is not of this packet", packet(v4, 20, 32, 1600, true), ethernet, 2, 1680,
       52},
      {"one byte of payload each: 1548 x (53 + 14)", packet(v4, 20, 32, 1600, true), ethernet, 1548, 103716, 53},
      {"a plain packet has no segments", packet(v4, 20, 20, 1500, false), ethernet, 1, 1514, 576},
      {"nor has a datagram that IP cuts: 8028 + 5 x 20 + 6 x 14", packet(v4, 20, 8, 8028, false), ethernet, 6, 8212,
       576},
      {"unreadable headers: 3000 in 576 each", packet(Family::other, 0, 0, 3000, true), ethernet, 6, 3084, 576},
      {"an MTU below the headers: one frame",
       packet(v4, 20, 32, 1600, true),
       {.mtu = 40, .overhead = 0, .smallest_frame = 0},
       1,
       1600,
       576},
  };
  check_wire_sizes(cases);
}

TEST(WireSize, CountsCells) {
  const Family v4 = Family::ipv4;
  const Family v6 = Family::ipv6;
  const Framing atm{.mtu = 1500, .overhead = 40, .smallest_frame = 0, .cells = Cells::atm};  // PPPoE over LLC/SNAP
  const Framing small_atm{.mtu = 1500, .overhead = 10, .smallest_frame = 97, .cells = Cells::atm};
  const Framing ptm{.mtu = 1500, .overhead = 30, .smallest_frame = 0, .cells = Cells::ptm};  // PPPoE
  const Framing small_ptm{.mtu = 1500, .overhead = 30, .smallest_frame = 64, .cells = Cells::ptm};
  const WireCase cases[] = {
      {"ATM, an ACK of 40: 80 in 2 cells of 48", packet(v4, 20, 20, 40, false), atm, 1, 106},
      {"ATM, 96 fill 2 cells", packet(v4, 20, 20, 56, false), atm, 1, 106},
      {"ATM, 97 need a third", packet(v4, 20, 20, 57, false), atm, 1, 159},
      {"ATM, a full frame: 1540 in 33 cells", packet(v4, 20, 20, 1500, false), atm, 1, 1749},
      {"ATM, 2 full segments and 100: 2 x 1749, 192 in 4 cells", packet(v4, 20, 32, 3048, true), atm, 3, 3710},
      {"ATM, MSS 536: 616 in 13 cells, ten times", packet(v4, 20, 20, 5400, true), atm, 10, 6890, 576},
      {"ATM, fragments: 5 x 1749, 668 in 14 cells", packet(v4, 20, 8, 8028, false), atm, 6, 9487},
      {"ATM, IPv6 fragments: 5 x (1496 + 40 in 32 cells), 808 + 40 in 18", packet(v6, 40, 8, 8048, false), atm, 6,
       9434},
      {"ATM, the smallest frame comes before the cells: 97 in 3", packet(v4, 20, 8, 28, false), small_atm, 1, 159},
      {"PTM, a full frame: 1530 and one more for each begun 64", packet(v4, 20, 20, 1500, false), ptm, 1, 1554},
      {"PTM, 64 are 65", packet(v4, 20, 8, 34, false), ptm, 1, 65},
      {"PTM, 65 are 67", packet(v4, 20, 8, 35, false), ptm, 1, 67},
      {"PTM, 2 full segments and 100: 2 x 1554, 182 + 3", packet(v4, 20, 32, 3048, true), ptm, 3, 3293},
      {"PTM, the smallest frame comes before the coding: 64 are 65", packet(v4, 20, 8, 28, false), small_ptm, 1, 65},
  };
  check_wire_sizes(cases);
  EXPECT_EQ(atm.full_frame().value, 1749U);
  EXPECT_EQ(ptm.full_frame().value, 1554U);
}

TEST(WireSize, LiesBetweenThePacketAndItsNumberOfFullFrames) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&random](std::uint32_t bound) { return static_cast<std::uint32_t>(random() % bound); };
  for (int i = 0; i < 20'000; ++i) {
    const Family family = below(2) == 0 ? Family::ipv4 : Family::ipv6;
    const unsigned network = family == Family::ipv4 ? 20 + 4 * below(11) : 40;
    const Packet some = packet(family, network, 20 + 4 * below(11), 200 + below(200'000), below(2) == 0);
    const Framing framing{.mtu = 576 + below(9000),
                          .overhead = below(60),
                          .smallest_frame = below(90),
                          .cells = static_cast<Cells>(below(3))};
    const std::uint32_t segment = below(2) == 0 ? 0 : below(10'000);
    const WireSize size = wire_size(some, framing, segment);
    EXPECT_GE(size.bytes.value, std::uint64_t{some.ip_bytes} + size.frames * framing.overhead);
    EXPECT_TRUE(size.frames == 1 || size.bytes.value <= size.frames * framing.full_frame().value);
    EXPECT_GE(std::uint64_t{size.frames} * framing.mtu, some.ip_bytes);
  }
}

}  // namespace
}  // namespace shaper
