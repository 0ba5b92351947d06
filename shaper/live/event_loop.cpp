#include "shaper/live/event_loop.h"

#include <array>

#include "shaper/live/system_call.h"

namespace shaper {

EventLoop::EventLoop() : epoll_(require(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")) {}

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

void EventLoop::turn() {
  std::array<epoll_event, 16> events{};
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), busy_ ? 0 : -1);
  if (count < 0 && errno != EINTR) require(count, "epoll_wait");
  for (int i = 0; i < count; ++i) {
    const auto& event = events[static_cast<std::size_t>(i)];
    // A handler earlier in this round may have removed it.
    const auto handler = handlers_.find(event.data.fd);
    if (handler == handlers_.end()) continue;
    const Handler call = handler->second;  // it may remove itself while it runs
    call(event.events);
  }
  busy_ = idle_handler_ && idle_handler_();
}

}  // namespace shaper
