// Replays: what is found in captures, the machine that is never late, and logs that must come out the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pcap/dlt.h>

#include <fstream>
#include <sstream>

#include "shaper/model/config.h"
#include "shaper/replay/punctual_driver.h"
#include "shaper/replay/replay_capture.h"
#include "tests/log_text.h"

namespace shaper {
namespace {

using namespace std::chrono_literals;

std::string data(const std::string& name) {
  return std::string(TEST_DATA) + "/captures/" + name;
}

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

const std::string& policy_text() {
  static const std::string text = content_of(data("policy.toml"));
  return text;
}

Policy policy_of(std::string_view text) {
  auto parsed = parse_policy(text, "test.toml");
  EXPECT_TRUE(parsed) << parsed.error().text();
  return parsed ? parsed->policy : Policy{};
}

struct Replayed {
  ReplayResult result;
  std::string log;
};

tl::expected<Capture, std::string> open_capture(const std::string& path) {
  auto input = open_input(path);
  if (!input) return tl::unexpected(input.error());
  return Capture::read(std::move(*input), path);
}

Replayed replay(const std::string& capture_name, std::string_view policy = policy_text()) {
  auto capture = open_capture(data(capture_name));
  EXPECT_TRUE(capture) << capture.error();
  std::ostringstream events;
  ReplayOptions options;
  options.policy_text = policy;
  options.events = &events;
  auto result = replay_capture(*capture, policy_of(policy), options);
  EXPECT_TRUE(result) << result.error();
  return {result.value_or(ReplayResult{}), events.str()};
}

const ClassReport& class_named(const ReplayResult& result, std::string_view name) {
  for (const ClassReport& row : result.status.classes) {
    if (row.name == name) return row;
  }
  throw std::out_of_range("no such class");
}

// ---- frames

TEST(Frame, ThePacketIsFoundBehindEveryHeader) {
  const std::vector<std::uint8_t> ip{0x45, 0, 0, 24, 0, 0, 0, 0, 64, 17, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 9, 0, 9};
  struct Case {
    const char* name;
    int link_type;
    std::vector<std::uint8_t> header;
  };
  std::vector<std::uint8_t> addresses(12);
  const auto ethernet = [&](std::initializer_list<std::uint8_t> rest) {
    std::vector<std::uint8_t> header = addresses;
    header.insert(header.end(), rest);
    return header;
  };
  std::vector<std::uint8_t> cooked(14);
  cooked.insert(cooked.end(), {0x08, 0x00});
  std::vector<std::uint8_t> cooked2{0x08, 0x00};
  cooked2.resize(20);
  const Case cases[] = {
      {"Ethernet", DLT_EN10MB, ethernet({0x08, 0x00})},
      {"one tag", DLT_EN10MB, ethernet({0x81, 0x00, 0, 5, 0x08, 0x00})},
      {"two tags", DLT_EN10MB, ethernet({0x88, 0xa8, 0, 5, 0x81, 0x00, 0, 6, 0x08, 0x00})},
      {"Linux cooked", DLT_LINUX_SLL, cooked},
      {"Linux cooked, second version", DLT_LINUX_SLL2, cooked2},
      {"BSD loopback", DLT_NULL, {2, 0, 0, 0}},
      {"raw", DLT_RAW, {}},
  };
  for (const Case& each : cases) {
    std::vector<std::uint8_t> frame = each.header;
    frame.insert(frame.end(), ip.begin(), ip.end());
    const auto length = static_cast<std::uint32_t>(frame.size());
    const auto found = find_ip_packet(each.link_type, frame, length);
    ASSERT_TRUE(found) << each.name;
    EXPECT_EQ(std::vector(found->captured.begin(), found->captured.end()), ip) << each.name;
    EXPECT_EQ(found->length, 24u) << each.name;

    frame.resize(frame.size() + 10);
    EXPECT_EQ(find_ip_packet(each.link_type, frame, length + 10)->length, 24u) << each.name << ", padded";
    for (std::size_t cut = 0; cut < frame.size(); ++cut) {
      const auto part = find_ip_packet(each.link_type, std::span(frame).first(cut), length);
      EXPECT_TRUE(!part || part->captured.size() <= cut) << each.name << ", cut at " << cut;
    }
  }
}

TEST(Frame, ALengthOfZeroMeansAllOfTheFrame) {
  std::vector<std::uint8_t> big(60);
  big[0] = 0x60;
  EXPECT_EQ(find_ip_packet(DLT_RAW, big, 100'000)->length, 100'000u) << "IPv6 BIG TCP";
  big[0] = 0x45;
  EXPECT_EQ(find_ip_packet(DLT_RAW, big, 70'000)->length, 70'000u) << "IPv4 BIG TCP";
  big[2] = 0xff;
  EXPECT_EQ(find_ip_packet(DLT_RAW, big, 60)->length, 60u) << "a header that claims more than there is";
}

TEST(Frame, WhatIsNoIpIsNothing) {
  std::vector<std::uint8_t> arp(42);
  arp[12] = 0x08;
  arp[13] = 0x06;
  EXPECT_FALSE(find_ip_packet(DLT_EN10MB, arp, 42));
  arp[13] = 0x00;
  EXPECT_FALSE(find_ip_packet(DLT_EN10MB, arp, 42)) << "version 0 behind the type of IPv4";
  EXPECT_FALSE(is_known_link_type(DLT_IEEE802_11));
}

// ---- captures

TEST(ReplayCapture, AllKindsOfFramesCountAsWhatTheyCarry) {
  const ReplayResult result = replay("kinds.pcap").result;
  EXPECT_EQ(result.ip_packets, 7u);
  EXPECT_THAT(result.status.warnings,
              testing::ElementsAre("packet 5: no IP, or cut short before it; left out",
                                   "packet 6: neighbour discovery or MLD, which is never shaped; left out",
                                   "packet 9: captured without all of its headers (snap length); ports may be missing",
                                   "packet 8: a time before that of the packet in front; the later time counts"));
  // Five whole datagrams of IPv4 (128 bytes), one of 30 that was padded, one of IPv6 (148).
  EXPECT_EQ(class_named(result, "policed").sent_bytes.value, 5u * 128 + 30 + 148);
  EXPECT_EQ(result.flows.flows.size(), 3u) << "IPv4, IPv6, and the one captured without its ports";
}

TEST(ReplayCapture, APolicerDropsWhatTheRateLawSays) {
  // 2 Mbit/s with a burst of 50 ms: a depth of 12500 + 1514 bytes. In 99 ms come another 24750 bytes of credit, and
  // a datagram takes 1014 bytes: 38 fit.
  const ReplayResult result = replay("policed.pcap").result;
  const ClassReport& policed = class_named(result, "policed");
  EXPECT_EQ(policed.sent_packets, (12'500u + 1'514u + 24'750u) / 1'014u);
  EXPECT_EQ(policed.drops[static_cast<std::size_t>(DropReason::policed)], 100u - 38u);
  EXPECT_EQ(policed.delay.max, 0ns);
}

TEST(ReplayCapture, SuperPacketsOfASlowClassAreCutLikeTheKernelDoes) {
  const Replayed replayed = replay("supers.pcap");
  const ClassReport& slow = class_named(replayed.result, "slow");
  // 20000 bytes in segments of 1460 are 14, 80000 in segments of 1440 (IPv6) are 56.
  EXPECT_EQ(slow.sent_packets, 14u + 56u);
  EXPECT_EQ(slow.sent_bytes.value, 20'000u + 14 * 40 + 80'000u + 56 * 60);
  EXPECT_EQ(slow.backlog_packets, 0u) << "everything has departed";
  EXPECT_NE(replayed.log.find(" detour 0:1 "), std::string::npos);
  EXPECT_EQ(replayed.log.find(" bytes=20040 headers=20+20 queue=split"), std::string::npos);
}

TEST(ReplayCapture, OnAnIngressLinkTheDestinationIsLocal) {
  const std::string policy = R"(
version = 1
[[link]]
name = "down"
interface = "eth0"
direction = "ingress"
[[class]]
name = "ours"
link = "down"
match = { local = "10.0.0.2" }
rate = "2mbit"
burst = "50ms"
over = "drop"
)";
  const Replayed replayed = replay("policed.pcap", policy);
  const ClassReport& ours = class_named(replayed.result, "ours");
  EXPECT_EQ(ours.in_packets, 100u) << "all datagrams go to 10.0.0.2";
  EXPECT_EQ(ours.sent_packets, 38u) << "the same rate law as on the way out";
  EXPECT_EQ(replayed.result.status.links.at(0).direction, Direction::ingress);
  const auto repeated = replay_log(replayed.log, "log");
  EXPECT_TRUE(repeated) << repeated.error();
}

TEST(ReplayCapture, FramesAreChargedAsTheLinkCarriesThem) {
  const std::string policy = R"(
version = 1
[[link]]
name = "dsl"
interface = "eth0"
overhead = "atm"
)";
  const Replayed replayed = replay("policed.pcap", policy);
  // A datagram of 1000 bytes fills 21 cells.
  EXPECT_EQ(class_named(replayed.result, "default").wire_bytes.value, 100u * 21 * 53);
  EXPECT_NE(replayed.log.find(" wire=1113 "), std::string::npos);
  const auto repeated = replay_log(replayed.log, "log");
  EXPECT_TRUE(repeated) << repeated.error();
}

TEST(ReplayCapture, TheSameCaptureGivesTheSameLog) {
  EXPECT_EQ(replay("supers.pcap").log, replay("supers.pcap").log);
}

TEST(ReplayCapture, CookedCapturesAreReadToo) {
  EXPECT_EQ(replay("cooked.pcap").result.ip_packets, 1u);
  EXPECT_EQ(replay("cooked2.pcap").result.ip_packets, 1u);
}

TEST(ReplayCapture, TimesAreThoseOfTheCapture) {
  const ReplayResult result = replay("policed.pcap").result;
  EXPECT_EQ(result.flows.flows.at(0).first_seen, "2023-11-14T22:13:20.000000Z");
  EXPECT_EQ(result.flows.flows.at(0).last_seen, "2023-11-14T22:13:20.099000Z");
}

TEST(ReplayCapture, WhatCannotBeReadIsToldInOneLine) {
  struct Case {
    const char* file;
    const char* message;
  };
  const Case cases[] = {
      {"absent.pcap", "No such file or directory"},
      {"", "Is a directory"},
      {"empty.pcap", "the file is empty"},
      {"policy.toml", "not a capture that can be read"},
      {"wifi.pcap", "link type IEEE802_11 cannot be read"},
  };
  for (const Case& each : cases) {
    const auto capture = open_capture(data(each.file));
    ASSERT_FALSE(capture) << each.file;
    EXPECT_NE(capture.error().find(each.message), std::string::npos) << capture.error();
    EXPECT_EQ(capture.error().find('\n'), std::string::npos) << capture.error();
    EXPECT_TRUE(capture.error().starts_with(data(each.file) + ": ")) << capture.error();
  }
}

// ---- the driver

TEST(PunctualDriver, PacketsDepartExactlyWhenTheirRateAllows) {
  // Given a class of 1 Mbit/s with the smallest burst and a first packet that empties its bucket.
  const Policy policy = policy_of(R"(
version = 1
[[link]]
name = "up"
interface = "eth0"
overhead = "ip"
[[class]]
name = "all"
link = "up"
default = true
rate = "1mbit"
burst = "1 B"
)");
  std::string log_text;
  EventLog log(log_text);
  PunctualDriver driver(policy, 1500, Instant{1s}, {&log});
  Packet packet;
  packet.headers.family = Family::ipv4;
  packet.headers.protocol = kUdp;
  packet.ip_bytes = 1500;
  driver.arrive(packet, Instant{1s});
  // When a second one comes at once, it waits for all of its credit but the one byte of burst: 1499 bytes.
  driver.arrive(packet, Instant{1s});
  driver.drain();
  EXPECT_EQ(driver.now(), Instant{1s} + time_for({1'000'000}, {1499}));
  EXPECT_EQ(driver.shaper().snapshot(driver.now()).classes.at(0).traffic.sent_packets, 2u);
}

TEST(PunctualDriver, WhatIsMarkedDepartsAndItsLogIsRepeated) {
  // Given a flow that can be told of congestion and keeps sending twice what its class may.
  const std::string_view text = R"(
version = 1
[[link]]
name = "up"
interface = "eth0"
[[class]]
name = "all"
link = "up"
default = true
rate = "10mbit"
)";
  const Policy policy = policy_of(text);
  std::string log_text;
  EventLog log(log_text);
  log.begin(Instant{1s}, {}, policy, text, {}, std::vector<std::uint32_t>{1500});
  PunctualDriver driver(policy, 1500, Instant{1s}, {&log});
  Packet packet;
  packet.headers.family = Family::ipv4;
  packet.headers.protocol = kTcp;
  packet.headers.ecn = 2;
  packet.ip_bytes = 1500;
  for (int i = 0; i < 500; ++i) driver.arrive(packet, Instant{1s} + i * 600us);
  driver.drain();
  const CoreSnapshot snapshot = driver.shaper().snapshot(driver.now());
  const Traffic& traffic = snapshot.classes.at(0).traffic;
  // Then some packets are marked, each counts as sent, and the log says so.
  EXPECT_GT(traffic.marked_packets, 0u);
  EXPECT_EQ(traffic.sent_packets + traffic.dropped_packets(), 500u);
  std::size_t marks = 0;
  for (std::size_t at = log_text.find(" mark 0:"); at != std::string::npos; at = log_text.find(" mark 0:", at + 1))
    ++marks;
  EXPECT_EQ(marks, traffic.marked_packets);
  EXPECT_EQ(status_report(policy, snapshot).links.at(0).sent_packets, traffic.sent_packets);
  std::ostringstream again;
  const auto repeated = replay_log(log_text, "log", {.read = read_logged_policy, .events = &again});
  ASSERT_TRUE(repeated) << repeated.error();
  EXPECT_EQ(repeated->verdicts, 500u);
  EXPECT_EQ(again.str(), log_text);
}

// ---- logs

TEST(ReplayLog, EveryReplayOfACaptureIsReplayedToTheLastVerdict) {
  for (const char* name : {"kinds.pcap", "policed.pcap", "supers.pcap"}) {
    const std::string log = replay(name).log;
    std::ostringstream again;
    const auto result = replay_log(log, "log", {.read = read_logged_policy, .events = &again});
    ASSERT_TRUE(result) << result.error();
    EXPECT_EQ(again.str(), log);
    EXPECT_GT(result->verdicts, 0u);
    EXPECT_FALSE(result->cut_short);
  }
}

TEST(ReplayLog, AnyChangedVerdictIsFound) {
  const std::string log = replay("policed.pcap").log;
  struct Change {
    const char* from;
    const char* to;
    const char* message;
  };
  const Change changes[] = {
      {" drop ", " accept ", "expected the end of the line"},
      {" accept ", " mark ", "the log has `mark 0:1 class=0:policed frames=1 wire=1014"},
      {"wire=1014 delay=0\n", "wire=1015 delay=0\n", "the log has `accept 0:1 class=0:policed frames=1 wire=1015"},
      {"reason=policed", "reason=held", "reason=held`, the replay `drop"},
      {"rate = \\\"2mbit\\\"", "rate = \\\"9mbit\\\"", "the replay `accept"},
      {" bytes=1000 ", " bytes=999 ", "the replay `accept 0:1 class=0:policed frames=1 wire=1013"},
      {"1700000000098000000 arrive", "1700000000008000000 arrive", "time goes backwards"},
      {"start ", "begin ", "expected a time in nanoseconds"},
      {"start ", "skipped 3\nstart ", "3 lines are missing here"},
      {"link 0 mtu 1500", "link 1 mtu 1500", "the policy has no link of this number"},
      {"link 0 mtu 1500", "link 0 mtu 0", "an MTU out of range"},
      {"link=0", "link=7", "the policy has no link of this number"},
      {"shaper events 1", "shaper events 2", "log:1: an event log begins with"},
      {"rate = \\\"2mbit\\\"", "rate = \\\"2\\\"", "log:2: policy in this line:11:8: "},
  };
  for (const Change& change : changes) {
    std::string changed = log;
    const std::size_t at = changed.find(change.from);
    ASSERT_NE(at, std::string::npos) << change.from;
    changed.replace(at, std::string_view(change.from).size(), change.to);
    const auto result = replay_log(changed, "log");
    ASSERT_FALSE(result) << change.from;
    EXPECT_NE(result.error().find(change.message), std::string::npos) << result.error();
  }
}

TEST(ReplayLog, AVerdictThatIsMissingIsFound) {
  std::string log = replay("policed.pcap").log;
  const std::size_t verdict = log.find('\n', log.find(" arrive ")) + 1;
  log.erase(verdict, log.find('\n', verdict) + 1 - verdict);
  const auto result = replay_log(log, "log");
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().find("the log lacks `accept 0:1"), std::string::npos) << result.error();
}

TEST(ReplayLog, ALogThatIsBeingWrittenMayEndAnywhereBehindItsStart) {
  const std::string log = replay("policed.pcap").log;
  for (std::size_t length = log.find(" arrive "); length < log.size(); length += 97) {
    const auto result = replay_log(std::string_view(log).substr(0, length), "log");
    EXPECT_TRUE(result) << result.error();
  }
}

}  // namespace
}  // namespace shaper
