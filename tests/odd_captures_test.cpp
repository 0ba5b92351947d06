// Captures as they are met: each is replayed and its oddities are told, or it is refused with a word about what and
// where.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "shaper/model/config.h"
#include "shaper/replay/replay_capture.h"
#include "tests/capture_writer.h"

namespace shaper {
namespace {

using namespace captures;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// LINKTYPE_* of pcap-linktype(7).
constexpr std::uint32_t kNull = 0, kEthernet = 1, kRaw = 101, kWifi = 105, kLoop = 108, kCooked = 113, kIpv4 = 228,
                        kIpv6 = 229, kCooked2 = 276;

constexpr std::string_view kPolicy = R"(
version = 1
[[link]]
name = "up"
interface = "eth0"
)";

struct Replayed {
  std::uint64_t packets = 0;
  std::uint64_t ip_bytes = 0;
  std::vector<std::string> warnings;
  std::string log;
};

tl::expected<Replayed, std::string> try_replay(const Bytes& file) {
  InputFile input(::fmemopen(const_cast<char*>(file.data()), file.size(), "rb"));
  auto capture = Capture::read(std::move(input), "odd");
  if (!capture) return tl::unexpected(capture.error());
  const auto parsed = parse_policy(kPolicy, "test.toml");
  std::ostringstream log;
  ReplayOptions options;
  options.events = &log;
  const auto result = replay_capture(*capture, parsed->policy, options);
  if (!result) return tl::unexpected(result.error());
  const ClassReport& all = result->status.classes.at(0);
  EXPECT_EQ(all.sent_packets, result->ip_packets);
  return Replayed{result->ip_packets, all.sent_bytes.value, result->status.warnings, log.str()};
}

Replayed replay(const Bytes& file) {
  const auto replayed = try_replay(file);
  EXPECT_TRUE(replayed) << replayed.error();
  return replayed.value_or(Replayed{});
}

std::string error_of(const Bytes& file) {
  const auto replayed = try_replay(file);
  EXPECT_FALSE(replayed);
  return replayed ? "" : replayed.error();
}

const Bytes kDatagram = ipv4(udp(72));  // 100 bytes

TEST(OddCapture, EveryPacketCountsAsWhatItIs) {
  const Bytes vlan = number(0x81000064, 4);
  const Bytes service = number(0x88a800c8, 4);
  const Bytes old_service = number(0x910000c8, 4);
  const Bytes hop_by_hop = number(60, 1) + zeros(7);
  const Bytes destination = number(17, 1) + zeros(7);
  const Bytes atomic = number(17, 1) + zeros(7);
  struct Case {
    const char* name;
    std::vector<Record> records;
    std::uint64_t packets;
    std::uint64_t bytes;
    const char* logged;
    std::vector<std::string> warnings = {};
  };
  const Case cases[] = {
      {"padding", {{ethernet(ipv4(udp(2)), {}, 16)}}, 1, 30, "40000 > 10.0.0.2:9 bytes=30 headers=20+8\n"},
      {"padding behind a tag", {{ethernet(ipv4(udp(2)), vlan, 16)}}, 1, 30, " bytes=30 headers=20+8\n"},
      {"a VLAN", {{ethernet(kDatagram, vlan)}}, 1, 100, ":40000 > 10.0.0.2:9 bytes=100 headers=20+8\n"},
      {"two VLANs", {{ethernet(kDatagram, service + vlan)}}, 1, 100, ":40000 > 10.0.0.2:9 bytes=100 "},
      {"two VLANs of old", {{ethernet(kDatagram, old_service + vlan)}}, 1, 100, ":40000 > 10.0.0.2:9 bytes=100 "},
      {"IP options", {{ethernet(ipv4(udp(72), {zeros(8)}))}}, 1, 108, ":40000 > 10.0.0.2:9 bytes=108 headers=28+8\n"},
      {"extension headers",
       {{ethernet(ipv6(0, hop_by_hop + destination + udp(72)))}},
       1,
       136,
       "udp [2001:db8::1]:40000 > [2001:db8::2]:9 bytes=136 headers=56+8\n"},
      {"an atomic fragment", {{ethernet(ipv6(44, atomic + udp(72)))}}, 1, 128, "::2]:9 bytes=128 headers=48+8\n"},
      {"fragments",
       {{ethernet(ipv4(udp(72), {{}, 0x2000}))}, {ethernet(ipv4(zeros(40), {{}, 10}))}},
       2,
       160,
       "udp 10.0.0.1:0 > 10.0.0.2:0 bytes=60 headers=20+0 fragment\n"},
      {"a short snap length",
       {{ethernet(kDatagram).substr(0, 42), 0, 114}},
       1,
       100,
       ":40000 > 10.0.0.2:9 bytes=100 headers=20+8\n"},
      {"a snap length that ends before the ports",
       {{ethernet(kDatagram).substr(0, 36), 0, 114}, {ethernet(kDatagram).substr(0, 36), 0, 114}},
       2,
       200,
       "udp 10.0.0.1:0 > 10.0.0.2:0 bytes=100 headers=20+0\n",
       {"2 packets, the first is packet 1: captured without all of its headers (snap length); ports may be missing"}},
      {"a snap length that ends in extension headers",
       {{ethernet(ipv6(0, hop_by_hop + destination + udp(72))).substr(0, 64), 0, 150}},
       1,
       136,
       " bytes=136 headers=48+0\n",
       {"packet 1: captured without all of its headers (snap length); ports may be missing"}},
      {"a snap length that ends in the IP header",
       {{ethernet(kDatagram).substr(0, 24), 0, 114}},
       0,
       0,
       "start ",
       {"packet 1: an IP header that is cut short or wrong; left out"}},
      {"a snap length that ends before IP",
       {{ethernet(kDatagram).substr(0, 13), 0, 114}},
       0,
       0,
       "start ",
       {"packet 1: no IP, or cut short before it; left out"}},
      {"an IP length beyond the frame",
       {{ethernet(kDatagram)}, {ethernet(ipv4(udp(72), {{}, 0, 1000}))}},
       2,
       200,
       " bytes=100 ",
       {"packet 2: an IP length beyond the end of the frame; the frame's length counts"}},
      {"an IP length before the end of the frame",
       {{ethernet(ipv4(udp(72), {{}, 0, 90}))}},
       1,
       90,
       " bytes=90 ",
       {"packet 1: more in the frame than the IP packet; the packet's length counts"}},
      {"an IP length that does not hold its own header",
       {{ethernet(ipv4(udp(72), {{}, 0, 5}))}},
       0,
       0,
       "start ",
       {"packet 1: an IP header that is cut short or wrong; left out"}},
      {"ARP and neighbour discovery",
       {{zeros(12) + number(0x0806, 2) + zeros(46)}, {ethernet(ipv6(58, number(135, 1) + zeros(23)))}},
       0,
       0,
       "start ",
       {"packet 1: no IP, or cut short before it; left out",
        "packet 2: neighbour discovery or MLD, which is never shaped; left out"}},
      {"nothing", {}, 0, 0, "start "},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    const Replayed replayed = replay(pcap(kEthernet, each.records));
    EXPECT_EQ(replayed.packets, each.packets);
    EXPECT_EQ(replayed.ip_bytes, each.bytes);
    EXPECT_THAT(replayed.log, HasSubstr(each.logged));
    EXPECT_EQ(replayed.warnings, each.warnings);
  }
}

TEST(OddCapture, TimeMayStandStillGoBackOrJump) {
  const Bytes frame = ethernet(kDatagram);
  constexpr std::uint64_t kDay = 86'400'000'000;  // in microseconds
  const Replayed equal = replay(pcap(kEthernet, {{frame, 5}, {frame, 5}, {frame, 5}}));
  EXPECT_EQ(equal.packets, 3u);
  EXPECT_THAT(equal.warnings, IsEmpty());

  const Replayed back = replay(pcap(kEthernet, {{frame, 9}, {frame, 5}, {frame, 7}, {frame, 9}}));
  EXPECT_EQ(back.packets, 4u);
  EXPECT_THAT(back.warnings, ElementsAre("2 packets, the first is packet 2: a time before that of the packet in front; "
                                         "the later time counts"));
  EXPECT_THAT(back.log, Not(HasSubstr("1700000000000005000")));

  const Replayed jump = replay(pcap(kEthernet, {{frame, 0}, {frame, kDay}, {frame, kDay + 1}}));
  EXPECT_EQ(jump.packets, 3u);
  EXPECT_THAT(jump.warnings, ElementsAre("packet 2: an hour or more behind the packet in front"));
  EXPECT_THAT(jump.log, HasSubstr("1700086400000001000 arrive"));
}

TEST(OddCapture, ByteOrderAndUnitsAreTheFilesOwn) {
  const std::vector<Record> records{{ethernet(kDatagram), 1}, {ethernet(kDatagram), 2'000'000'003}};
  for (const bool big_endian : {false, true}) {
    const Replayed micros = replay(pcap(kEthernet, records, {big_endian, false}));
    EXPECT_THAT(micros.log, HasSubstr("\n1700002000000003000 arrive")) << big_endian;
    const Replayed nanos = replay(pcap(kEthernet, records, {big_endian, true}));
    EXPECT_THAT(nanos.log, HasSubstr("\n1700000002000000003 arrive")) << big_endian;
    const Replayed next = replay(pcapng({{kEthernet, 9}}, records, big_endian));
    EXPECT_EQ(next.log, nanos.log) << big_endian;
    EXPECT_EQ(next.packets, 2u);
  }
}

TEST(OddCapture, InterfacesOfOneFileMayHaveTheirOwnClockButOneKindOfLink) {
  const Bytes frame = ethernet(kDatagram);
  const Replayed clocks =
      replay(pcapng({{kEthernet, 6}, {kEthernet, 9}}, {{frame, 7, 0, 0}, {frame, 8'001, 0, 1}, {frame, 9, 0, 0}}));
  EXPECT_EQ(clocks.packets, 3u);
  EXPECT_THAT(clocks.warnings, IsEmpty());
  EXPECT_THAT(clocks.log, HasSubstr("\n1700000000000008001 arrive"));
  EXPECT_THAT(clocks.log, HasSubstr("\n1700000000000009000 arrive"));

  const std::string links = error_of(pcapng({{kEthernet, 6}, {kRaw, 6}}, {{frame, 7, 0, 0}, {kDatagram, 8, 0, 1}}));
  EXPECT_THAT(links, HasSubstr("odd: cannot be read behind packet 0 (an interface has a type "));
  EXPECT_THAT(links, HasSubstr("; capture one interface, or any"));
}

TEST(OddCapture, AllThatCarryIpAreReadAndOthersAreNamed) {
  struct Case {
    std::uint32_t link_type;
    Bytes header;
  };
  const Case cases[] = {
      {kEthernet, zeros(12) + number(0x0800, 2)},
      {kCooked, zeros(14) + number(0x0800, 2)},
      {kCooked2, number(0x0800, 2) + zeros(18)},
      {kRaw, {}},
      {kIpv4, {}},
      {kNull, number(2, 4, false)},
      {kNull, number(2, 4, true)},
      {kLoop, number(2, 4)},
  };
  for (const Case& each : cases) {
    const Replayed replayed = replay(pcap(each.link_type, {{each.header + kDatagram}}));
    EXPECT_EQ(replayed.packets, 1u) << each.link_type;
    EXPECT_EQ(replayed.ip_bytes, 100u) << each.link_type;
    EXPECT_THAT(replayed.warnings, IsEmpty()) << each.link_type;
  }
  EXPECT_EQ(replay(pcap(kIpv6, {{ipv6(17, udp(52))}})).ip_bytes, 100u);
  EXPECT_EQ(error_of(pcap(kWifi, {{kDatagram}})),
            "odd: frames of the link type IEEE802_11 cannot be read; capture on an Ethernet interface, or on any");
}

/// Cuts `file` at each length behind `head`, where records of `record` bytes begin.
void expect_what_came_before_the_cut_to_count(const Bytes& file, std::size_t head, std::size_t record) {
  for (std::size_t length = head; length <= file.size(); ++length) {
    SCOPED_TRACE(length);
    const Replayed replayed = replay(file.substr(0, length));
    const std::size_t whole = (length - head) / record;
    EXPECT_EQ(replayed.packets, whole);
    if ((length - head) % record == 0) {
      EXPECT_THAT(replayed.warnings, IsEmpty());
    } else {
      EXPECT_THAT(replayed.warnings, ElementsAre("the capture ends in the middle of packet " +
                                                 std::to_string(whole + 1) + "; what came before counts"));
    }
  }
}

TEST(OddCapture, AFileMayEndAnywhereBehindItsHead) {
  const Bytes frame = ethernet(kDatagram);  // 114 bytes
  const Bytes file = pcap(kEthernet, {{frame}, {frame}, {frame}});
  expect_what_came_before_the_cut_to_count(file, 24, 16 + 114);
  const Bytes next = pcapng({{kEthernet, 6}}, {{frame}, {frame}, {frame}});
  expect_what_came_before_the_cut_to_count(next, next.size() - 3 * (32 + 116), 32 + 116);
  for (std::size_t length = 1; length < 24; ++length) {
    EXPECT_THAT(error_of(file.substr(0, length)), HasSubstr("odd: not a capture that can be read (")) << length;
  }
}

TEST(OddCapture, DamageInTheMiddleSaysWhere) {
  const Bytes frame = ethernet(kDatagram);
  Bytes file = pcap(kEthernet, {{frame}, {frame}, {frame}});
  file.replace(24 + 130 + 8, 4, number(0x7fffffff, 4, false));
  EXPECT_THAT(error_of(file), HasSubstr("odd: cannot be read behind packet 1 (invalid packet capture length"));
}

}  // namespace
}  // namespace shaper
