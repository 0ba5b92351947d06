#include <cstdio>

#include "cli/commands.h"
#include "cli/daemon_link.h"

namespace shaper::cli {

/// Until the daemon ends, or nobody reads any more.
ExitCode events() {
  ControlClient daemon = connect_or_fail();
  const Response response = daemon.stream("events", [](std::string_view lines) {
    return std::fwrite(lines.data(), 1, lines.size(), stdout) == lines.size() && std::fflush(stdout) == 0;
  });
  if (response.status != ResponseStatus::ok) throw CommandError(ExitCode::failed, response.body);
  return ExitCode::done;
}

}  // namespace shaper::cli
