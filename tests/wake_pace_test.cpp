#include "shaper/live/wake_pace.h"

#include <gtest/gtest.h>

#include <chrono>

namespace shaper {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

ClassPolicy one_class(DataRate rate, Burst burst) {
  ClassPolicy cls;
  cls.rate = rate;
  cls.burst = burst;
  return cls;
}

constexpr DataRate kHundredMbit{100'000'000};

TEST(WakeQuantum, IsAQuarterOfTheShortestBurstWithinItsBounds) {
  struct Case {
    const char* sentence;
    Burst burst;
    Nanos quantum;
  };
  const Case cases[] = {
      {"the default burst", kDefaultBurst, microseconds{250}},
      {"a long one", milliseconds{100}, microseconds{250}},
      {"1 ms", milliseconds{1}, microseconds{250}},
      {"400 us", microseconds{400}, microseconds{100}},
      {"5 KB at 100 Mbit/s take 400 us", ByteCount{5000}, microseconds{100}},
      {"100 bytes", ByteCount{100}, microseconds{50}},
  };
  for (const Case& expected : cases) {
    Policy policy;
    policy.classes = {one_class(kHundredMbit, milliseconds{4}), one_class(kHundredMbit, expected.burst)};
    EXPECT_EQ(wake_quantum(policy), expected.quantum) << expected.sentence;
  }
}

TEST(WakeQuantum, AsksEveryBucketThatHoldsPacketsBack) {
  const Burst brief = microseconds{400};
  Policy nothing;
  EXPECT_EQ(wake_quantum(nothing), kLongestQuantum);

  Policy each;
  each.classes = {one_class(kHundredMbit, kDefaultBurst)};
  each.classes[0].each.emplace();
  each.classes[0].each->rate = kHundredMbit;
  each.classes[0].each->burst = brief;
  EXPECT_EQ(wake_quantum(each), microseconds{100});

  Policy limit;
  limit.limits.emplace_back();
  limit.limits[0].rate = kHundredMbit;
  limit.limits[0].burst = brief;
  EXPECT_EQ(wake_quantum(limit), microseconds{100});

  Policy leaky;
  leaky.classes = {one_class(kHundredMbit, brief)};
  leaky.classes[0].discipline = Discipline::leaky;
  EXPECT_EQ(wake_quantum(leaky), kLeakySlack / 4) << "its slack is what counts, not a burst";

  for (const Over over : {Over::drop, Over::count}) {
    Policy policy;
    policy.classes = {one_class(kHundredMbit, brief)};
    policy.classes[0].over = over;
    EXPECT_EQ(wake_quantum(policy), kLongestQuantum) << "nothing waits in this class";
  }
}

TEST(WakePace, ASlowClassIsWokenExactly) {
  WakePace pace{microseconds{250}};
  Instant now{seconds{100}};
  for (int i = 0; i < 1000; ++i) {
    now += microseconds{251};
    EXPECT_EQ(pace.earliest(now), now);
    pace.woke(now);
  }
}

TEST(WakePace, AFastOneIsWokenOnceInAQuantum) {
  WakePace pace{microseconds{250}};
  const Instant begin{seconds{100}};
  Instant now = begin;
  int wakes = 0;
  while (now < begin + seconds{1}) {
    now = pace.earliest(now + microseconds{12});
    pace.woke(now);
    ++wakes;
  }
  EXPECT_GE(wakes, 4000);
  EXPECT_LE(wakes, 4000 + WakePace::kSaved + 1);
}

TEST(WakePace, AfterAPauseSoManyMayComeInARow) {
  WakePace pace{microseconds{250}};
  const Instant now{seconds{100}};
  for (int i = 0; i <= WakePace::kSaved; ++i) {
    EXPECT_EQ(pace.earliest(now), now) << i;
    pace.woke(now);
  }
  EXPECT_EQ(pace.earliest(now), now + microseconds{250});
}

}  // namespace
}  // namespace shaper
