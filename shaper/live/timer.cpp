#include "shaper/live/timer.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "shaper/live/clock.h"
#include "shaper/live/system_call.h"

namespace shaper {
namespace {

timespec timespec_of(Nanos time) {
  return {time.count() / std::nano::den, time.count() % std::nano::den};
}

}  // namespace

Timer::Timer(EventLoop& loop, std::function<void()> handler)
    : loop_(loop), fd_(require(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), "timerfd_create")) {
  loop_.add(fd_.get(), EPOLLIN, [this, handler = std::move(handler)](std::uint32_t) {
    std::uint64_t expirations = 0;
    if (::read(fd_.get(), &expirations, sizeof expirations) != sizeof expirations) return;
    armed_.reset();
    handler();
  });
}

Timer::~Timer() {
  loop_.remove(fd_.get());
}

void Timer::set(std::optional<Instant> time) {
  if (time == armed_ && !repeats_) return;
  armed_ = time;
  repeats_ = false;
  // Zero would switch the timer off.
  arm(time ? std::max(time->time_since_epoch(), Nanos{1}) : Nanos{0}, Nanos{0});
}

void Timer::repeat(Nanos period) {
  armed_.reset();
  repeats_ = true;
  arm((monotonic_now() + period).time_since_epoch(), period);
}

void Timer::arm(Nanos first, Nanos period) {
  const itimerspec setting{timespec_of(period), timespec_of(first)};
  ::timerfd_settime(fd_.get(), TFD_TIMER_ABSTIME, &setting, nullptr);
}

}  // namespace shaper
