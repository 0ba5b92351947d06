// Good policies and what they come to be; the bad ones are in config_errors_test.cpp, what is warned of in
// config_warnings_test.cpp.
#include "shaper/model/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "shaper/model/address_text.h"
#include "shaper/model/policy_text.h"

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

LinkPolicy plain_link(const std::string& name, const std::string& interface) {
  LinkPolicy link;
  link.name = name;
  link.interface = interface;
  return link;
}

/// The class of kClass with `keys`.
ClassPolicy class_with(const std::string& keys) {
  const ParsedPolicy policy = accepted(kClass + keys);
  return policy.policy.classes.empty() ? ClassPolicy{} : policy.policy.classes.front();
}

TEST(Config, ALeakyLimitOfManyHostsSavesWhatTheyAskFor) {
  const auto limit_with = [](const std::string& lines) {
    const std::string limit = "[cluster]\nredis = \"/r\"\n[[limit]]\nname = \"a\"\nrate = \"8mbit\"\n" + lines;
    return accepted(kClass + ("limits = \"a\"\n" + limit)).policy.limits.at(0);
  };
  EXPECT_EQ(limit_with("scope = \"cluster\"\ndiscipline = \"leaky\"\n").burst, Burst{Nanos{100ms}});
  EXPECT_EQ(limit_with("scope = \"cluster\"\ndiscipline = \"leaky\"\nburst = \"300ms\"\n").burst, Burst{Nanos{300ms}});
  EXPECT_EQ(limit_with("discipline = \"leaky\"\n").burst, Burst{kLeakySlack});
}

