// A program that runs beside the loop, which never waits for it: `shaper`, for what a supervisor does not do itself.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "shaper/live/event_loop.h"
#include "shaper/live/fd.h"

namespace shaper {

class HelperProcess {
 public:
  /// Called once, with whether it ended with status 0 and what it wrote (64 KiB at most are kept). It may destroy the
  /// helper.
  using Done = std::function<void(bool good, const std::string& output)>;

  /// Starts `arguments`, a path first, with the caller's environment. Throws std::system_error.
  HelperProcess(EventLoop& loop, std::vector<std::string> arguments, Done done);
  /// It goes on, if it runs still: its end may be ours.
  ~HelperProcess();
  HelperProcess(const HelperProcess&) = delete;
  HelperProcess& operator=(const HelperProcess&) = delete;

  [[nodiscard]] bool ended() const { return ended_; }

 private:
  void on_output();
  void on_exit();

  EventLoop& loop_;
  Done done_;
  pid_t process_ = 0;
  Fd handle_;  // pidfd
  Fd pipe_;
  std::string output_;
  bool ended_ = false;
};

}  // namespace shaper
