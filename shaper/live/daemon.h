// One daemon in a network namespace, and its way into the background.
#pragma once

#include <string>

#include "shaper/live/fd.h"

namespace shaper {

/// The lock that a running daemon holds until it ends, however it ends; none: another one runs. Throws
/// std::system_error.
[[nodiscard]] Fd lock_instance(const std::string& folder);

/// The path of our other program: beside the one that runs, in a folder beside it, or in the fixed PATH; empty:
/// nowhere.
[[nodiscard]] std::string sibling_program(const std::string& name);

/// Tells whoever started the daemon that it listens: the parent of a background daemon returns only then.
class Readiness {
 public:
  /// Forks. True in the child, which goes on as the daemon, in a session of its own and without a terminal.
  [[nodiscard]] bool go_to_background();
  /// In the parent: 0 when the child has told that it is ready, 1 when it ended before (it has said why on stderr).
  [[nodiscard]] int wait_for_child();
  /// In the child, or in the foreground where nobody waits.
  void tell();

 private:
  Fd read_end_;
  Fd write_end_;
};

}  // namespace shaper