TEST(Config, ReadsAClusterAndItsLimits) {
  const ParsedPolicy parsed = accepted(R"(version = 1
[cluster]
redis = "redis://[2001:db8::1]:6379"
host = "edge-1"
hosts = 10
interval = "50ms"
user = "shaper"
password_file = "/etc/shaper/redis password"
[[link]]
name = "up"
interface = "eth0"
[[limit]]
name = "tenant"
rate = "80mbit"
scope = "cluster"
without_redis = "reject"
reserve = true
observe = true
local_rate = "1mbit"
max_rate = "100mbit"
strategy = "grants"
[[class]]
name = "all"
link = "up"
default = true
limits = "tenant"
)");
  ASSERT_TRUE(parsed.host.cluster);
  EXPECT_EQ(*parsed.host.cluster,
            (ClusterPolicy{"[2001:db8::1]:6379", "edge-1", 10, 50ms, "shaper", "/etc/shaper/redis password"}));
  const LimitPolicy& limit = parsed.policy.limits.at(0);
  EXPECT_EQ(limit.scope, Scope::cluster);
  EXPECT_EQ(limit.burst, Burst{Nanos{100ms}});
  EXPECT_EQ(limit.cluster, (ClusterRule{WithoutRedis::reject, true, true, DataRate{1'000'000}, DataRate{100'000'000}}));
  const std::string text = describe_policy(parsed.policy, parsed.host);
  for (const char* part : {"[2001:db8::1]:6379", "edge-1", "10 hosts", "reject", "100 Mbit/s", "nobody is held up"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(Config, ReadsEveryKey) {
  const ParsedPolicy parsed = accepted(file_text(TEST_DATA "/policies/complete.toml"));
  const Policy& policy = parsed.policy;

  EXPECT_EQ(policy.max_flows, 1000U);
  EXPECT_EQ(policy.mark_mask, 0x40U);
  EXPECT_TRUE(policy.realtime);
  EXPECT_TRUE(policy.owners);
  const LinkPolicy uplink{
      "uplink", "eth0", Direction::egress, DataRate{100'000'000}, 38, 84, Cells::none, WithoutDaemon::block, false};
  const LinkPolicy downlink{"downlink",          "eth0", Direction::ingress, DataRate{50'000'000}, 18, 64, Cells::none,
                            WithoutDaemon::pass, true};
  EXPECT_THAT(policy.links, ElementsAre(uplink, downlink));
  const LimitPolicy tenant{
      .name = "tenant", .rate = {40'000'000}, .burst = ByteCount{32'000}, .by = KeyPolicy{EachBy::source, 24, 64}};
  const LimitPolicy tunnel{
      .name = "tunnel", .rate = {30'000'000}, .burst = kLeakySlack, .by = {}, .discipline = Discipline::leaky};
  const LimitPolicy containers{.name = "containers", .rate = {5'000'000}, .by = KeyPolicy{EachBy::container}};
  EXPECT_THAT(policy.limits, ElementsAre(tenant, tunnel, containers));
  ASSERT_EQ(policy.classes.size(), 8U);

  ClassPolicy backup;
  backup.name = "backup";
  backup.match.resize(2);
  backup.match[0].user.ids = {{34, 34}};
  backup.match[1].protocol = {kTcp};
  backup.match[1].remote = {prefix("203.0.113.0/24"), prefix("2001:db8::/32")};
  backup.match[1].remote_port = {{873, 873}, {8000, 8010}};
  backup.rate = DataRate{20'000'000};
  backup.ceil = DataRate{60'000'000};
  backup.priority = 6;
  backup.burst = ByteCount{65'536};
  backup.each = Each{{.by = EachBy::flow}, {2'000'000}, Nanos{10ms}};
  backup.limits = {1, 0};
  backup.max_delay = 1500ms;
  backup.backlog = ByteCount{1'048'576};
  backup.fair = Fair::flow;
  backup.aqm = false;
  backup.ecn = false;
  EXPECT_EQ(policy.classes[0], backup);

  ClassPolicy voice;
  voice.name = "voice";
  voice.priority = 0;
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

  ClassPolicy camera;
  camera.name = "camera";
  camera.link = 1;
  camera.match.resize(1);
  camera.match[0].local = {prefix("10.0.0.7")};
  camera.rate = DataRate{40'000'000};
  camera.ceil = DataRate{40'000'000};
  camera.burst = kLeakySlack;
  camera.fair = Fair::off;
  camera.discipline = Discipline::leaky;
  camera.aqm = false;
  camera.backlog = ByteCount{65'536};
  EXPECT_EQ(policy.classes[3], camera) << "the links of a list in its order";
  camera.link = 0;
  EXPECT_EQ(policy.classes[4], camera);

  ClassPolicy rest;
  rest.name = "rest";
  rest.is_default = true;
  rest.rate = DataRate{35'000'000};
  rest.ceil_is_link = true;
  rest.each = Each{{EachBy::source, 24, 64}, {12'000'000}, kDefaultBurst};
  rest.limits = {0};
  rest.fair = Fair::user;
  EXPECT_EQ(policy.classes[5], rest);
  rest.link = 1;
  EXPECT_EQ(policy.classes[6], rest);

  ClassPolicy services;
  services.name = "services";
  services.match.resize(3);
  services.match[0].cgroup = {"/system.slice/backup.service", "/user.slice"};
  services.match[0].unit = {"mirror.service", "a\\x2db.scope"};
  services.match[1].process = {"rsync", "a very long nam", "unknown"};
  services.match[1].none_of.resize(1);
  services.match[1].none_of[0].pid = {1234, 99};
  services.match[2].container = {"web", "3f2a9c"};
  services.each = Each{{EachBy::cgroup}, {1'000'000}, kDefaultBurst};
  services.limits = {2};
  EXPECT_EQ(policy.classes[7], services);

  EXPECT_THAT(
      parsed.warnings,
      ElementsAre(
          "policy.toml:14:8: warning: the guarantees on this link come to 105 Mbit/s, more than its 100 Mbit/s, "
          "and are scaled down in proportion: \"backup\" gets 19.047619 Mbit/s, \"police\" gets 9.523809 "
          "Mbit/s, \"camera\" gets 38.095238 Mbit/s, \"rest\" gets 33.333333 Mbit/s",
          "policy.toml:24:8: warning: the guarantees on this link come to 75 Mbit/s, more than its 50 Mbit/s, "
          "and are scaled down in proportion: \"camera\" gets 26.666666 Mbit/s, \"rest\" gets 23.333333 "
          "Mbit/s",
          "policy.toml:118:25: warning: the kernel keeps 15 bytes of a process's name: only the first 15 of this one "
          "are compared"));
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

TEST(Config, MakesADefaultClassThatSharesALinkWithARate) {
  const ParsedPolicy parsed = accepted(kLink + "rate = \"10mbit\"\n");
  ClassPolicy made;
  made.name = "default";
  made.is_default = true;
  EXPECT_THAT(parsed.policy.classes, ElementsAre(made));
  EXPECT_EQ(made.over, Over::delay);
  EXPECT_EQ(made.limit(), std::nullopt);
  EXPECT_THAT(parsed.warnings, IsEmpty());
}

TEST(Config, ReadsTheSmallestPolicy) {
  const ParsedPolicy parsed = accepted(file_text(TEST_DATA "/policies/smallest.toml"));
  EXPECT_THAT(parsed.policy.links, ElementsAre(plain_link("up", "wg0")));
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

TEST(Config, KnowsItsDefaults) {
  const ClassPolicy plain = class_with("");
  for (const std::string keys : {"aqm = true\n", "ecn = true\n", "fair = \"host\"\n", "discipline = \"token\"\n",
                                 "default = false\n", "priority = 4\n", "over = \"delay\"\n", "link = [\"up\"]\n"}) {
    const bool link = keys.starts_with("link");
    EXPECT_EQ(link ? accepted(kLink + "[[class]]\nname = \"web\"\n" + keys).policy.classes.front() : class_with(keys),
              plain)
        << keys;
  }
}

TEST(Config, ReadsTheWordsOfFairness) {
  const std::vector<std::pair<std::string, Fair>> words{{"host", Fair::host},     {"flow", Fair::flow},
                                                        {"source", Fair::source}, {"destination", Fair::destination},
                                                        {"user", Fair::user},     {"off", Fair::off}};
  for (const auto& [word, fair] : words) EXPECT_EQ(class_with("fair = \"" + word + "\"\n").fair, fair) << word;
}

TEST(Config, GuardsALinkUnlessToldOtherwise) {
  EXPECT_TRUE(accepted(kLink).policy.links[0].guard);
  EXPECT_TRUE(accepted(kLink + "guard = true\n").policy.links[0].guard);
  EXPECT_FALSE(accepted(kLink + "guard = false\n").policy.links[0].guard);
  EXPECT_THAT(accepted(kLink).policy.guard_ports, IsEmpty()) << "they are a fact of the host";
  EXPECT_EQ(accepted(kLink + "guard = false\n[[class]]\nname = \"guard\"\nlink = \"up\"\n").policy.classes[0].name,
            "guard");
}

TEST(Config, KnowsHowLinksCarryFrames) {
  struct Case {
    std::string keys;
    std::uint32_t overhead, mpu;
    Cells cells;
  };
  const std::vector<Case> cases{{"", 14, 0, Cells::none},
                                {"overhead = \"ethernet\"\n", 14, 0, Cells::none},
                                {"overhead = \"ether-vlan\"\n", 18, 0, Cells::none},
                                {"overhead = \"ip\"\n", 0, 0, Cells::none},
                                {"overhead = \"raw\"\n", 0, 0, Cells::none},
                                {"overhead = \"noatm\"\n", 0, 0, Cells::none},
                                {"overhead = \"atm\"\n", 0, 0, Cells::atm},
                                {"overhead = \"ptm\"\n", 0, 0, Cells::ptm},
                                {"overhead = \"conservative\"\n", 48, 0, Cells::atm},
                                {"overhead = \"docsis\"\n", 18, 64, Cells::none},
                                {"overhead = \"pppoa-vcmux\"\n", 10, 0, Cells::atm},
                                {"overhead = \"pppoa-llc\"\n", 14, 0, Cells::atm},
                                {"overhead = \"pppoe-vcmux\"\n", 32, 0, Cells::atm},
                                {"overhead = \"pppoe-llcsnap\"\n", 40, 0, Cells::atm},
                                {"overhead = \"bridged-vcmux\"\n", 24, 0, Cells::atm},
                                {"overhead = \"bridged-llcsnap\"\n", 32, 0, Cells::atm},
                                {"overhead = \"ipoa-vcmux\"\n", 8, 0, Cells::atm},
                                {"overhead = \"ipoa-llcsnap\"\n", 16, 0, Cells::atm},
                                {"overhead = \"pppoe-ptm\"\n", 30, 0, Cells::ptm},
                                {"overhead = \"bridged-ptm\"\n", 22, 0, Cells::ptm},
                                {"mpu = 72\noverhead = \"docsis\"\n", 18, 72, Cells::none},
                                {"overhead = \"docsis\"\nmpu = 0\n", 18, 0, Cells::none},
                                {"overhead = 44\nmpu = 64\n", 44, 64, Cells::none}};
  for (const Case& expected : cases) {
    const Policy policy = accepted(kLink + expected.keys).policy;
    ASSERT_EQ(policy.links.size(), 1U);
    EXPECT_EQ(policy.links[0].overhead, expected.overhead) << expected.keys;
    EXPECT_EQ(policy.links[0].smallest_frame, expected.mpu) << expected.keys;
    EXPECT_EQ(policy.links[0].cells, expected.cells) << expected.keys;
  }
}

TEST(Config, ReadsTheMarkMaskAsNumberOrText) {
  const std::vector<std::pair<std::string, std::uint32_t>> masks{
      {"1", 1}, {"0x80000000", 0x8000'0000}, {"\"0x80000000\"", 0x8000'0000}, {"\"64\"", 64}};
  for (const auto& [text, mask] : masks) {
    EXPECT_EQ(accepted("mark_mask = " + text + "\n" + kLink).policy.mark_mask, mask) << text;
  }
  EXPECT_EQ(accepted(kLink).policy.mark_mask, kDefaultMarkMask);
}

TEST(Config, AMarkMayHaveEveryBitButTheShapersOwn) {
  const std::string match = "match = { mark = \"0x8000001/0x8000001\" }\n";
  const Policy other = accepted("mark_mask = 2\n" + kClass + match).policy;
  EXPECT_EQ(other.classes[0].match[0].mark, (std::vector<MarkMatch>{{0x800'0001, 0x800'0001}}));
}

TEST(Config, ReadsLeakyClasses) {
  const std::string leaky = "rate = \"8mbit\"\ndiscipline = \"leaky\"\n";
  EXPECT_EQ(class_with(leaky).burst, Burst{kLeakySlack});
  EXPECT_EQ(class_with(leaky).backlog, std::nullopt);
  EXPECT_EQ(class_with(leaky + "capacity = \"20kB\"\n").backlog, ByteCount{20'000});
  EXPECT_EQ(class_with(leaky + "backlog = \"20kB\"\n").backlog, ByteCount{20'000});
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
      {"{ user = \"unknown\" }", "{ user = 0 }"},
      {"{ cgroup = \"a/b\" }", "{ cgroup = \"a\" }"},
      {"{ cgroup = \"a\" }", "{ cgroup = \"ab\" }"},
      {"{ cgroup = \"/\" }", "{ process = \"rsync\" }"},
      {"{ unit = \"a.service\" }", "{ unit = \"b.service\" }"},
      {"{ process = \"unknown\" }", "{ process = \"rsync\" }"},
      {"{ pid = 12 }", "{ pid = [12, 13] }"},
      {"{ container = \"abcd\" }", "{ container = \"abcdef\" }"},
      {"{ not = { process = \"rsync\" } }", "{ process = [\"rsync\", \"curl\"] }"}};
  for (const auto& [first, second] : sound) {
    accepted(kClass + "match = " + first + "\n[[class]]\nname = \"late\"\nlink = \"up\"\nmatch = " + second + "\n");
  }
  // ... and here it never has one.
  const std::vector<std::pair<std::string, std::string>> covered{
      {"{ remote = [\"0.0.0.0/0\", \"::/0\"] }", "[{ remote = \"10.0.0.1\" }, { remote = \"::1\", dscp = \"EF\" }]"},
      {"{ mark = \"0x1/0xf\" }", "{ mark = \"0x11/0xff\" }"},
      {"{ user = [\"1000-2000\", \"unknown\"] }", "{ user = [1500, \"unknown\"] }"},
      {"{ protocol = \"icmp\" }", "{ protocol = 58 }"},
      {"{ cgroup = \"a\" }", "{ cgroup = [\"a\", \"/a/b\"], unit = \"x.service\" }"},
      {"{ cgroup = \"/\" }", "{ cgroup = \"a\" }"},
      {"{ unit = [\"a.service\", \"b.service\"] }", "{ unit = \"b.service\" }"},
      {"{ process = \"a very long name\" }", "{ process = \"a very long named one\" }"},
      {"{ pid = [12, 13] }", "{ pid = 13 }"},
      {"{ container = \"web\" }", "{ container = \"web\", user = 0 }"},
      {"{ not = { process = \"rsync\" } }", "{ not = { process = [\"rsync\", \"curl\"] } }"}};
  for (const auto& [first, second] : covered) {
    const auto policy = parse_policy(
        kClass + "match = " + first + "\n[[class]]\nname = \"late\"\nlink = \"up\"\nmatch = " + second + "\n",
        "policy.toml");
    ASSERT_FALSE(policy) << first << second;
    EXPECT_THAT(policy.error().message, HasSubstr("class \"late\" can never match"));
  }
}

TEST(Config, MakesAPolicyForAnInterface) {
  const ParsedPolicy parsed = accepted(policy_for_interface("eth0", "20mbit"));
  LinkPolicy link = plain_link("uplink", "eth0");
  link.rate = DataRate{20'000'000};
  EXPECT_THAT(parsed.policy.links, ElementsAre(link));
  ASSERT_EQ(parsed.policy.classes.size(), 1U);
  EXPECT_EQ(parsed.policy.classes[0].over, Over::delay);
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
  EXPECT_GE(count, 5);
}

}  // namespace
}  // namespace shaper
