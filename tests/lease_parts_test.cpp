// What a lease is made of: the round trip, demand in a period, how many hosts there are, and jitter.
#include <gtest/gtest.h>

#include "shaper/cluster/demand_window.h"
#include "shaper/cluster/jitter.h"
#include "shaper/cluster/member_watch.h"
#include "shaper/cluster/round_trip.h"
#include "tests/sim_random.h"

namespace shaper::sim {
namespace {

TEST(RoundTripTest, PeriodAndTimeoutFollowIt) {
  RoundTrip trip;
  EXPECT_EQ(trip.interval(40ms), 40ms);
  EXPECT_EQ(trip.timeout(), 50ms);
  for (int n = 0; n < 200; ++n) trip.measured(150ms);
  EXPECT_EQ(trip.interval(40ms), 150ms);
  EXPECT_EQ(trip.interval(200ms), 200ms);
  EXPECT_EQ(trip.timeout(), 600ms);
}

TEST(RoundTripTest, ComesDownAgain) {
  RoundTrip trip;
  for (int n = 0; n < 200; ++n) trip.measured(300ms);
  for (int n = 0; n < 100; ++n) trip.measured(1ms);
  EXPECT_EQ(trip.interval(40ms), 40ms);
  EXPECT_EQ(trip.timeout(), 50ms);
}

TEST(RoundTripTest, GoesUpWithinAFewAnswers) {
  RoundTrip trip;
  for (int n = 0; n < 100; ++n) trip.measured(1ms);
  for (int n = 0; n < 4; ++n) trip.measured(150ms);
  EXPECT_EQ(trip.typical(), 1ms) << "a few slow ones are none";
  trip.measured(150ms);
  EXPECT_EQ(trip.typical(), 150ms);
}

TEST(RoundTripTest, TheTimeoutIsForTheSlowestOfAHundredButOne) {
  RoundTrip trip;
  for (int n = 0; n < 100; ++n) trip.measured(n == 50 ? 1s : n == 60 ? 30ms : 1ms);
  EXPECT_EQ(trip.slow(), 30ms);
  EXPECT_EQ(trip.timeout(), 120ms);
  EXPECT_EQ(trip.typical(), 1ms);
}

TEST(RoundTripTest, ALongOneIsFoundThoughTheFirstTimeoutIsShort) {
  RoundTrip trip;
  int timeouts = 0;
  while (trip.timeout() < 200ms) {
    trip.timed_out();
    ASSERT_LT(++timeouts, 4);
  }
  trip.measured(200ms);
  EXPECT_EQ(trip.timeout(), 800ms);
  for (int n = 0; n < 100; ++n) trip.timed_out();
  EXPECT_EQ(trip.timeout(), 2s);
}

TEST(RoundTripTest, NeverMakesThePeriodSoLongThatHostsStarve) {
  RoundTrip trip;
  trip.measured(3s);
  EXPECT_EQ(trip.interval(40ms), 500ms);
}

TEST(DemandWindowTest, CountsOnePeriod) {
  DemandWindow window;
  Instant now{1s};
  std::uint64_t arrived = 5'000'000;  // before anybody looked
  for (int n = 0; n < 100; ++n, now += 3ms) {
    window.look({arrived}, false, 40ms, now);
    arrived += 3'000;
  }
  EXPECT_NEAR(static_cast<double>(window.arrived(40ms).value), 40'000, 500);
  EXPECT_FALSE(window.held_up());
}

TEST(DemandWindowTest, RemembersForAPeriodThatSomethingWasHeldUp) {
  DemandWindow window;
  const Instant begin{1s};
  for (int n = 0; n < 100; ++n) {
    const Nanos passed = n * 1ms;
    window.look({1'000}, passed == 20ms, 40ms, begin + passed);
    if (passed < 55ms || passed > 65ms) {
      EXPECT_EQ(window.held_up(), passed >= 20ms && passed < 55ms) << passed.count();
    }
  }
}

TEST(DemandWindowTest, WhatCameAfterAPauseCameLately) {
  DemandWindow window;
  window.look({1'000}, false, 40ms, Instant{1s});
  window.look({4'000}, false, 40ms, Instant{100s});
  EXPECT_EQ(window.arrived(40ms).value, 3'000U);
}

TEST(DemandWindowTest, AnotherBucketOfTheSameNameStartsAgain) {
  DemandWindow window;
  window.look({100'000}, true, 40ms, Instant{1s});
  window.look({1'000}, false, 40ms, Instant{1'010ms});
  EXPECT_EQ(window.arrived(40ms).value, 0U);
  window.look({3'000}, false, 40ms, Instant{1'020ms});
  EXPECT_EQ(window.arrived(40ms).value, 2'000U);
  EXPECT_FALSE(window.held_up());
}

TEST(MemberWatchTest, ForgetsAfterAMinuteOfAnswersOrTwo) {
  MemberWatch watch;
  EXPECT_EQ(watch.most(), 0U);
  Instant now{1s};
  watch.saw(9, now);
  for (; now <= Instant{60s}; now += 1s) watch.saw(2, now);
  EXPECT_EQ(watch.most(), 9U);
  for (; now <= Instant{200s}; now += 1s) watch.saw(2, now);
  EXPECT_EQ(watch.most(), 2U);
}

TEST(MemberWatchTest, TheFirstAnswerAfterAnOutageForgetsNothing) {
  MemberWatch watch;
  watch.saw(9, Instant{1s});
  watch.saw(1, Instant{1'000s});
  EXPECT_EQ(watch.most(), 9U);
}

TEST(JitterTest, SpreadsEvenlyAndTheSameForTheSameSeed) {
  Jitter one(7), two(7);
  Nanos sum{0};
  for (int n = 0; n < 10'000; ++n) {
    const Nanos time = one.around(40ms, 5);
    EXPECT_EQ(time, two.around(40ms, 5));
    EXPECT_GE(time, 38ms);
    EXPECT_LE(time, 42ms);
    sum += time;
  }
  EXPECT_NEAR(static_cast<double>(sum.count()), 10'000 * 40e6, 10'000 * 4e4);
}

}  // namespace
}  // namespace shaper::sim
