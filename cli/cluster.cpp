// `shaper cluster show`.
#include <cstdio>

#include "cli/commands.h"
#include "cli/daemon_link.h"
#include "shaper/model/tables.h"

namespace shaper::cli {

ExitCode cluster_show(bool json) {
  ControlClient daemon = connect_or_fail();
  const std::string answer = ask(daemon, "cluster");
  if (json) {
    std::puts(answer.c_str());
    return ExitCode::done;
  }
  std::fputs(cluster_table(read_cluster(answer, daemon)).c_str(), stdout);
  return ExitCode::done;
}

}  // namespace shaper::cli
