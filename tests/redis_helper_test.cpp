// The process part that talks to Redis, on a real one: what a host has spent comes to the others, once, also after
// their connection for that was cut; and no debt is forgiven.
#include "shaper/live/redis_helper.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "shaper/live/clock.h"
#include "shaper/live/timer.h"
#include "tests/redis_server.h"

namespace shaper::test {
namespace {

using namespace std::chrono_literals;

/// The supervisor's end of a helper, and what came to it.
struct Host {
  Host(EventLoop& loop, const std::string& name, const std::string& socket)
      : Host(loop, name, socket, Channel::make_ends()) {}
  Host(EventLoop& loop, const std::string& name, const std::string& socket, std::pair<Fd, Fd> ends)
      : helper(loop, std::move(ends.first)),
        channel(
            loop, std::move(ends.second), [this](const Request& message) { hear(message); }, [] {}) {
    channel.send("connect", name + "\n" + socket + "\n\n\n");
  }

  void hear(const Request& message) {
    connected |= message.verb == "connected";
    if (message.verb == "spent") {
      for (const SpentElsewhere& each : parse_spent_elsewhere(message.body)) spent.push_back(each);
    }
    for (const LeaseOutcome& outcome : parse_lease_outcomes(message.body)) answer = outcome.answer;
  }

  void ask(std::uint64_t debt, bool tell) {
    LeaseAsk ask;
    ask.bucket = "tenant";
    ask.config = 1;
    ask.rate = {80'000'000};
    ask.burst = {1'000'000};
    ask.interval = 50ms;
    ask.lease = 150ms;
    ask.sequence = ++sequence;
    ask.want = {80'000'000};
    ask.debt = {debt};
    ask.tell = tell;
    answer.reset();
    channel.send("ask", LeaseAsks{1s, {ask}}.text());
  }

  RedisHelper helper;
  Channel channel;
  bool connected = false;
  std::uint64_t sequence = 0;
  std::vector<SpentElsewhere> spent;
  std::optional<LeaseAnswer> answer;
};

class RedisHelperTest : public testing::Test {
 protected:
  RedisHelperTest() {
    timer.repeat(1ms);
    until([this] { return one.connected && two.connected; });
  }

  void until(const std::function<bool()>& holds) {
    const Instant end = monotonic_now() + 10s;
    while (!holds() && monotonic_now() < end) loop.turn();
    ASSERT_TRUE(holds());
  }
  void asks(Host& host, std::uint64_t debt, bool tell) {
    host.ask(debt, tell);
    until([&] { return host.answer.has_value(); });
  }
  std::int64_t listeners() { return redis({"PUBSUB", "NUMSUB", "dl:{0}:spent"}).numbers.at(0); }
  void both_listen() {
    until([this] { return listeners() == 2; });
  }

  RedisServer server;
  RedisClient redis{server.socket()};
  EventLoop loop;
  Timer timer{loop, [] {}};
  Host one{loop, "h1", server.socket()};
  Host two{loop, "h2", server.socket()};
};

TEST_F(RedisHelperTest, TellsWhatOthersHaveSpent) {
  asks(one, 0, true);
  asks(two, 0, true);
  both_listen();
  asks(one, 30'000, true);
  until([this] { return !two.spent.empty(); });
  EXPECT_EQ(two.spent.front().bucket, "tenant");
  EXPECT_EQ(two.spent.front().bytes.value, 30'000U);
  EXPECT_EQ(two.spent.front().redis_time_us, one.answer->redis_time_us);

  redis({"CLIENT", "KILL", "TYPE", "pubsub"});
  both_listen();
  asks(two, 500, true);
  until([this] { return !one.spent.empty(); });
  EXPECT_EQ(one.spent.front().bytes.value, 500U) << "and not of itself";
  EXPECT_EQ(one.spent.size() + two.spent.size(), 2U);
}

TEST_F(RedisHelperTest, ListensOnlyWhereSomebodyTells) {
  asks(one, 30'000, false);
  asks(two, 30'000, false);
  EXPECT_EQ(listeners(), 0);
  asks(one, 30'000, true);
  until([this] { return listeners() == 1; });
  until([this] { return listeners() == 0; });  // some seconds after the last time
}

TEST_F(RedisHelperTest, ADebtIsOwedInFull) {
  asks(one, 0, false);
  const std::int64_t before = one.answer->tokens;
  asks(one, 20'000'000, false);
  EXPECT_LT(one.answer->tokens, before - 19'000'000) << "twenty times the depth";
  asks(two, 0, false);
  EXPECT_LT(two.answer->tokens, -15'000'000);
  EXPECT_EQ(two.answer->grant.value, 0U);
}

}  // namespace
}  // namespace shaper::test
