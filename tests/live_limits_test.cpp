// Live limits as text: what a selector says, and the line for another process.
#include "shaper/model/live_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shaper/core/guard.h"
#include "tests/sim_policy.h"

namespace shaper {
namespace {

NameLookup names() {
  return {[](const std::string& name) { return name == "backup" ? std::optional{34U} : std::nullopt; },
          [](const std::string&) { return std::nullopt; }};
}

TEST(Selector, IsAMatchOfAPolicy) {
  const auto match = parse_selector("user=backup,remote=10.0.0.0/8,remote_port=8000-8010,protocol=tcp", names());
  ASSERT_TRUE(match) << match.error();
  EXPECT_EQ(match->user.ids, (std::vector<Range<std::uint32_t>>{{34, 34}}));
  ASSERT_EQ(match->remote.size(), 1U);
  EXPECT_EQ(match->remote[0].bits, 8);
  EXPECT_EQ(match->remote_port, (std::vector<Range<std::uint16_t>>{{8000, 8010}}));
  EXPECT_EQ(match->protocol, std::vector<std::uint8_t>{kTcp});
}

TEST(Selector, NamesOwners) {
  const auto match = [](const char* text) { return parse_selector(text, names()).value(); };
  EXPECT_EQ(match("pid=1234").pid, std::vector<std::uint32_t>{1234});
  EXPECT_EQ(match("unit=backup.service").unit, std::vector<std::string>{"backup.service"});
  EXPECT_EQ(match("cgroup=system.slice/backup.service").cgroup,
            std::vector<std::string>{"/system.slice/backup.service"});
  EXPECT_EQ(match("process=tmux: server,user=backup").process, std::vector<std::string>{"tmux: server"});
  EXPECT_EQ(match("container=3f2a9c").container, std::vector<std::string>{"3f2a9c"});
}

TEST(Selector, SaysWhatIsWrong) {
  const auto error = [](const char* text) { return parse_selector(text, names()).error(); };
  using testing::HasSubstr;
  EXPECT_THAT(error(""), HasSubstr("a selector names flows"));
  EXPECT_THAT(error("user"), HasSubstr("\"user\" is no KEY=VALUE"));
  EXPECT_THAT(error("user="), HasSubstr("is no KEY=VALUE"));
  EXPECT_THAT(error("=backup"), HasSubstr("is no KEY=VALUE"));
  EXPECT_THAT(error("user=backup,user=root"), HasSubstr("\"user\" is there twice"));
  EXPECT_THAT(error("users=backup"), HasSubstr("\"users=backup\": unknown key \"users\": the nearest is \"user\""));
  EXPECT_THAT(error("user=nobody-here"), HasSubstr("nobody-here"));
  EXPECT_THAT(error("remote=10.0.0.0/40"), HasSubstr("10.0.0.0/40"));
  EXPECT_THAT(error("remote_port=99999"), HasSubstr("99999"));
  EXPECT_THAT(error("remote_port=53,protocol=icmp"), HasSubstr("port"));
  EXPECT_THAT(error("mark=0x8000000"), HasSubstr("the shaper's own"));
  EXPECT_THAT(error("pid=rsync"), HasSubstr("\"pid=rsync\": \"pid\" must be the number of a process"));
  EXPECT_THAT(error("unit=backup"), HasSubstr("as \"backup.service\""));
  EXPECT_THAT(error("process=\x1b]0;x"), HasSubstr("\"process=\\x1b]0;x\": this name in \"process\" has a control"));
  EXPECT_THAT(error("process=a\nb"), HasSubstr("control character"));
  EXPECT_THAT(error("us\x1b[31mer"), testing::Not(HasSubstr("\x1b")));
}

TEST(LiveLimits, AreOnTheWayOfEveryClassButTheGuards) {
  Policy policy = sim::policy_of(sim::class_marked("bulk", 7), sim::default_class(DataRate{1'000'000}));
  policy.links[0].rate = DataRate{10'000'000};
  set_guard_ports(policy, {22});
  add_live_limits(policy,
                  std::vector{LiveLimit{3, {5'000}, {}, "user=backup", *parse_selector("user=backup", names())}});
  ASSERT_EQ(policy.limits.size(), 1U);
  EXPECT_EQ(policy.limits[0].name, "live-3");
  EXPECT_EQ(policy.limits[0].selector, "user=backup");
  for (const ClassPolicy& cls : policy.classes) EXPECT_EQ(cls.limits.empty(), cls.is_guard) << cls.name;
  EXPECT_EQ(policy.smallest_rate(policy.classes[0]), DataRate{10'000'000}) << "it is not for all of the class";
}

TEST(LiveLimits, ALineBringsThemToAnotherProcess) {
  LiveLimit limit{7, {5'000'000}, Instant{Nanos{123'456'789}}, "user=backup,protocol=tcp", {}};
  EXPECT_EQ(live_limit_line(limit), "7 5000000 123456789 user=backup,protocol=tcp");
  EXPECT_EQ(parse_live_limit_line(live_limit_line(limit)), limit);
  limit.until.reset();
  EXPECT_EQ(parse_live_limit_line(live_limit_line(limit)), limit);
  for (const char* line :
       {"", "7", "7 5000000 -", "x 5000000 - user=backup", "7 x - user=backup", "7 5 y user=backup"}) {
    EXPECT_FALSE(parse_live_limit_line(line)) << line;
  }
}

}  // namespace
}  // namespace shaper
