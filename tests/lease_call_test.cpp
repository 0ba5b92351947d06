// What a call of the script consists of, and what its reply may say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "shaper/cluster/lease_script.h"

namespace shaper {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

LeaseAsk full_ask() {
  return {.bucket = "tenant/10.0.0.1",
          .config = 3,
          .rate = {1'000},
          .burst = {2'000},
          .interval = 40ms,
          .lease = 120ms,
          .sequence = 9,
          .want = {4'000},
          .need = {5'000},
          .give_back = {6'000},
          .debt = {7'000},
          .reserve = true,
          .local_rate = {500},
          .observe = true};
}

TEST(LeaseCall, SaysAllOfAnAsk) {
  const std::vector<LeaseAsk> asks{full_ask()};
  const LeaseCall call = lease_call({"host-1", 77}, asks, 2);
  EXPECT_THAT(call.keys, ElementsAre("dl:{2}:tenant/10.0.0.1:b", "dl:{2}:tenant/10.0.0.1:n"));
  EXPECT_THAT(call.arguments, ElementsAre("1", "host-1", "77", "3", "1000", "2000", "40000", "120000", "9", "4000",
                                          "5000", "6000", "7000", "12", "500"));
}

TEST(LeaseCall, CutsWhatIsTooLarge) {
  LeaseAsk ask = full_ask();
  ask.need = {~std::uint64_t{0}};
  EXPECT_EQ(lease_call({"a", 1}, {&ask, 1}).arguments[10], "9007199254740991");
}

TEST(LeaseCall, GroupsAreTheSameOnEveryHost) {
  EXPECT_EQ(lease_group("tenant", 1), 0U);
  EXPECT_EQ(lease_group("", 1'000'000), 0xcbf29ce484222325 % 1'000'000);
  EXPECT_EQ(lease_group("a", 1'000'000), 0xaf63dc4c8601ec8c % 1'000'000) << "FNV-1a's published value";
}

std::vector<std::int64_t> reply_of_one() {
  return {2, 1'000, -5, 70, 1, 3, 1'758'500'000'123'456, 4, 8'000, 9'000, 1'758'500'000'999'999};
}

TEST(LeaseReply, IsRead) {
  const auto answers = read_lease_reply(reply_of_one(), 1);
  ASSERT_TRUE(answers) << answers.error();
  EXPECT_THAT(*answers, ElementsAre(LeaseAnswer{.status = LeaseAnswer::Status::old_config,
                                                .grant = {1'000},
                                                .tokens = -5,
                                                .share = {70},
                                                .contended = true,
                                                .members = 3,
                                                .generation = 1'758'500'000'123'456,
                                                .config = 4,
                                                .rate = {8'000},
                                                .burst = {9'000},
                                                .redis_time_us = 1'758'500'000'999'999}));
}

TEST(LeaseReply, IsRefusedWhenImpossible) {
  const std::string about = "redis answered about bucket 1 of 1 with an impossible ";
  const struct {
    std::size_t at;
    std::int64_t number;
    std::string error;
  } cases[] = {{0, 8, about + "status"},
               {0, -1, about + "status"},
               {1, -1, about + "grant"},
               {1, 1'073'741'825, about + "grant"},
               {2, -1'073'741'825, about + "number of tokens"},
               {2, 9'001, about + "number of tokens"},
               {3, -1, about + "share"},
               {4, 2, about + "word on contention"},
               {5, 1L << 32, about + "number of members"},
               {6, -1, about + "generation"},
               {7, -1, about + "version of its configuration"},
               {8, 299, about + "rate"},
               {8, 400'000'000'001, about + "rate"},
               {9, 0, about + "burst"},
               {9, 1'073'741'825, about + "burst"},
               {10, -1, "redis answered with a time before 1970"}};
  for (const auto& [at, number, error] : cases) {
    std::vector<std::int64_t> reply = reply_of_one();
    reply[at] = number;
    const auto answers = read_lease_reply(reply, 1);
    ASSERT_FALSE(answers) << error;
    EXPECT_EQ(answers.error(), error);
  }
  const std::vector<std::int64_t> one = reply_of_one();
  EXPECT_EQ(read_lease_reply(one, 2).error(), "redis answered with 11 numbers to 2 asks");
  EXPECT_EQ(read_lease_reply({}, 0).error(), "redis answered with 0 numbers to 0 asks");
}

}  // namespace
}  // namespace shaper
