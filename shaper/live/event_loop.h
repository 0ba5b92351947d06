// One thread waits for descriptors and one timer. Handlers run to the end; none may wait for anything.
//
// The timer is absolute on CLOCK_MONOTONIC and re-armed only when its time changes. Work that is not urgent (a listing
// of many flows) is done in slices: while there is some, the loop does not sleep.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "shaper/core/units.h"
#include "shaper/live/fd.h"

namespace shaper {

class EventLoop {
 public:
  using Handler = std::function<void(std::uint32_t events)>;

  EventLoop();

  /// Calls `handler` with the epoll events of `fd`, which the caller keeps open until remove().
  void add(int fd, std::uint32_t events, Handler handler);
  void change(int fd, std::uint32_t events);
  void remove(int fd);

  /// Calls `handler` once at or after `time`; nothing: the timer is off.
  void set_timer(std::optional<Instant> time);
  void on_timer(std::function<void()> handler) { timer_handler_ = std::move(handler); }

  /// Called after each round of events; true: call again soon, without sleeping.
  void on_idle(std::function<bool()> handler) { idle_handler_ = std::move(handler); }

  void run();
  void stop() { stopped_ = true; }

 private:
  Fd epoll_;
  Fd timer_;
  std::optional<Instant> armed_;
  std::map<int, Handler> handlers_;
  std::function<void()> timer_handler_;
  std::function<bool()> idle_handler_;
  bool stopped_ = false;
};

}  // namespace shaper
