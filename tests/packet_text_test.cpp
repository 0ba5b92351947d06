// The packet of `shaper explain`: what people write, what they get wrong, and the answer.
#include "shaper/model/packet_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shaper/core/guard.h"

namespace shaper {
namespace {

const NameLookup kNames{
    [](const std::string& name) { return name == "backup" ? std::optional(34u) : std::nullopt; },
    [](const std::string& name) { return name == "staff" ? std::optional(50u) : std::nullopt; },
};

TEST(PacketText, AllKeysAreRead) {
  const auto question =
      parse_packet("tcp 10.0.0.1:40000 > 10.0.0.2:443 user=backup group=staff mark=0x10 dscp=46 link=uplink", kNames);
  ASSERT_TRUE(question) << question.error();
  const Packet& packet = question->packet;
  EXPECT_EQ(packet.headers.family, Family::ipv4);
  EXPECT_EQ(packet.headers.protocol, kTcp);
  EXPECT_EQ(packet.headers.source[3], 1);
  EXPECT_EQ(packet.headers.destination_port, 443);
  EXPECT_EQ(packet.headers.dscp, 46);
  EXPECT_EQ(packet.user, 34u);
  EXPECT_EQ(packet.group, 50u);
  EXPECT_EQ(packet.mark, 16u);
  EXPECT_EQ(question->links, std::vector<std::string>{"uplink"});
}

TEST(PacketText, WhatIsPrintedCanBeReadAgain) {
  for (const char* text : {"tcp 10.0.0.1:40000 > 10.0.0.2:443", "udp [2001:db8::1]:53 > [2001:db8::2]:0 user=0",
                           "icmp 10.0.0.1 > 10.0.0.2 mark=0x10", "icmp 2001:db8::1 > 2001:db8::2 dscp=8 link=a link=b",
                           "sctp 10.0.0.1:7 > 10.0.0.2 group=5", "99 10.0.0.1 > 10.0.0.2"}) {
    const auto question = parse_packet(text, {});
    ASSERT_TRUE(question) << text << ": " << question.error();
    EXPECT_EQ(format_packet(*question), text);
  }
}

TEST(PacketText, IcmpBetweenIpv6AddressesIsIcmpv6) {
  EXPECT_EQ(parse_packet("icmp ::1 > ::2", {})->packet.headers.protocol, kIcmpv6);
  EXPECT_EQ(parse_packet("icmp [::1] > [::2]", {})->packet.headers.protocol, kIcmpv6);
}

TEST(PacketText, MistakesAreNamed) {
  struct Case {
    const char* text;
    const char* error;
  };
  const Case cases[] = {
      {"", "a packet is written PROTOCOL SOURCE"},
      {"tcp 10.0.0.1:1 10.0.0.2:2", "a packet is written PROTOCOL SOURCE"},
      {"tpc 10.0.0.1:1 > 10.0.0.2:2", "is not a protocol"},
      {"tcp 10.0.0.1 > 10.0.0.2:2", "needs a port for tcp"},
      {"tcp 10.0.0.1:1 > 10.0.0.2", "needs a port for tcp"},
      {"tcp 10.0.0.256:1 > 10.0.0.2:2", "is not an address"},
      {"tcp 10.0.0.1:65536 > 10.0.0.2:2", "is not an address"},
      {"tcp host:1 > 10.0.0.2:2", "is not an address"},
      {"icmp - > -", "is not an address"},
      {"tcp [10.0.0.1]:1 > 10.0.0.2:2", "is not an address"},
      {"tcp 10.0.0.1:1 > [::1]:2", "one address is IPv4 and the other one IPv6"},
      {"icmp ::1 > ::2 user=nobody-here", "there is no user"},
      {"icmp ::1 > ::2 group=", "there is no group"},
      {"icmp ::1 > ::2 mark=x", "is not a mark"},
      {"icmp ::1 > ::2 pid=x", "is not the number of a process"},
      {"icmp ::1 > ::2 dscp=64", "is not a DSCP from 0 to 63"},
      {"icmp ::1 > ::2 colour=red", "is not a key of a packet"},
      {"icmp ::1 > ::2 fast", "is not of the form key=value"},
  };
  for (const Case& each : cases) {
    const auto question = parse_packet(each.text, kNames);
    ASSERT_FALSE(question) << each.text;
    EXPECT_NE(question.error().find(each.error), std::string::npos) << each.text << "\n" << question.error();
  }
}

TEST(PacketText, OwnersArePutToTheDaemonAsTheyWereWritten) {
  const auto question =
      parse_packet("tcp 10.0.0.1:1 > 10.0.0.2:2 process=rsync pid=7 unit=a.service container=web", {});
  ASSERT_TRUE(question) << question.error();
  EXPECT_EQ(format_packet(*question), "tcp 10.0.0.1:1 > 10.0.0.2:2 process=rsync pid=7 unit=a.service container=web");
}

TEST(PacketText, OwnersDecideTheClass) {
  const auto parsed = parse_policy(R"(
version = 1
[[link]]
name = "up"
interface = "eth0"
[[class]]
name = "sync"
link = "up"
match = [ { process = "rsync" }, { pid = 7 }, { unit = "a.service" }, { cgroup = "b" }, { container = "web" } ]
)",
                                   "test.toml");
  ASSERT_TRUE(parsed);
  const Shaper shaper(parsed->policy, StartCredit::full, HashKey{}, Instant{});
  const auto class_for = [&](const std::string& words) {
    const auto question = parse_packet("tcp 10.0.0.1:1 > 10.0.0.2:2 " + words, {});
    return question ? explain_packet(*question, parsed->policy, shaper).value_or("") : question.error();
  };
  for (const char* words : {"process=rsync", "pid=7", "unit=a.service", "cgroup=b/c", "cgroup=/b", "container=web"}) {
    EXPECT_THAT(class_for(words), testing::StartsWith("up: class sync ")) << words;
  }
  for (const char* words : {"user=1", "process=curl", "pid=8", "unit=b.service", "cgroup=c/b", "container=db"}) {
    EXPECT_THAT(class_for(words), testing::StartsWith("up: class default ")) << words;
  }
}

class Explain : public testing::Test {
 protected:
  std::string answer(std::string_view text, std::optional<Instant> now = std::nullopt) {
    const auto question = parse_packet(text, kNames);
    EXPECT_TRUE(question) << question.error();
    const auto explained = explain_packet(*question, parsed_->policy, shaper_, now);
    return explained ? *explained : "error: " + explained.error();
  }

