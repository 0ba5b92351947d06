// Which policies need owners, and which processes they name.
#include "shaper/model/owner_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shaper/model/config.h"
#include "shaper/model/live_limits.h"

namespace shaper {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Policy policy_with(const std::string& top, const std::string& of_class) {
  const auto parsed = parse_policy("version = 1\n" + top +
                                       "\n[[link]]\nname = \"up\"\ninterface = \"eth0\"\n[[class]]\nname = \"a\"\nlink "
                                       "= \"up\"\n" +
                                       of_class + "\n",
                                   "policy.toml");
  if (parsed) return parsed->policy;
  ADD_FAILURE() << parsed.error().text();
  return {};
}

TEST(OwnerKeys, NeedOwners) {
  for (const std::string match :
       {"{ cgroup = \"a\" }", "{ unit = \"a.service\" }", "{ process = \"a\" }", "{ pid = 1 }",
        "{ container = \"web\" }", "[{ user = 0 }, { not = { user = 1, not = { process = \"a\" } } }]"}) {
    EXPECT_TRUE(needs_owners(policy_with("", "match = " + match))) << match;
  }
  for (const std::string by : {"cgroup", "process", "container"}) {
    EXPECT_TRUE(needs_owners(policy_with("", "each = { by = \"" + by + "\", rate = \"1mbit\" }"))) << by;
    const std::string limit = "limits = \"l\"\n[[limit]]\nname = \"l\"\nrate = \"1mbit\"\nby = \"" + by + "\"";
    EXPECT_TRUE(needs_owners(policy_with("", limit))) << by;
  }
  EXPECT_TRUE(needs_owners(policy_with("owners = true", "")));
}

TEST(OwnerKeys, WhatComesWithPacketsCostsNothing) {
  EXPECT_FALSE(needs_owners(policy_with("", "")));
  EXPECT_FALSE(needs_owners(policy_with("owners = false", "match = { user = 0, group = 5, not = { mark = 1 } }")));
  EXPECT_FALSE(needs_owners(policy_with("", "each = { by = \"user\", rate = \"1mbit\" }\nfair = \"user\"")));
}

TEST(OwnerKeys, WatchesEachProcessOnce) {
  Policy policy = policy_with("", "match = [{ pid = [30, 4] }, { not = { pid = 7, not = { pid = 4 } } }]");
  EXPECT_THAT(watched_pids(policy), ElementsAre(4, 7, 30));
  LiveLimit live{1, {1'000'000}, {}, "pid=5", *parse_selector("pid=5", {})};
  add_live_limits(policy, std::vector{live});
  EXPECT_THAT(watched_pids(policy), ElementsAre(4, 5, 7, 30));
  EXPECT_THAT(watched_pids(policy_with("owners = true", "match = { process = \"4\" }")), IsEmpty());
}

TEST(OwnerKeys, OfALiveLimitNeedOwners) {
  for (const char* selector : {"pid=5", "unit=backup.service", "container=web", "process=rsync", "cgroup=a/b"}) {
    Policy policy = policy_with("", "");
    const auto match = parse_selector(selector, {});
    ASSERT_TRUE(match) << match.error();
    add_live_limits(policy, std::vector{LiveLimit{1, {1'000'000}, {}, selector, *match}});
    EXPECT_TRUE(needs_owners(policy)) << selector;
  }
}

}  // namespace
}  // namespace shaper
