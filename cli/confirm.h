// A change that goes back to what was before unless `shaper confirm` comes in time.
#pragma once

#include "cli/daemon_link.h"
#include "shaper/core/units.h"

namespace shaper::cli {

class PendingChange {
 public:
  /// Before the change: from now on it would be taken back after `time`, also when everybody but the supervisor has
  /// died. Throws CommandError. While an earlier change waits, both go back to what was before that one.
  PendingChange(ControlClient& daemon, const RuntimeFolder& folder, Nanos time);

  /// The change did not come about.
  void call_off();

 private:
  ControlClient& daemon_;
  RuntimeFolder folder_;
  bool first_ = false;
};

}  // namespace shaper::cli
