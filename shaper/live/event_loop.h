// One thread waits for descriptors. Handlers run to the end; none may wait for anything.
//
// Work that is not urgent (a listing of many flows) is done in slices: while there is some, the loop does not sleep.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <map>

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

  /// Called after each round of events; true: call again soon, without sleeping.
  void on_idle(std::function<bool()> handler) { idle_handler_ = std::move(handler); }

  void run() {
    while (!stopped_) turn();
  }
  void stop() { stopped_ = true; }

  /// One round of events: sleeps until there is one.
  void turn();

 private:
  Fd epoll_;
  std::map<int, Handler> handlers_;
  std::function<bool()> idle_handler_;
  bool busy_ = false;
  bool stopped_ = false;
};

}  // namespace shaper
