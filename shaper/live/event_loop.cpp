#include "shaper/live/event_loop.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <array>

#include "shaper/live/system_call.h"

namespace shaper {

EventLoop::EventLoop()
    : epoll_(require(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      timer_(require(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), "timerfd_create")) {
  add(timer_.get(), EPOLLIN, [this](std::uint32_t) {
    std::uint64_t expirations = 0;
    if (::read(timer_.get(), &expirations, sizeof expirations) != sizeof expirations) return;
    armed_.reset();
    if (timer_handler_) timer_handler_();
  });
}

void EventLoop::add(int fd, std::uint32_t events, Handler handler) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  require(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
  handlers_[fd] = std::move(handler);
}

void EventLoop::change(int fd, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  require(::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event), "epoll_ctl");
}

void EventLoop::remove(int fd) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  handlers_.erase(fd);
}

void EventLoop::set_timer(std::optional<Instant> time) {
  if (time == armed_) return;
  armed_ = time;
  itimerspec setting{};
  if (time) {
    // Zero would switch the timer off; an instant in the past fires at once.
    const Nanos since_boot = std::max(time->time_since_epoch(), Nanos{1});
    setting.it_value.tv_sec = since_boot.count() / std::nano::den;
    setting.it_value.tv_nsec = since_boot.count() % std::nano::den;
  }
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &setting, nullptr);
}

void EventLoop::run() {
  std::array<epoll_event, 16> events{};
  bool busy = false;
  while (!stopped_) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), busy ? 0 : -1);
    if (count < 0 && errno != EINTR) require(count, "epoll_wait");
    for (int i = 0; i < count; ++i) {
      const auto& event = events[static_cast<std::size_t>(i)];
      // A handler earlier in this round may have removed it.
      const auto handler = handlers_.find(event.data.fd);
      if (handler == handlers_.end()) continue;
      const Handler call = handler->second;  // it may remove itself while it runs
      call(event.events);
    }
    busy = idle_handler_ && idle_handler_();
  }
}

}  // namespace shaper
