#include "cli/daemon_link.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <thread>

#include "cli/commands.h"
#include "shaper/live/child_process.h"
#include "shaper/live/daemon.h"
#include "shaper/live/nfqueue.h"
#include "shaper/version.h"

namespace shaper::cli {
namespace {

constexpr std::chrono::seconds kStartLimit{10};

constexpr const char* kNoPermission =
    "no permission: CAP_NET_ADMIN is missing; run as root, or in a user namespace of your own (unshare -Urn)";

std::string advice_on(ControlClient& daemon) {
  const Response version = daemon.request("ping");
  return version.status == ResponseStatus::ok ? version_advice(version.body) : "";
}

/// `text`, and what to do where the daemon is of another version.
std::string with_advice(std::string text, ControlClient& daemon) {
  const std::string advice = advice_on(daemon);
  return advice.empty() ? text : fmt::format("{}; {}", text, advice);
}

template <typename Report>
Report understood(tl::expected<Report, std::string> report, ControlClient& daemon) {
  if (report) return *std::move(report);
  const std::string advice = advice_on(daemon);
  throw CommandError(ExitCode::failed,
                     advice.empty() ? report.error() : "the daemon's answer is not understood; " + advice);
}

}  // namespace

std::optional<RuntimeFolder> find_folder() {
  auto folder = find_runtime_folder();
  if (folder) return *folder;
  // Whoever may not even look has too little permission; anybody else is told what is wrong with the folder.
  const bool may_look = ::access(runtime_folder_here().path.c_str(), X_OK) == 0 || errno != EACCES;
  if (may_look) throw CommandError(ExitCode::failed, folder.error());
  throw CommandError(
      ExitCode::no_permission,
      folder.error() + "; CAP_DAC_READ_SEARCH is missing: run as root, or as a member of the group shaper");
}

std::optional<ControlClient> connect(const std::optional<RuntimeFolder>& folder) {
  if (!folder) return std::nullopt;
  try {
    return ControlClient::connect(folder->control_socket());
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::permission_denied) throw;
    throw CommandError(ExitCode::no_permission, fmt::format("{}; run as root", error.what()));
  }
}

ControlClient connect_or_fail() {
  auto daemon = connect(find_folder());
  if (!daemon) throw CommandError(ExitCode::no_daemon, "no daemon runs here; 'shaper up' starts it");
  return std::move(*daemon);
}

std::string ask(ControlClient& daemon, std::string_view verb, std::string_view body) {
  Response response = daemon.request(verb, body);
  switch (response.status) {
    case ResponseStatus::ok:
      return std::move(response.body);
    case ResponseStatus::policy:
      throw PolicyError(with_advice(response.body, daemon));
    case ResponseStatus::refused:
      break;
  }
  if (response.body == kUnknownRequest) throw CommandError(ExitCode::failed, with_advice(response.body, daemon));
  throw CommandError(response.body == kMayNotChange ? ExitCode::no_permission : ExitCode::failed, response.body);
}

StatusReport ask_status(ControlClient& daemon) {
  StatusReport report = understood(parse_status(ask(daemon, "status")), daemon);
  if (std::string advice = version_advice(report.version); !advice.empty()) {
    report.warnings.push_back(std::move(advice));
  }
  return report;
}

FlowsReport ask_flows(ControlClient& daemon) {
  return understood(parse_flows(ask(daemon, "flows")), daemon);
}

ClusterReport read_cluster(const std::string& answer, ControlClient& daemon) {
  return understood(parse_cluster(answer), daemon);
}

void require_permission() {
  if (!probe_permission()) throw CommandError(ExitCode::no_permission, kNoPermission);
}

std::string daemon_program() {
  std::string program = sibling_program("shaperd");
  if (!program.empty()) return program;
  throw CommandError(ExitCode::failed, "there is no shaperd beside shaper or in PATH; install both programs");
}

void start_daemon(bool empty_buckets) {
  Command command;
  command.arguments = {daemon_program()};
  if (empty_buckets) command.arguments.emplace_back("--empty-buckets");
  // Both must look for the run-time folder in the same place.
  if (const char* folder = std::getenv("XDG_RUNTIME_DIR")) command.environment.emplace_back("XDG_RUNTIME_DIR", folder);
  const Outcome outcome = run(command, kStartLimit);
  if (outcome.ok()) return;
  std::string line = outcome.errors.substr(0, outcome.errors.find('\n'));
  if (line.empty()) line = fmt::format("{} ended with status {}", command.arguments.front(), outcome.status);
  if (outcome.timed_out) line = fmt::format("{} was not ready in time", command.arguments.front());
  throw CommandError(
      outcome.status == static_cast<int>(ExitCode::no_permission) ? ExitCode::no_permission : ExitCode::failed, line);
}

void end_daemon(std::optional<ControlClient>& daemon, const RuntimeFolder& folder) {
  if (daemon) (void)ask(*daemon, "down");
  // It answers before it is quite gone. Whoever starts one meanwhile finds the lock taken, or makes a folder anew.
  constexpr int kTries = 500;
  for (int i = 0; i < kTries; ++i) {
    if (const Fd lock = lock_instance(folder.path)) {
      std::error_code ignored;  // what stays is known for what it is by the next `up`
      std::filesystem::remove_all(folder.path, ignored);
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
  throw CommandError(ExitCode::failed, "the daemon has released all packets but does not end");
}

std::optional<UndoRecord> undo_record_of(const std::optional<RuntimeFolder>& folder) {
  if (!folder) return std::nullopt;
  const auto record = read_undo_record(folder->undo_record());
  if (record) return *record;
  std::fputs(fmt::format("shaper: {}\n", record.error()).c_str(), stderr);
  return std::nullopt;
}

}  // namespace shaper::cli