  tl::expected<ParsedPolicy, ConfigError> parsed_ = parse_policy(R"(
version = 1
[[link]]
name = "up"
interface = "eth0"
[[link]]
name = "spare"
interface = "eth1"
[[class]]
name = "web"
link = "up"
match = [ { protocol = "udp" }, { destination_port = 443 } ]
rate = "5mbit"
each = { by = "flow", rate = "1mbit" }
[[class]]
name = "rest"
link = "up"
rate = "1mbit"
over = "drop"
burst = "50ms"
)",
                                                                 "test.toml");
  Shaper shaper_{parsed_->policy, StartCredit::full, HashKey{}, Instant{}};
};

TEST_F(Explain, SaysWhichClassAndWhyOnEveryLink) {
  EXPECT_EQ(answer("tcp 10.0.0.1:1 > 10.0.0.2:443"),
            "up: class web (match 2 of 2 holds): total 5 Mbit/s, each flow 1 Mbit/s\n"
            "spare: class default (no other class matches): counted only\n");
}

TEST_F(Explain, AsksOneLinkIfOneIsNamed) {
  EXPECT_EQ(answer("tcp 10.0.0.1:1 > 10.0.0.2:80 link=up"),
            "up: class rest (the class matches everything): total 1 Mbit/s, dropped above it\n");
  EXPECT_TRUE(answer("tcp 10.0.0.1:1 > 10.0.0.2:80 link=sideways").starts_with("error: the policy has no link"));
}

TEST(ExplainRates, NamesEveryRateThatThePacketsObey) {
  const auto parsed = parse_policy(R"(
version = 1
[[link]]
name = "up"
interface = "eth0"
rate = "100mbit"
[[limit]]
name = "tenant"
rate = "50mbit"
[[limit]]
name = "nets"
rate = "5mbit"
by = "source/24,64"
[[class]]
name = "web"
link = "up"
match = { destination_port = 443 }
rate = "20mbit"
ceil = "60mbit"
limits = ["tenant", "nets"]
[[class]]
name = "rest"
link = "up"
rate = "1mbit"
ceil = "link"
)",
                                   "test.toml");
  ASSERT_TRUE(parsed) << parsed.error().text();
  const Shaper shaper(parsed->policy, StartCredit::full, HashKey{}, Instant{});
  const auto answer = [&](std::string_view packet) {
    return explain_packet(parse_packet(packet, kNames).value(), parsed->policy, shaper, std::nullopt).value();
  };
  EXPECT_EQ(answer("tcp 10.0.0.1:1 > 10.0.0.2:443"),
            "up: class web (match 1 of 1 holds): guaranteed 20 Mbit/s, total 60 Mbit/s, limit tenant 50 Mbit/s, "
            "limit nets for each source/24,64 5 Mbit/s, link 100 Mbit/s\n");
  EXPECT_EQ(answer("tcp 10.0.0.1:1 > 10.0.0.2:80"),
            "up: class rest (the class matches everything): guaranteed 1 Mbit/s, link 100 Mbit/s\n");
}

TEST_F(Explain, SaysWhereAPortIsGuarded) {
  Policy& policy = parsed_->policy;
  set_guard_ports(policy, {22});
  shaper_ = Shaper(policy, StartCredit::full, HashKey{}, Instant{});
  EXPECT_EQ(answer("tcp 10.0.0.1:22 > 10.0.0.2:5000"),
            "up: class rest (the class matches everything): total 1 Mbit/s, dropped above it\n"
            "  its local port is guarded: class guard instead (256 kbit/s total), while the flow is sparse (64 kbit/s, "
            "8 kB at once)\n"
            "spare: class default (no other class matches): counted only\n");
}

TEST_F(Explain, OfARunningShaperSaysWhatWaits) {
  EXPECT_NE(answer("tcp 10.0.0.1:1 > 10.0.0.2:443 link=up", Instant{}).find("nothing waits in this class now"),
            std::string::npos);
}

}  // namespace
}  // namespace shaper
