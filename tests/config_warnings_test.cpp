// Policies that are accepted with a warning, each with the exact line that a user sees, and close ones without.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shaper/model/config.h"
#include "shaper/model/config_parts.h"

namespace shaper {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> warnings_of(const std::string& text) {
  auto policy = parse_policy(text, "policy.toml");
  if (policy) return policy->warnings;
  ADD_FAILURE() << policy.error().text() << "\n" << text;
  return {};
}

const std::string kLink = "version = 1\n[[link]]\nname = \"up\"\ninterface = \"eth0\"\n";
const std::string kRatedLink = "version = 1\n[[link]]\nname = \"up\"\ninterface = \"eth0\"\nrate = \"100mbit\"\n";
const std::string kTable = "[[class]]\nname = \"web\"\nlink = \"up\"\n";
const std::string kBulk = "[[class]]\nname = \"bulk\"\nlink = \"up\"\ndefault = true\n";
const std::string kMatched = kTable + "match = { protocol = \"tcp\" }\n";

struct Warned {
  std::string text;
  std::string warning;  ///< "line:column: warning: message"
};

void expect_warnings(const std::string& before, const std::vector<Warned>& table) {
  for (const Warned& each : table) {
    EXPECT_THAT(warnings_of(before + each.text), ElementsAre("policy.toml:" + each.warning)) << each.text;
  }
}

TEST(Warnings, AboutPolicers) {
  expect_warnings(
      kLink + kTable,
      {{"rate = \"10mbit\"\nover = \"drop\"\n",
        "5:1: warning: a policer with a burst of 5 kB drops what TCP sends in a row and stays below its rate: burst = "
        "\"50ms\" (62500 B) or more is advised"},
       {"over = \"drop\"\neach = { by = \"flow\", rate = \"1mbit\", burst = \"3000B\" }\n",
        "9:47: warning: a policer with a burst of 3 kB drops what TCP sends in a row and stays below its rate: burst = "
        "\"50ms\" (6250 B) or more is advised"}});
  EXPECT_THAT(warnings_of(kLink + kTable + "rate = \"10mbit\"\nover = \"drop\"\nburst = \"50ms\"\n"), IsEmpty());
}

TEST(Warnings, AboutLinksWithoutARate) {
  expect_warnings(
      kLink + kTable,
      {{"rate = \"1mbit\"\nceil = \"2mbit\"\n",
        "8:8: warning: a guarantee cannot be enforced on a link without a rate: only the ceil holds"},
       {"rate = \"1mbit\"\nceil = \"link\"\n",
        "8:8: warning: a guarantee cannot be enforced on a link without a rate: nothing holds"},
       {"burst = \"10ms\"\n", "8:9: warning: this burst does nothing: there is no rate and no ceil"},
       {"burst = \"10ms\"\nceil = \"link\"\n", "8:9: warning: this burst does nothing: there is no rate and no ceil"}});
  for (const std::string keys : {"rate = \"10mbit\"\n", "rate = \"1mbit\"\nceil = \"1mbit\"\n", "ceil = \"link\"\n",
                                 "rate = \"1mbit\"\nceil = \"2mbit\"\nover = \"count\"\n"}) {
    EXPECT_THAT(warnings_of(kLink + kTable + keys), IsEmpty()) << keys;
  }
  EXPECT_THAT(warnings_of(kRatedLink + kTable + "rate = \"1mbit\"\nceil = \"2mbit\"\n"), IsEmpty());
}

TEST(Warnings, AreSaidOnceForAllLinksOfAClass) {
  EXPECT_THAT(
      warnings_of("version = 1\nlink = [{ name = \"a\", interface = \"a\" }, { name = \"b\", interface = \"b\" }]\n"
                  "[[class]]\nname = \"web\"\nlink = [\"a\", \"b\"]\nrate = \"1mbit\"\nceil = \"2mbit\"\n"),
      ElementsAre("policy.toml:6:8: warning: a guarantee cannot be enforced on a link without a rate: only the "
                  "ceil holds"));
}

TEST(Warnings, AboutMoreThanTheLinkHas) {
  expect_warnings(kRatedLink,
                  {{kTable + "ceil = \"200mbit\"\n",
                    "9:8: warning: the ceil, 200 Mbit/s, is above the rate of link \"up\", 100 Mbit/s, which holds"},
                   {kTable + "rate = \"150mbit\"\n",
                    "5:8: warning: the guarantees on this link come to 150 Mbit/s, more than its 100 Mbit/s, and are "
                    "scaled down in "
                    "proportion: \"web\" gets 100 Mbit/s"},
                   {kMatched + "rate = \"80mbit\"\nceil = \"link\"\n" + kBulk + "rate = \"40mbit\"\n",
                    "5:8: warning: the guarantees on this link come to 120 Mbit/s, more than its 100 Mbit/s, and are "
                    "scaled down in "
                    "proportion: \"web\" gets 66.666666 Mbit/s, \"bulk\" gets 33.333333 Mbit/s"}});
  for (const std::string& policy :
       {kTable + "rate = \"100mbit\"\n", kTable + "ceil = \"100mbit\"\n",
        kMatched + "rate = \"60mbit\"\n" + kBulk + "rate = \"40mbit\"\nceil = \"link\"\n",
        kMatched + "rate = \"90mbit\"\nover = \"count\"\n" + kBulk + "rate = \"40mbit\"\n"}) {
    EXPECT_THAT(warnings_of(kRatedLink + policy), IsEmpty()) << policy;
  }
}

TEST(Warnings, NameEightOfManyGuarantees) {
  std::string policy = kRatedLink;
  for (int i = 1; i <= 10; ++i) {
    policy += "[[class]]\nname = \"c" + std::to_string(i) +
              "\"\nlink = \"up\"\nrate = \"20mbit\"\nmatch = { mark = " + std::to_string(i) + " }\n";
  }
  EXPECT_THAT(warnings_of(policy), ElementsAre(HasSubstr("\"c8\" gets 10 Mbit/s, and so on for 2 more")));
}

TEST(Warnings, AboutUnusedLimits) {
  const std::string limit = "[[limit]]\nname = \"tenant\"\nrate = \"5mbit\"\n";
  expect_warnings(kLink, {{limit, "6:8: warning: no class names this limit: it holds nothing"}});
  EXPECT_THAT(warnings_of(kLink + limit + kTable + "limits = \"tenant\"\n"), IsEmpty());
}

/// What is kept of a rate when each wake-up comes 250 us late, for the bursts that somebody might choose.
TEST(Warnings, AboutBurstsThatLateWakeUpsOutlast) {
  struct Case {
    std::string rate, burst;
    std::optional<int> kept;  ///< per cent; absent: no warning
  };
  const std::vector<Case> cases{{"100mbit", "100B", 33},  {"100mbit", "1514B", 65}, {"100mbit", "5kB", {}},
                                {"100mbit", "1ms", {}},   {"100mbit", "4ms", {}},   {"900mbit", "100B", 5},
                                {"900mbit", "1514B", 10}, {"900mbit", "5kB", 20},   {"900mbit", "1ms", {}},
                                {"900mbit", "4ms", {}},   {"900mbit", "100us", 41}, {"1mbit", "1B", {}},
                                {"300bit", "1us", {}},    {"400gbit", "4ms", {}},   {"100mbit", "3kB", {}}};
  const std::string limit = "[[limit]]\nname = \"all\"\n";
  for (const Case& each : cases) {
    const std::string keys = "rate = \"" + each.rate + "\"\nburst = \"" + each.burst + "\"\n";
    const std::string inside =
        "each = { by = \"flow\", rate = \"" + each.rate + "\", burst = \"" + each.burst + "\" }\n";
    for (const std::string& text :
         {kLink + kTable + keys, kLink + kTable + inside, kLink + limit + keys + kTable + "limits = \"all\"\n"}) {
      const auto warnings = warnings_of(text);
      if (!each.kept) {
        EXPECT_THAT(warnings, IsEmpty()) << text;
        continue;
      }
      const std::string warning = "warning: this burst keeps about " + std::to_string(*each.kept) +
                                  " % of the rate when wake-ups come 250 us late; burst = \"4ms\" keeps all of it";
      EXPECT_THAT(warnings, ElementsAre(HasSubstr(warning))) << text;
    }
  }
}

TEST(Warnings, AboutBurstsThatKeepNextToNothing) {
  EXPECT_THAT(
      warnings_of(kLink + kTable + "rate = \"400gbit\"\nburst = \"1B\"\n"),
      ElementsAre("policy.toml:9:9: warning: this burst keeps less than 1 % of the rate when wake-ups come 250 us "
                  "late; burst = \"4ms\" keeps all of it"));
}

TEST(Warnings, SayNothingOfBurstsThatNobodyWaitsFor) {
  for (const std::string keys : {"rate = \"900mbit\"\n", "rate = \"900mbit\"\nburst = \"1B\"\nover = \"count\"\n",
                                 "rate = \"900mbit\"\ndiscipline = \"leaky\"\n"}) {
    EXPECT_THAT(warnings_of(kLink + kTable + keys), IsEmpty()) << keys;
  }
}

/// The figure against the bucket itself: full frames wait, and every wake-up comes late.
TEST(Warnings, TellWhatABucketReallyKeeps) {
  const Nanos late = 250us;
  for (const std::uint64_t bits : {20'000'000ULL, 100'000'000ULL, 900'000'000ULL, 5'000'000'000ULL}) {
    for (const std::uint64_t burst : {0ULL, 100ULL, 1'514ULL, 5'000ULL, 20'000ULL, 100'000ULL}) {
      const BucketSpec spec{{bits}, {1'514}, {burst}};
      const Instant start{};
      TokenBucket bucket = TokenBucket::empty(start);
      Instant now = start;
      std::uint64_t sent = 0;
      while (now - start < 5s) {
        now = bucket.covered_at(spec, spec.frame) + late;
        bucket.accrue(spec, now);
        for (; bucket.covers(spec.frame); sent += spec.frame.value) bucket.charge(spec.frame);
      }
      const std::uint64_t possible = bytes_in(spec.rate, now - start).value;
      EXPECT_NEAR(static_cast<double>(kept_when_late(spec, late)),
                  100.0 * static_cast<double>(sent) / static_cast<double>(possible), 1.0)
          << bits << " bit/s, burst " << burst;
    }
  }
}

}  // namespace
}  // namespace shaper
