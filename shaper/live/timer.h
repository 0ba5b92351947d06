// A timer of an event loop, absolute on CLOCK_MONOTONIC.
#pragma once

#include <functional>
#include <optional>

#include "shaper/core/units.h"
#include "shaper/live/event_loop.h"
#include "shaper/live/fd.h"

namespace shaper {

class Timer {
 public:
  /// `handler` may set the timer again, but not destroy it. Throws std::system_error.
  Timer(EventLoop& loop, std::function<void()> handler);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  /// Calls the handler once at or after `time`, at once if it is past; nothing: the timer is off. The kernel is asked
  /// only when that changes.
  void set(std::optional<Instant> time);

  /// Calls the handler every `period` from now on.
  void repeat(Nanos period);

 private:
  void arm(Nanos first, Nanos period);

  EventLoop& loop_;
  Fd fd_;
  std::optional<Instant> armed_;
  bool repeats_ = false;
};

}  // namespace shaper
