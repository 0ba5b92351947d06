// Good policies and what they come to be; the bad ones are in config_errors_test.cpp.
#include "shaper/model/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "shaper/model/address_text.h"

namespace shaper {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

NameLookup names() {
  return {[](const std::string& name) -> std::optional<std::uint32_t> {
            if (name == "backup") return 34;
            return std::nullopt;
          },
          {}};
}

ParsedPolicy accepted(std::string_view text) {
  auto policy = parse_policy(text, "policy.toml", names());
  if (policy) return *std::move(policy);
  ADD_FAILURE() << policy.error().text() << "\n" << text;
  return {};
}

Prefix prefix(std::string_view text) {
  return *parse_prefix(text);
}

const std::string kLink = "version = 1\n[[link]]\nname = \"up\"\ninterface = \"eth0\"\n";
const std::string kClass = kLink + "[[class]]\nname = \"web\"\nlink = \"up\"\n";

/// The class of kClass with `keys`.
ClassPolicy class_with(const std::string& keys) {
  const ParsedPolicy policy = accepted(kClass + keys);
  return policy.policy.classes.empty() ? ClassPolicy{} : policy.policy.classes.front();
}

TEST(Config, ReadsEveryKey) {
  const ParsedPolicy parsed = accepted(file_text(TEST_DATA "/policies/complete.toml"));
  const Policy& policy = parsed.policy;

  EXPECT_EQ(policy.max_flows, 1000U);
  const LinkPolicy uplink{"uplink", "eth0", Direction::egress, 38, 84, WithoutDaemon::block};
  EXPECT_THAT(policy.links, ElementsAre(uplink));
  ASSERT_EQ(policy.classes.size(), 4U);

  ClassPolicy backup;
  backup.name = "backup";
  backup.match.resize(2);
  backup.match[0].user.ids = {{34, 34}};
  backup.match[1].protocol = {kTcp};
  backup.match[1].remote = {prefix("203.0.113.0/24"), prefix("2001:db8::/32")};
  backup.match[1].remote_port = {{873, 873}, {8000, 8010}};
  backup.rate = DataRate{20'000'000};
  backup.ceil = DataRate{60'000'000};
  backup.burst = ByteCount{65'536};
  backup.each = Each{.by = EachBy::flow, .rate = {2'000'000}, .burst = Nanos{10ms}};
  backup.max_delay = 1500ms;
  backup.backlog = ByteCount{1'048'576};
  EXPECT_EQ(policy.classes[0], backup);

  ClassPolicy voice;
  voice.name = "voice";
  voice.over = Over::count;
  voice.match.resize(1);
  voice.match[0].dscp = {46, 40, 3};
  voice.match[0].none_of.resize(2);
  voice.match[0].none_of[0].local_port = {{53, 53}};
  voice.match[0].none_of[1].group.ids = {{100, 200}};
  EXPECT_EQ(policy.classes[1], voice);

  ClassPolicy police;
  police.name = "police";
  police.rate = DataRate{10'000'000};
  police.burst = Nanos{50ms};
  police.over = Over::drop;
  police.match.resize(2);
  police.match[0].protocol = {kUdp, kIcmp, kIcmpv6, 47};
  police.match[0].source = {prefix("10.0.0.0/8")};
  police.match[0].destination = {prefix("192.0.2.1")};
  police.match[0].user = {{{1000, 59'999}, {0, 0}}, true};
  police.match[0].mark = {{0x10, 0xf0}, {7, 0xffff'ffff}};
  police.match[1].source_port = {{5000, 5000}};
  police.match[1].destination_port = {{5001, 5010}};
  police.match[1].local = {prefix("2001:db8::1")};
  EXPECT_EQ(policy.classes[2], police);

  ClassPolicy rest;
  rest.name = "rest";
  rest.is_default = true;
  rest.each = Each{.by = EachBy::source, .bits_ipv4 = 24, .bits_ipv6 = 64, .rate = {12'000'000}};
  EXPECT_EQ(policy.classes[3], rest);

  EXPECT_THAT(parsed.warnings,
              ElementsAre("policy.toml:24:8: warning: a guarantee cannot be enforced on a link without "
                          "a rate: only the ceil holds"));
}

TEST(Config, MakesADefaultClassForEachLinkWithoutOne) {
  const Policy policy = accepted(file_text(TEST_DATA "/policies/two-links.toml")).policy;
  ASSERT_EQ(policy.classes.size(), 4U);
  EXPECT_EQ(policy.links[0].name, "a");
  EXPECT_EQ(policy.links[0].overhead, 0U);
  EXPECT_EQ(policy.links[1].overhead, 14U);
  EXPECT_EQ(policy.classes[0].link, 1) << "a class may stand before its link";
  EXPECT_EQ(policy.classes[0].ceil, kFastestRate);
  EXPECT_EQ(policy.classes[1].link, 0) << "names are unique in a link only";
  EXPECT_EQ(policy.classes[1].ceil, kSlowestRate);
  for (const LinkIndex link : {LinkIndex{0}, LinkIndex{1}}) {
    ClassPolicy made;
    made.name = "default";
    made.link = link;
    made.is_default = true;
    made.over = Over::count;
    EXPECT_EQ(policy.classes[2U + link], made);
  }
}

TEST(Config, ReadsTheSmallestPolicy) {
  const ParsedPolicy parsed = accepted(file_text(TEST_DATA "/policies/smallest.toml"));
  EXPECT_THAT(parsed.policy.links, ElementsAre(LinkPolicy{.name = "up", .interface = "wg0"}));
  ASSERT_EQ(parsed.policy.classes.size(), 1U);
  EXPECT_TRUE(parsed.policy.classes[0].is_default);
  EXPECT_EQ(parsed.policy.max_flows, kDefaultMaxFlows);
  EXPECT_THAT(parsed.warnings, IsEmpty());
}

TEST(Config, KeepsRatesExact) {
  const std::vector<std::pair<std::string, std::uint64_t>> rates{{"300bit", 300},
                                                                 {"4.294gbit", 4'294'000'000},
                                                                 {"4.296gbit", 4'296'000'000},
                                                                 {"34.4gbit", 34'400'000'000},
                                                                 {"69gbit", 69'000'000'000},
                                                                 {"400gbit", 400'000'000'000}};
  for (const auto& [text, bits] : rates) {
    const ClassPolicy policy = class_with("rate = \"" + text + "\"\n");
    EXPECT_EQ(policy.rate, DataRate{bits}) << text;
    EXPECT_EQ(policy.limit(), DataRate{bits}) << "a rate alone is the limit too";
  }
}

TEST(Config, AcceptsValuesThatAreOff) {
  const ClassPolicy plain = class_with("");
  for (const std::string keys :
       {"aqm = false\n", "ecn = false\n", "fair = \"flow\"\n", "discipline = \"token\"\n", "default = false\n"}) {
    EXPECT_EQ(class_with(keys), plain) << keys;
  }
}

TEST(Config, TellsClassesThatCanMatchFromThoseThatCannot) {
  // The second class always has packets of its own: nothing may be said against it.
  const std::vector<std::pair<std::string, std::string>> sound{
      {"{ protocol = \"tcp\", remote_port = 80 }", "{ protocol = \"tcp\" }"},
      {"{ remote = \"10.0.0.0/16\" }", "{ remote = \"10.0.0.0/8\" }"},
      {"{ remote = \"10.0.0.0/8\" }", "{ remote = [\"10.1.0.0/16\", \"192.0.2.0/24\"] }"},
      {"{ remote = \"0.0.0.0/0\" }", "{ remote = \"::/0\" }"},
      {"{ remote = \"10.0.0.0/8\" }", "{ local = \"10.0.0.0/8\" }"},
      {"{ protocol = \"tcp\" }", "[{ protocol = \"tcp\" }, { protocol = \"udp\" }]"},
      {"{ not = { protocol = \"tcp\" } }", "{ protocol = \"tcp\" }"},
      {"{ protocol = \"tcp\", not = { remote_port = \"20-30\" } }",
       "{ protocol = \"tcp\", not = { remote_port = 22 } }"},
      {"{ mark = \"0x11/0xff\" }", "{ mark = \"0x1/0xf\" }"},
      {"{ user = \"1000-2000\" }", "{ user = [\"1500\", \"unknown\"] }"},
      {"{ user = \"unknown\" }", "{ user = 0 }"}};
  for (const auto& [first, second] : sound) {
    accepted(kClass + "match = " + first + "\n[[class]]\nname = \"late\"\nlink = \"up\"\nmatch = " + second + "\n");
  }
  // ... and here it never has one.
  const std::vector<std::pair<std::string, std::string>> covered{
      {"{ remote = [\"0.0.0.0/0\", \"::/0\"] }", "[{ remote = \"10.0.0.1\" }, { remote = \"::1\", dscp = \"EF\" }]"},
      {"{ mark = \"0x1/0xf\" }", "{ mark = \"0x11/0xff\" }"},
      {"{ user = [\"1000-2000\", \"unknown\"] }", "{ user = [1500, \"unknown\"] }"},
      {"{ protocol = \"icmp\" }", "{ protocol = 58 }"}};
  for (const auto& [first, second] : covered) {
    const auto policy = parse_policy(
        kClass + "match = " + first + "\n[[class]]\nname = \"late\"\nlink = \"up\"\nmatch = " + second + "\n",
        "policy.toml");
    ASSERT_FALSE(policy) << first << second;
    EXPECT_THAT(policy.error().message, HasSubstr("class \"late\" can never match"));
  }
}

TEST(Config, Warns) {
  const std::vector<std::pair<std::string, std::string>> warnings{
      {"rate = \"10mbit\"\nover = \"drop\"\n",
       "policy.toml:5:1: warning: a policer with a burst of 5 kB drops what TCP sends in a row and stays below its "
       "rate: "
       "burst = \"50ms\" (62500 B) or more is advised"},
      {"over = \"drop\"\neach = { by = \"flow\", rate = \"1mbit\", burst = \"3000B\" }\n",
       "policy.toml:9:47: warning: a policer with a burst of 3 kB drops what TCP sends in a row and stays below its "
       "rate: burst = \"50ms\" (6250 B) or more is advised"},
      {"rate = \"1mbit\"\nceil = \"2mbit\"\n",
       "policy.toml:8:8: warning: a guarantee cannot be enforced on a link without a rate: only the ceil holds"},
      {"burst = \"10ms\"\n", "policy.toml:8:9: warning: this burst does nothing: there is no rate and no ceil"}};
  for (const auto& [keys, warning] : warnings)
    EXPECT_THAT(accepted(kClass + keys).warnings, ElementsAre(warning)) << keys;
  for (const std::string keys : {"rate = \"10mbit\"\nover = \"drop\"\nburst = \"50ms\"\n", "rate = \"10mbit\"\n",
                                 "rate = \"1mbit\"\nceil = \"1mbit\"\n"}) {
    EXPECT_THAT(accepted(kClass + keys).warnings, IsEmpty()) << keys;
  }
}

TEST(Config, MakesAPolicyForAnInterface) {
  const ParsedPolicy parsed = accepted(policy_for_interface("eth0", "20mbit"));
  EXPECT_THAT(parsed.policy.links, ElementsAre(LinkPolicy{.name = "uplink", .interface = "eth0"}));
  ClassPolicy all;
  all.name = "all";
  all.is_default = true;
  all.rate = DataRate{20'000'000};
  EXPECT_THAT(parsed.policy.classes, ElementsAre(all));
  EXPECT_THAT(parsed.warnings, IsEmpty());
}

TEST(Config, RefusesInterfacesThatWouldWriteAPolicyOfTheirOwn) {
  for (const std::string interface : {"eth0\"\nname = \"x", "\\", "eth0\n", "", "\x7f", "\xff", "eth0\"#"}) {
    EXPECT_FALSE(parse_policy(policy_for_interface(interface, "20mbit"), "the command line")) << interface;
  }
  EXPECT_FALSE(parse_policy(policy_for_interface("eth0", "20mbit\"\nceil = \"1gbit"), "the command line"));
}

TEST(Config, AcceptsTheExamples) {
  int count = 0;
  for (const auto& example : std::filesystem::directory_iterator(TEST_DATA "/../../packaging/examples")) {
    if (example.path().extension() != ".toml") continue;
    ++count;
    EXPECT_THAT(accepted(file_text(example.path())).warnings, IsEmpty()) << example.path();
  }
  EXPECT_GE(count, 3);
}

}  // namespace
}  // namespace shaper
