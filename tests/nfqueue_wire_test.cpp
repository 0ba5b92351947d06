// Messages recorded from a Linux 6.18 kernel (tests/data/nfqueue), and messages made by hand that no kernel would send.
#include "shaper/live/nfqueue_wire.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "shaper/live/verdict_code.h"

namespace shaper {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes operator+(Bytes left, const Bytes& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

Bytes recorded(const std::string& name) {
  std::ifstream file(std::string(TEST_DATA) + "/nfqueue/" + name + ".bin", std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

struct PacketCase {
  const char* file;
  const char* sentence;
  QueuedPacket packet;
  std::size_t captured;
  std::uint8_t protocol;
  std::uint16_t destination_port, transport_bytes;
};

std::vector<PacketCase> packet_cases() {
  constexpr std::uint8_t kInput = 1;
  constexpr std::uint8_t kPostrouting = 4;
  const auto packet = [](PacketId id, std::uint8_t hook, std::uint32_t ip_bytes, std::optional<std::uint32_t> user,
                         std::optional<std::uint32_t> group) {
    QueuedPacket made;
    made.id = id;
    made.hook = hook;
    (hook == kInput ? made.in_interface : made.out_interface) = 2;
    made.ip_bytes = ip_bytes;
    made.user = user;
    made.group = group;
    return made;
  };
  const auto with = [](QueuedPacket made, auto change) {
    change(made);
    return made;
  };
  const auto super = [](QueuedPacket& made) { made.super = made.checksum_not_ready = true; };
  const auto unready = [](QueuedPacket& made) { made.checksum_not_ready = true; };
  return {
      {"ipv4_icmp", "an echo request by root", packet({7000, 1}, kPostrouting, 84, 0, 0), 84, kIcmp, 0, 0},
      {"ipv6_icmp", "the same by IPv6", packet({7000, 8}, kPostrouting, 104, 0, 0), 104, kIcmpv6, 0, 0},
      {"ipv4_icmp_marked", "2000 bytes, fwmark 33, longer than what is copied",
       with(packet({7000, 5}, kPostrouting, 2028, 0, 0), [](QueuedPacket& made) { made.mark = 33; }), 128, kIcmp, 0, 0},
      {"ipv4_icmp_incoming", "an echo request from outside has no user",
       packet({7000, 123}, kInput, 84, std::nullopt, std::nullopt), 84, kIcmp, 0, 0},
      {"ipv4_udp_with_owner", "33 bytes, so the message has an odd length",
       with(packet({7000, 10}, kPostrouting, 33, 1234, 4321), unready), 33, kUdp, 53, 8},
      {"ipv6_udp_with_owner", "the same by IPv6", with(packet({7000, 13}, kPostrouting, 53, 1234, 4321), unready), 53,
       kUdp, 53, 8},
      {"ipv4_tcp_super", "15 segments of 1448", with(packet({7000, 31}, kPostrouting, 21772, 0, 0), super), 128, kTcp,
       5201, 32},
      {"ipv6_tcp_super", "15 segments of 1428", with(packet({7000, 85}, kPostrouting, 21492, 0, 0), super), 128, kTcp,
       5201, 32},
      {"ipv4_tcp_split", "a segment that came by the detour", packet({7001, 11}, kPostrouting, 1500, 0, 0), 128, kTcp,
       5201, 32},
      {"datagram_truncated", "received into 70 bytes: number and length are there, no ports",
       with(packet({7000, 120}, kPostrouting, 84, 0, 0), [](QueuedPacket& made) { made.truncated = true; }), 10, 0, 0,
       0},
  };
}

TEST(NfqueueMessage, ReadsRecordedPackets) {
  for (const PacketCase& expected : packet_cases()) {
    SCOPED_TRACE(std::string(expected.file) + ": " + expected.sentence);
    const Bytes datagram = recorded(expected.file);
    const NfqueueMessage message = parse_nfqueue_message(datagram);
    const auto* const packet = std::get_if<QueuedPacket>(&message);
    ASSERT_NE(packet, nullptr);
    EXPECT_EQ(packet->id, expected.packet.id);
    EXPECT_EQ(packet->hook, expected.packet.hook);
    EXPECT_EQ(packet->super, expected.packet.super);
    EXPECT_EQ(packet->checksum_not_ready, expected.packet.checksum_not_ready);
    EXPECT_EQ(packet->truncated, expected.packet.truncated);
    EXPECT_EQ(packet->mark, expected.packet.mark);
    EXPECT_EQ(packet->in_interface, expected.packet.in_interface);
    EXPECT_EQ(packet->out_interface, expected.packet.out_interface);
    EXPECT_EQ(packet->user, expected.packet.user);
    EXPECT_EQ(packet->group, expected.packet.group);
    EXPECT_EQ(packet->ip_bytes, expected.packet.ip_bytes);
    EXPECT_EQ(packet->payload.size(), expected.captured);
    const Headers headers = parse_headers(packet->payload);
    EXPECT_EQ(headers.protocol, expected.protocol);
    EXPECT_EQ(headers.destination_port, expected.destination_port);
    EXPECT_EQ(headers.transport_bytes, expected.transport_bytes);
  }
}

TEST(NfqueueMessage, ReadsRecordedAnswers) {
  struct Case {
    const char* file;
    ErrorReply reply;
  };
  const Case cases[] = {
      {"acknowledgement", {0, 41, true, 0, std::nullopt}},
      {"error_not_owner_of_number", {EPERM, 42, true, 7000, std::nullopt}},
      {"error_flag_not_supported", {EOPNOTSUPP, 43, true, 7002, std::nullopt}},
      {"error_packet_gone", {ENOENT, 77, false, 7000, PacketId{7000, 0xdeadbeef}}},
      {"error_no_such_queue", {ENODEV, 78, false, 7005, PacketId{7005, 5}}},
      {"error_bad_verdict", {EINVAL, 79, false, 7000, PacketId{7000, 1}}},
      {"error_not_owner_of_packet", {EPERM, 80, false, 7000, PacketId{7000, 9}}},
      {"error_unknown_message", {EINVAL, 5, false, 0, std::nullopt}},
  };
  for (const Case& expected : cases) {
    SCOPED_TRACE(expected.file);
    const Bytes datagram = recorded(expected.file);
    const NfqueueMessage message = parse_nfqueue_message(datagram);
    const auto* const reply = std::get_if<ErrorReply>(&message);
    ASSERT_NE(reply, nullptr);
    EXPECT_EQ(reply->error, expected.reply.error);
    EXPECT_EQ(reply->sequence, expected.reply.sequence);
    EXPECT_EQ(reply->config, expected.reply.config);
    EXPECT_EQ(reply->queue, expected.reply.queue);
    EXPECT_EQ(reply->packet, expected.reply.packet);
  }
}

// Each prefix lives in memory of exactly its size, so a sanitizer sees a byte read too far.
TEST(NfqueueMessage, OfATruncatedDatagramTheNumberIsKnownWhenItWasReadable) {
  constexpr std::size_t kBehindNumber = 16 + 4 + 4 + 7;  // netlink, nfnetlink and attribute headers, packet header
  for (const PacketCase& expected : packet_cases()) {
    const Bytes whole = recorded(expected.file);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      SCOPED_TRACE(std::string(expected.file) + ", first bytes: " + std::to_string(size));
      const Bytes datagram(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      const NfqueueMessage message = parse_nfqueue_message(datagram);
      const auto* const packet = std::get_if<QueuedPacket>(&message);
      ASSERT_EQ(packet != nullptr, size >= kBehindNumber);
      if (packet == nullptr) continue;
      EXPECT_EQ(packet->id, expected.packet.id);
      EXPECT_TRUE(packet->truncated);
      EXPECT_LE(packet->payload.size(), expected.captured);
    }
  }
}

Bytes little(std::uint32_t value, int bytes) {
  Bytes made;
  for (int i = 0; i < bytes; ++i) made.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  return made;
}

Bytes attribute(std::uint32_t type, const Bytes& value) {
  Bytes made = little(static_cast<std::uint32_t>(4 + value.size()), 2) + little(type, 2) + value;
  while (made.size() % 4 != 0) made.push_back(0);
  return made;
}

/// A packet message of queue 258 (0x0102), as a little-endian machine has it; `claimed` is its nlmsg_len.
Bytes message(const Bytes& attributes, std::optional<std::uint32_t> claimed = std::nullopt) {
  const auto size = static_cast<std::uint32_t>(20 + attributes.size());
  return little(claimed.value_or(size), 4) + little(0x300, 2) + Bytes(10, 0) + Bytes{2, 0, 1, 2} + attributes;
}

const Bytes kNumber = attribute(1, {0, 0, 1, 0, 8, 0, 3});
const Bytes kPayload = attribute(10, {0x45, 0, 0, 4});

TEST(NfqueueMessage, BearsWhatNoKernelPromisesNotToSend) {
  const Bytes mark = attribute(3, {0, 0, 0, 7});
  struct Case {
    const char* sentence;
    Bytes datagram;
    std::size_t captured;
    std::uint32_t ip_bytes, mark;
  };
  const Case cases[] = {
      {"attributes in the usual order", message(kNumber + mark + kPayload), 4, 4, 7},
      {"the number comes last", message(kPayload + mark + kNumber), 4, 4, 7},
      {"the length before the payload", message(kNumber + attribute(13, {0, 1, 0, 0}) + kPayload), 4, 65536, 0},
      {"the length behind the payload", message(kNumber + kPayload + attribute(13, {0, 1, 0, 0})), 4, 65536, 0},
      {"attributes that are newer than our headers",
       message(attribute(22, {1, 2, 3, 4}) + kNumber + attribute(99, {1})), 0, 0, 0},
      {"nested and byte-order flags in the type", message(kNumber + attribute(0x4003, {0, 0, 0, 7})), 0, 0, 7},
      {"no payload at all", message(kNumber), 0, 0, 0},
      {"an empty payload", message(kNumber + attribute(10, {})), 0, 0, 0},
      {"a mark that is two bytes short", message(kNumber + attribute(3, {0, 7}) + kPayload), 4, 4, 0},
      {"an attribute shorter than its own header ends the message", message(kNumber + Bytes{3, 0, 3, 0} + kPayload), 0,
       0, 0},
      {"an attribute of length zero ends the message", message(kNumber + Bytes{0, 0, 3, 0} + kPayload), 0, 0, 0},
      {"an attribute that claims more than there is", message(kNumber + Bytes{0xff, 0xff, 10, 0, 0x45}), 1, 65531, 0},
      {"bytes behind the end that the message names", message(kNumber + kPayload, 32), 0, 0, 0},
      {"a half attribute header at the end", message(kNumber + kPayload + Bytes{8, 0}), 4, 4, 0},
  };
  for (const Case& expected : cases) {
    SCOPED_TRACE(expected.sentence);
    const NfqueueMessage parsed = parse_nfqueue_message(expected.datagram);
    const auto* const packet = std::get_if<QueuedPacket>(&parsed);
    ASSERT_NE(packet, nullptr);
    EXPECT_EQ(packet->id, (PacketId{0x0102, 256}));
    EXPECT_EQ(packet->payload.size(), expected.captured);
    EXPECT_EQ(packet->ip_bytes, expected.ip_bytes);
    EXPECT_EQ(packet->mark, expected.mark);
  }
}

TEST(NfqueueMessage, CallsUnknownWhatIsNeitherPacketNorAnswer) {
  const std::pair<const char*, Bytes> cases[] = {
      {"nothing", {}},
      {"half a netlink header", Bytes(15, 0)},
      {"a message that claims to be shorter than its header", message(kNumber, 15)},
      {"a packet without a number", message(kPayload)},
      {"a number that is cut short", message(Bytes{6, 0, 1, 0, 0, 0})},
      {"another subsystem", little(20, 4) + Bytes{0, 5} + Bytes(14, 0)},
      {"an answer without its errno", little(18, 4) + little(2, 2) + Bytes(12, 0)},
  };
  for (const auto& [sentence, datagram] : cases) {
    EXPECT_TRUE(std::holds_alternative<UnknownMessage>(parse_nfqueue_message(datagram))) << sentence;
  }
}

TEST(VerdictBuffer, WritesVerdictsOneBehindTheOther) {
  const auto expected = [](const Bytes& verdict, const Bytes& further = {}) {
    const auto size = static_cast<std::uint32_t>(32 + further.size());
    return little(size, 4) + little(0x301, 2) + little(1, 2) + little(0x01020304, 4) + little(0, 4) +  // no ACK
           Bytes{0, 0, 0x1b, 0x58} + attribute(2, verdict + Bytes{0xde, 0xad, 0xbe, 0xef}) + further;
  };
  const PacketId id{7000, 0xdeadbeef};
  VerdictBuffer buffer;
  EXPECT_TRUE(buffer.empty());
  buffer.accept(id, 0x01020304);
  buffer.drop(id, 0x01020304);
  buffer.repeat(id, 0x08000021, 0x01020304);
  buffer.accept_with(id, 0x21, 0x01020304);
  buffer.detour(id, 7001, 0x01020304);
  const Bytes bytes(buffer.bytes().begin(), buffer.bytes().end());
  EXPECT_EQ(bytes, expected({0, 0, 0, 1}) + expected({0, 0, 0, 0}) +
                       expected({0, 0, 0, 4}, attribute(3, {8, 0, 0, 0x21})) +
                       expected({0, 0, 0, 1}, attribute(3, {0, 0, 0, 0x21})) + expected({0x1b, 0x59, 0x80, 3}));
  EXPECT_EQ(buffer.size(), 5U);

  buffer.clear();
  EXPECT_TRUE(buffer.empty());
  EXPECT_TRUE(buffer.bytes().empty());
}

TEST(VerdictBuffer, HoldsSixtyFourOfAnyKind) {
  VerdictBuffer buffer;
  for (const std::size_t bytes : {32U, 40U}) {
    buffer.clear();
    for (std::uint32_t i = 0; i < 64; ++i) {
      EXPECT_FALSE(buffer.full());
      bytes == 32 ? buffer.accept({7000, i}, i) : buffer.repeat({7000, i}, 1, i);
    }
    EXPECT_TRUE(buffer.full());
    EXPECT_EQ(buffer.bytes().size(), 64 * bytes);
  }
}

TEST(VerdictOnAll, NamesTheLastPacketOfAQueue) {
  const auto expected = [](std::uint8_t verdict) {
    return little(32, 4) + little(0x303, 2) + little(1, 2) + little(0x01020304, 4) + little(0, 4) +  // no ACK
           Bytes{0, 0, 0x1b, 0x58} + attribute(2, Bytes{0, 0, 0, verdict, 0xde, 0xad, 0xbe, 0xef});
  };
  for (const bool accept : {true, false}) {
    const VerdictOnAll made({7000, 0xdeadbeef}, accept, 0x01020304);
    EXPECT_EQ(Bytes(made.bytes().begin(), made.bytes().end()), expected(accept ? 1 : 0));
  }
}

TEST(VerdictCode, KeepsWhoseVerdictItWas) {
  for (const ClassIndex class_index : {0U, 1U, 4095U, 4096U, kCodedClasses - 1}) {
    for (const std::uint32_t frames : {1U, 2U, 254U, 255U}) {
      for (const Decision decision :
           {Decision::accept, Decision::drop, Decision::detour, Decision::pass, Decision::mark}) {
        for (std::size_t reason = 0; reason < kDropReasons; ++reason) {
          Verdict verdict;
          verdict.class_index = class_index;
          verdict.frames = frames;
          verdict.decision = decision;
          verdict.reason = static_cast<DropReason>(reason);
          EXPECT_EQ(VerdictCode{}.decode(VerdictCode{}.encode(verdict)), verdict);
        }
      }
    }
  }
}

TEST(VerdictCode, OfMoreFramesThanItCanSayKeepsTheMost) {
  Verdict verdict;
  verdict.frames = 1000;
  EXPECT_EQ(VerdictCode{}.decode(VerdictCode{}.encode(verdict)).frames, 255U);
}

TEST(VerdictCode, FollowsAClassIntoTheNextPolicyAndNoFurther) {
  VerdictCode code;
  Verdict verdict;
  verdict.class_index = 1;
  for (int n = 0; n < 20; ++n) {
    const std::uint32_t sent = code.encode(verdict);
    code.swapped({std::nullopt, 7});
    EXPECT_EQ(code.decode(sent).class_index, 7U);
    EXPECT_EQ(code.decode(code.encode(verdict)).class_index, 1U);
    code.swapped({1, std::nullopt});
    EXPECT_EQ(code.decode(sent).class_index, kNoClass) << "two policies ago";
  }
  const std::uint32_t of_no_class = code.encode(unmetered({}));
  const std::uint32_t of_the_other = code.encode(verdict);
  code.swapped({0, std::nullopt});
  EXPECT_EQ(code.decode(of_no_class).class_index, kNoClass);
  EXPECT_EQ(code.decode(of_the_other).class_index, kNoClass) << "no class follows it";
}

TEST(ConfigMessage, BindsWithAllParametersInOneMessage) {
  const auto bound = [](bool super_packets, bool owners, std::uint8_t flags) {
    const Bytes attributes = attribute(1, {1, 0, 0, 0}) + attribute(2, {0, 0, 0, 128, 2}) +
                             attribute(3, {0, 0, 0x80, 0}) + attribute(5, {0, 0, 0, flags}) +
                             attribute(4, {0, 0, 0, 12});
    const Bytes expected = little(static_cast<std::uint32_t>(20 + attributes.size()), 4) + little(0x302, 2) +
                           little(5, 2) + little(9, 4) + little(0, 4) + Bytes{0, 0, 0x1b, 0x58} + attributes;
    const QueueConfig config{
        .number = 7000, .length = 0x8000, .copy_bytes = 128, .super_packets = super_packets, .owners = owners};
    const ConfigMessage made = ConfigMessage::bind(config, 9);
    EXPECT_EQ(Bytes(made.bytes().begin(), made.bytes().end()), expected);
  };
  bound(true, true, 12);
  bound(false, true, 8);
  bound(true, false, 4);
  bound(false, false, 0);
}

TEST(QueueCounters, AreReadFromTheKernelsTable) {
  const std::string table =
      " 7001   8830     0 2   128     0     0      133  1\n"
      " 7000 4294963200    12 2   128     3     4      154  1\n"
      "  700  broken\n"
      "    7   8830     0 2   128     0     0        1  1";
  EXPECT_EQ(parse_queue_counters(table, 7000), (KernelQueueCounters{7000, 4294963200, 12, 3, 4, 154}));
  EXPECT_EQ(parse_queue_counters(table, 7001), (KernelQueueCounters{7001, 8830, 0, 0, 0, 133}));
  EXPECT_EQ(parse_queue_counters(table, 7), (KernelQueueCounters{7, 8830, 0, 0, 0, 1}));
  EXPECT_EQ(parse_queue_counters(table, 700), std::nullopt);
  EXPECT_EQ(parse_queue_counters(table, 8830), std::nullopt);
  EXPECT_EQ(parse_queue_counters("", 7000), std::nullopt);
  EXPECT_EQ(parse_queue_table(table).size(), 3U);
  EXPECT_TRUE(parse_queue_table("7000 1 2\n99999 1 2 3 4 5 6 7 1\n\nx\n").empty());
}

}  // namespace
}  // namespace shaper
