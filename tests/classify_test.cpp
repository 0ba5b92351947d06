// Which class a packet gets: first match in file order, else the default class; every match key, alone and together.
#include <gtest/gtest.h>

#include <functional>

#include "tests/sim.h"

namespace shaper::sim {
namespace {

Packet tcp_packet() {
  Packet packet = tcp_packet_of(0);
  packet.headers.source = ipv4(10, 1, 2, 3);
  packet.headers.destination = ipv4(203, 0, 113, 9);
  packet.headers.source_port = 40'000;
  packet.headers.destination_port = 443;
  packet.headers.dscp = 46;
  packet.mark = 0x1234;
  packet.user = 1'000;
  packet.group = 100;
  return packet;
}

Packet ipv6_packet() {
  Packet packet = tcp_packet();
  packet.headers.family = Family::ipv6;
  packet.headers.source = {0x20, 0x01, 0x0d, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7};
  packet.headers.destination = {0x20, 0x01, 0x0d, 0xb8, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9};
  return packet;
}

/// Whether a class with this match takes the packet.
bool takes(const Match& match, const Packet& packet, Direction direction = Direction::egress) {
  ClassPolicy policy;
  policy.name = "asked";
  policy.match = {match};
  Policy whole = policy_of(default_class(), policy);
  whole.links[0].direction = direction;
  const Shaper core(whole, StartCredit::full, Sim::kKey, Sim::kStart);
  return core.explain(packet).class_index == 1;
}

Prefix ipv4_prefix(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d, std::uint8_t bits) {
  return {Family::ipv4, ipv4(a, b, c, d), bits};
}

struct Case {
  const char* sentence;
  std::function<void(Match&)> ask;
  bool taken;
};

TEST(Classifier, AsksEachKey) {
  const Case cases[] = {
      {"an empty table holds", [](Match&) {}, true},
      {"the protocol", [](Match& m) { m.protocol = {kTcp}; }, true},
      {"one of several protocols",
       [](Match& m) {
         m.protocol = {kUdp, kTcp};
       },
       true},
      {"another protocol", [](Match& m) { m.protocol = {kUdp}; }, false},
      {"the source", [](Match& m) { m.source = {ipv4_prefix(10, 1, 2, 3, 32)}; }, true},
      {"another source", [](Match& m) { m.source = {ipv4_prefix(10, 1, 2, 4, 32)}; }, false},
      {"the source's /24", [](Match& m) { m.source = {ipv4_prefix(10, 1, 2, 0, 24)}; }, true},
      {"the source's /23", [](Match& m) { m.source = {ipv4_prefix(10, 1, 2, 0, 23)}; }, true},
      {"a /31 beside it", [](Match& m) { m.source = {ipv4_prefix(10, 1, 2, 0, 31)}; }, false},
      {"a /9 with the other half", [](Match& m) { m.source = {ipv4_prefix(10, 128, 0, 0, 9)}; }, false},
      {"0.0.0.0/0 is all of IPv4", [](Match& m) { m.source = {ipv4_prefix(0, 0, 0, 0, 0)}; }, true},
      {"::/0 is none of IPv4",
       [](Match& m) {
         m.source = {{Family::ipv6, {}, 0}};
       },
       false},
      {"the destination", [](Match& m) { m.destination = {ipv4_prefix(203, 0, 113, 0, 24)}; }, true},
      {"the source asked as destination", [](Match& m) { m.destination = {ipv4_prefix(10, 1, 2, 3, 32)}; }, false},
      {"the second of two",
       [](Match& m) {
         m.destination = {ipv4_prefix(1, 1, 1, 1, 32), ipv4_prefix(203, 0, 113, 9, 32)};
       },
       true},
      {"a source port",
       [](Match& m) {
         m.source_port = {{40'000, 40'000}};
       },
       true},
      {"the source port asked as destination port",
       [](Match& m) {
         m.destination_port = {{40'000, 40'000}};
       },
       false},
      {"the first port of a range",
       [](Match& m) {
         m.destination_port = {{443, 500}};
       },
       true},
      {"the last port of a range",
       [](Match& m) {
         m.destination_port = {{80, 443}};
       },
       true},
      {"just behind a range",
       [](Match& m) {
         m.destination_port = {{80, 442}};
       },
       false},
      {"just before a range",
       [](Match& m) {
         m.destination_port = {{444, 65'535}};
       },
       false},
      {"all ports",
       [](Match& m) {
         m.destination_port = {{0, 65'535}};
       },
       true},
      {"the DSCP",
       [](Match& m) {
         m.dscp = {0, 46};
       },
       true},
      {"another DSCP",
       [](Match& m) {
         m.dscp = {0, 10};
       },
       false},
      {"the mark",
       [](Match& m) {
         m.mark = {{0x1234, 0xffffffff}};
       },
       true},
      {"some bits of the mark",
       [](Match& m) {
         m.mark = {{0x0034, 0x00ff}};
       },
       true},
      {"the same bits without the mask",
       [](Match& m) {
         m.mark = {{0x0034, 0xffffffff}};
       },
       false},
      {"a bit that is not set",
       [](Match& m) {
         m.mark = {{0x8000, 0x8000}};
       },
       false},
      {"a bit that must not be set",
       [](Match& m) {
         m.mark = {{0, 0x8000}};
       },
       true},
      {"the user",
       [](Match& m) {
         m.user.ids = {{1'000, 1'000}};
       },
       true},
      {"a range of users",
       [](Match& m) {
         m.user.ids = {{0, 0}, {1'000, 59'999}};
       },
       true},
      {"other users",
       [](Match& m) {
         m.user.ids = {{1'001, 59'999}};
       },
       false},
      {"an unknown user", [](Match& m) { m.user.unknown = true; }, false},
      {"the group",
       [](Match& m) {
         m.group.ids = {{100, 100}};
       },
       true},
      {"another group",
       [](Match& m) {
         m.group.ids = {{1'000, 1'000}};
       },
       false},
      {"all keys must hold",
       [](Match& m) {
         m.protocol = {kTcp};
         m.dscp = {0};
       },
       false},
      {"all keys hold",
       [](Match& m) {
         m.protocol = {kTcp};
         m.dscp = {46};
         m.user.ids = {{1'000, 1'000}};
       },
       true},
      {"not: what does not hold",
       [](Match& m) {
         m.none_of.resize(1);
         m.none_of[0].protocol = {kUdp};
       },
       true},
      {"not: what holds",
       [](Match& m) {
         m.none_of.resize(1);
         m.none_of[0].protocol = {kTcp};
       },
       false},
      {"not: a table of which one key does not hold",
       [](Match& m) {
         m.none_of.resize(1);
         m.none_of[0].protocol = {kTcp};
         m.none_of[0].dscp = {0};
       },
       true},
      {"not: one of two tables holds",
       [](Match& m) {
         m.none_of.resize(2);
         m.none_of[0].protocol = {kUdp};
         m.none_of[1].dscp = {46};
       },
       false},
      {"not inside not",
       [](Match& m) {
         m.none_of.resize(1);
         m.none_of[0].none_of.resize(1);
         m.none_of[0].none_of[0].protocol = {kTcp};
       },
       true},
      {"a key and a not",
       [](Match& m) {
         m.protocol = {kTcp};
         m.none_of.resize(1);
         m.none_of[0].user.ids = {{1'000, 1'000}};
       },
       false},
  };
  for (const Case& test : cases) {
    Match match;
    test.ask(match);
    EXPECT_EQ(takes(match, tcp_packet()), test.taken) << test.sentence;
  }
}

TEST(Classifier, KnowsIpv6Prefixes) {
  const Address host = ipv6_packet().headers.source;
  Address other = host;
  other[7] = 1;  // differs in bit 64
  const std::pair<Prefix, bool> cases[] = {
      {{Family::ipv6, host, 128}, true},     {{Family::ipv6, other, 128}, false}, {{Family::ipv6, other, 64}, false},
      {{Family::ipv6, other, 63}, true},     {{Family::ipv6, host, 0}, true},     {{Family::ipv4, host, 32}, false},
      {{Family::ipv4, Address{}, 0}, false},
  };
  for (const auto& [prefix, taken] : cases) {
    Match match;
    match.source = {prefix};
    EXPECT_EQ(takes(match, ipv6_packet()), taken) << int{prefix.bits};
  }
}

TEST(Classifier, LocalAndRemoteFollowTheDirectionOfTheLink) {
  // Leaving: local is the source. Coming in: local is the destination.
  Match local, remote, local_port, remote_port;
  local.local = {ipv4_prefix(10, 0, 0, 0, 8)};
  remote.remote = {ipv4_prefix(10, 0, 0, 0, 8)};
  local_port.local_port = {{40'000, 40'000}};
  remote_port.remote_port = {{40'000, 40'000}};
  EXPECT_TRUE(takes(local, tcp_packet(), Direction::egress));
  EXPECT_FALSE(takes(local, tcp_packet(), Direction::ingress));
  EXPECT_FALSE(takes(remote, tcp_packet(), Direction::egress));
  EXPECT_TRUE(takes(remote, tcp_packet(), Direction::ingress));
  EXPECT_TRUE(takes(local_port, tcp_packet(), Direction::egress));
  EXPECT_FALSE(takes(local_port, tcp_packet(), Direction::ingress));
  EXPECT_FALSE(takes(remote_port, tcp_packet(), Direction::egress));
  EXPECT_TRUE(takes(remote_port, tcp_packet(), Direction::ingress));
}

TEST(Classifier, APacketWithoutASocketHasAnUnknownOwner) {
  Packet packet = tcp_packet();
  packet.user.reset();
  packet.group.reset();
  Match unknown, anyone, either, root;
  unknown.user.unknown = true;
  anyone.user.ids = {{0, 0xffffffff}};
  either.user.ids = {{0, 0xffffffff}};
  either.user.unknown = true;
  root.group.ids = {{0, 0}};
  EXPECT_TRUE(takes(unknown, packet));
  EXPECT_FALSE(takes(anyone, packet));
  EXPECT_TRUE(takes(either, packet));
  EXPECT_FALSE(takes(root, packet)) << "an unknown group is not group 0";
}

TEST(Classifier, TheFirstMatchInFileOrderWinsWhereverTheDefaultStands) {
  ClassPolicy by_port, by_user;
  by_port.name = "port";
  by_port.match.resize(2);
  by_port.match[0].protocol = {kUdp};
  by_port.match[1].destination_port = {{443, 443}};
  by_user.name = "user";
  by_user.match.resize(1);
  by_user.match[0].user.ids = {{1'000, 1'000}};
  const Shaper core(policy_of(default_class(), by_port, by_user), StartCredit::full, Sim::kKey, Sim::kStart);
  EXPECT_EQ(core.explain(tcp_packet()).class_index, 1U);
  EXPECT_EQ(core.explain(tcp_packet()).match, std::optional<std::size_t>{1}) << "the second table held";
  const Shaper other(policy_of(by_user, default_class(), by_port), StartCredit::full, Sim::kKey, Sim::kStart);
  EXPECT_EQ(other.explain(tcp_packet()).class_index, 0U);
  Packet stranger = tcp_packet();
  stranger.user = 7;
  stranger.headers.destination_port = 80;
  EXPECT_EQ(other.explain(stranger).class_index, 1U);
  EXPECT_EQ(other.explain(stranger).match, std::nullopt) << "by default";
}

TEST(Classifier, AClassTakesPacketsOfItsOwnLinkOnly) {
  Policy policy = policy_of(class_marked("a", 1), default_class());
  policy.links.push_back(link_named("second", Direction::ingress));
  policy.classes.push_back(default_class());
  policy.classes.back().link = 1;
  const Shaper core(policy, StartCredit::full, Sim::kKey, Sim::kStart);
  Packet packet = packet_of(1, 100, 1);
  EXPECT_EQ(core.explain(packet).class_index, 0U);
  packet.link = 1;
  EXPECT_EQ(core.explain(packet).class_index, 2U);
}

TEST(Classifier, EachPacketGetsTheClassThatExplainNames) {
  // One 5-tuple whose mark and DSCP change from packet to packet.
  ClassPolicy expedited = class_marked("expedited", 0);
  expedited.match[0] = {};
  expedited.match[0].dscp = {46};
  Sim sim({.policy = policy_of(class_marked("marked", 7, 1_mbit), expedited, default_class(1_mbit))});
  Random random(3);
  for (int n = 0; n < 200; ++n) {
    Packet packet = packet_of(1, 500, random.chance(30) ? 7 : 0);
    packet.headers.dscp = random.chance(30) ? 46 : 0;
    sim.send(packet);  // the simulation compares the verdict's class with explain()
  }
  sim.drain();
  EXPECT_EQ(sim.broken(), "");
  for (const ClassSnapshot& entry : sim.snapshot().classes) EXPECT_GT(entry.in_packets, 20U);
}

TEST(Classifier, AFlowWhoseUserIsKnownLateMovesToItsClass) {
  // A SYN-ACK has no socket; the packets behind it have one.
  ClassPolicy of_user = default_class(10_mbit, "user");
  of_user.is_default = false;
  of_user.match.resize(1);
  of_user.match[0].user.ids = {{1'000, 1'000}};
  Sim sim({.policy = policy_of(of_user, default_class())});
  Packet packet = tcp_packet_of(1);
  sim.send(packet);
  EXPECT_EQ(sim.last_verdict().class_index, 1U);
  packet.user = 1'000;
  sim.send(packet);
  EXPECT_EQ(sim.last_verdict().class_index, 0U);
  EXPECT_EQ(sim.broken(), "");
}

}  // namespace
}  // namespace shaper::sim
