// The process that finds the owners of flows for a worker, which never waits for it: takes asks from the supervisor,
// and answers them in batches. It knows nothing of packets and policies but the numbers that `pid` keys name.
//
// Messages: `settings` (a line `pid NUMBER` for each), `own` (owner_messages.h) and `memory` (what such a process
// before this one knew of the numbers) come; `lacks` (once, when the first settings are obeyed; a line `KEYS: REASON`
// each), `owned`, `gone` (numbers whose processes have all ended) and `memory` go.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shaper/live/channel.h"
#include "shaper/live/event_loop.h"
#include "shaper/live/owner_finder.h"
#include "shaper/live/timer.h"

namespace shaper {

class OwnerHelper {
 public:
  /// Takes the other end of the supervisor's channel, and what cannot be found here. Throws std::system_error.
  OwnerHelper(EventLoop& loop, Fd channel, std::vector<std::string> lacks);

 private:
  void on_message(const Request& message);
  void follow(std::string_view settings);
  bool work();
  void tell_about_trees();
  void tell(std::span<const OwnerAnswer> answers);

  EventLoop& loop_;
  std::optional<std::vector<std::string>> lacks_;  // nothing: told
  Channel supervisor_;
  OwnerFinder finder_;
  Timer timer_;
  std::string memory_;  // as the supervisor has it
};

}  // namespace shaper
