// Asks and answers on their way between the worker and whoever talks to Redis.
#include "shaper/live/lease_messages.h"

#include <gtest/gtest.h>

namespace shaper {
namespace {

using namespace std::chrono_literals;

TEST(LeaseMessages, AsksAreReadAsTheyWereWritten) {
  LeaseAsk ask;
  ask.bucket = "tenant/10.1.2.0";
  ask.config = 3;
  ask.rate = {300};
  ask.burst = {150'000};
  ask.interval = 40ms;
  ask.lease = 120ms;
  ask.sequence = 77;
  ask.want = {5'000'000'000};
  ask.need = {1'514};
  ask.give_back = {7};
  ask.debt = {8};
  ask.local_rate = {9};
  ask.in_fallback = ask.reserve = ask.observe = true;
  LeaseAsk leaving = ask;
  leaving.leaving = leaving.tell = true;
  const LeaseAsks asks{50ms, {ask, leaving}};
  const auto read = LeaseAsks::parse(asks.text());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->timeout, asks.timeout);
  EXPECT_EQ(read->asks, asks.asks);
}

TEST(LeaseMessages, OutcomesAreReadAsTheyWereWritten) {
  const LeaseAnswer answer{LeaseAnswer::Status::old_config,
                           {9'000},
                           -300,
                           {1'000'000},
                           true,
                           20,
                           1'758'500'000'123'456,
                           4,
                           {2'000'000},
                           {25'000},
                           1'758'500'000'200'000};
  const auto read = parse_lease_outcomes(lease_outcomes_text({{"a/::1", 5, answer, ""}, {"b", 6, {}, "timeout"}}));
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].bucket, "a/::1");
  EXPECT_EQ(read[0].sequence, 5U);
  EXPECT_EQ(read[0].answer, answer);
  EXPECT_FALSE(read[1].answer);
  EXPECT_EQ(read[1].reason, "timeout");
}

TEST(LeaseMessages, WhatOthersSpentIsReadAsItWasPublished) {
  const auto spent = spent_elsewhere("h2 a/::1 1500 1758500000123456", "h1");
  ASSERT_TRUE(spent);
  const auto read = parse_spent_elsewhere(spent->line() + "x\n" + spent->line());
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[1].bucket, "a/::1");
  EXPECT_EQ(read[1].bytes.value, 1'500U);
  EXPECT_EQ(read[1].redis_time_us, 1'758'500'000'123'456U);
  EXPECT_FALSE(spent_elsewhere("h1 a 1500 1758500000123456", "h1")) << "our own";
  for (const char* text : {"", "h2", "h2 a", "h2 a 1", "h2 a x 1", "h2 a -1 1", "h2 a 1073741825 1"}) {
    EXPECT_FALSE(spent_elsewhere(text, "h1")) << text;
  }
}

TEST(LeaseMessages, WhatIsNoneIsLeftOut) {
  for (const char* text : {"", "x\n", "1\nb 1 2\n", "1\nb 1 1 1 1 1 1 1 1 1 1 1 0 0 0 0 0 0\n"})
    EXPECT_FALSE(LeaseAsks::parse(text)) << text;
  for (const char* text : {"", "failed\n", "failed a 1\n", "answered a 1 9 0 0 0 0 0 0 0 0 0 0\n", "other a 1 x\n"})
    EXPECT_TRUE(parse_lease_outcomes(text).empty()) << text;
}

}  // namespace
}  // namespace shaper
