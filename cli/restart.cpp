// `shaper restart`.
#include <fmt/format.h>

#include <cstdio>

#include "cli/commands.h"
#include "cli/daemon_link.h"

namespace shaper::cli {

ExitCode restart() {
  ControlClient daemon = connect_or_fail();
  const std::string how = ask(daemon, "restart");
  ControlClient heir = connect_or_fail();  // it answers when it has taken over
  const std::string version = ask(heir, "ping");
  std::puts(fmt::format("a new worker (shaperd {}) has taken over; {}", version,
                        how == "kept" ? "flows, statistics, credit and held packets were kept"
                                      : "it keeps its state in another form: held packets were let go, statistics and "
                                        "buckets begin anew")
                .c_str());
  return ExitCode::done;
}

}  // namespace shaper::cli
