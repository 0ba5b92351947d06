// `shaper metrics`: what the daemon reports, as Prometheus text. Never looks at the rules itself while a daemon runs:
// whoever reads statistics must not hold the lock of iptables.
#include "shaper/model/metrics.h"

#include <algorithm>
#include <cstdio>

#include "cli/commands.h"
#include "cli/daemon_link.h"
#include "cli/status.h"

namespace shaper::cli {
namespace {

/// Nothing: the policy has no limit over several hosts, or not any more.
std::optional<ClusterReport> ask_cluster(ControlClient& daemon, const StatusReport& status) {
  const auto over_hosts = [](const LimitReport& limit) { return limit.scope == Scope::cluster; };
  if (std::none_of(status.limits.begin(), status.limits.end(), over_hosts)) return std::nullopt;
  const Response answer = daemon.request("cluster", "");
  if (answer.status != ResponseStatus::ok) return std::nullopt;
  return read_cluster(answer.body, daemon);
}

}  // namespace

ExitCode metrics() {
  const auto folder = find_folder();
  auto daemon = connect(folder);
  if (!daemon) {
    std::fputs(metrics_text(report_without_daemon(folder), nullptr).c_str(), stdout);
    return say_no_daemon();
  }
  const StatusReport status = ask_status(*daemon);
  const auto cluster = ask_cluster(*daemon, status);
  std::fputs(metrics_text(status, cluster ? &*cluster : nullptr).c_str(), stdout);
  return ExitCode::done;
}

}  // namespace shaper::cli
