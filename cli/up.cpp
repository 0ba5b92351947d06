#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "cli/apply.h"
#include "cli/commands.h"
#include "cli/confirm.h"
#include "shaper/live/nfqueue.h"
#include "shaper/live/system_call.h"
#include "shaper/model/report.h"
#include "shaper/model/units_text.h"

namespace shaper::cli {
namespace {

constexpr std::chrono::hours kLongestConfirm{24};

void check_usage(const UpOptions& options) {
  if (options.confirm) {
    const auto time = parse_time(*options.confirm);
    if (!time) throw CommandError(ExitCode::wrong_usage, fmt::format("--confirm: {}", time.error()));
    if (*time > kLongestConfirm) throw CommandError(ExitCode::wrong_usage, "--confirm: a day at most");
  }
  if (options.interface.empty()) return;
  if (const auto rate = parse_rate(options.rate); !rate) {
    throw CommandError(ExitCode::wrong_usage, fmt::format("--rate: {}", rate.error()));
  }
  if (!is_safe_interface_name(options.interface)) {
    throw CommandError(ExitCode::wrong_usage, "--interface: not the name of an interface");
  }
}

LoadedPolicy policy_of(const UpOptions& options) {
  if (options.interface.empty()) {
    LoadedPolicy policy = load_policy(options.file);
    warn_of_owners(policy.policy);
    return policy;
  }
  const std::string text = policy_for_interface(options.interface, options.rate);
  std::fputs((text + '\n').c_str(), stdout);
  std::fflush(stdout);
  return check_policy(text, "the policy made of --interface and --rate");
}

/// An open undo record of this boot means that the last daemon crashed: its successor begins without credit.
bool after_a_crash(const std::optional<RuntimeFolder>& folder) {
  const auto record = undo_record_of(folder);
  return record && record->tells_of_a_crash(boot_id(), folder->cookie);
}

/// For --dry-run; the daemon tells the real ones.
std::vector<QueuePair> expected_queues(std::optional<ControlClient>& daemon, const Policy& policy) {
  std::vector<QueueReport> bound;
  if (daemon) {
    if (const auto report = parse_status(ask(*daemon, "status"))) bound = report->queues;
  }
  std::vector<QueuePair> pairs;
  for (std::size_t link = 0; link < policy.links.size(); ++link) {
    const bool known = 2 * link + 1 < bound.size();
    const auto usual = static_cast<std::uint16_t>(kFirstQueue + 2 * link);
    pairs.push_back({static_cast<LinkIndex>(link), known ? bound[2 * link].number : usual,
                     known ? bound[2 * link + 1].number : static_cast<std::uint16_t>(usual + 1)});
  }
  return pairs;
}

ExitCode dry_run(const UpOptions& options, const LoadedPolicy& policy) {
  const auto folder = find_folder();
  auto daemon = connect(folder);
  const Iptables iptables = iptables_of(options.backend, folder ? folder->xtables_lock() : "");
  const auto commands = iptables.plan_install(policy.policy, expected_queues(daemon, policy.policy));
  if (!commands) throw CommandError(ExitCode::failed, commands.error());
  std::string text;
  if (!daemon) text = fmt::format("{}{}\n", daemon_program(), options.foreground ? " --foreground" : "");
  for (const Command& command : *commands) text += fmt::format("{} <<'EOF'\n{}EOF\n", command.text(), command.input);
  std::fputs(text.c_str(), stdout);
  return ExitCode::done;
}

void apply_and_report(ControlClient& daemon, const UpOptions& options, const LoadedPolicy& policy) {
  const auto folder = find_folder();
  if (!folder) throw CommandError(ExitCode::failed, "the run-time folder of the daemon has vanished");
  const std::string file = options.interface.empty() ? options.file : "";
  std::optional<PendingChange> pending;
  if (options.confirm) pending.emplace(daemon, *folder, *parse_time(*options.confirm));
  try {
    const Applied applied = apply(daemon, *folder, policy, file, options.backend);
    std::fputs(describe(applied, policy.policy).c_str(), stdout);
  } catch (...) {
    if (pending) pending->call_off();
    throw;
  }
  if (pending) {
    std::fputs(fmt::format("goes back in {} to what was before, unless 'shaper confirm' comes first\n",
                           format_time(*parse_time(*options.confirm)))
                   .c_str(),
               stdout);
  }
  std::fflush(stdout);
}

/// The daemon that we have started goes again, and nothing is left.
void take_back() {
  const auto folder = find_folder();
  auto daemon = connect(folder);
  if (folder) end_daemon(daemon, *folder);
}

void start_and_apply(const UpOptions& options, const LoadedPolicy& policy) {
  start_daemon(after_a_crash(find_folder()));
  try {
    ControlClient daemon = connect_or_fail();
    apply_and_report(daemon, options, policy);
  } catch (...) {
    take_back();
    throw;
  }
}

// ---- --foreground: this process becomes the daemon, a grandchild (which it need not wait for) brings the policy.

std::optional<ControlClient> wait_for_daemon(pid_t daemon) {
  constexpr int kTries = 500;
  for (int i = 0; i < kTries && ::kill(daemon, 0) == 0; ++i) {
    if (auto client = connect(find_folder())) return client;
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
  }
  return std::nullopt;
}

/// In the grandchild: on an error it says so and ends the daemon.
[[noreturn]] void bring_policy_to(pid_t daemon, const UpOptions& options, const LoadedPolicy& policy) {
  try {
    auto client = wait_for_daemon(daemon);
    if (!client) ::_exit(1);  // the daemon itself has said why
    apply_and_report(*client, options, policy);
    ::_exit(0);
  } catch (const std::exception& error) {
    std::fputs(fmt::format("shaper: {}\n", error.what()).c_str(), stderr);
    ::kill(daemon, SIGTERM);
    ::_exit(1);
  }
}

ExitCode become_daemon(const UpOptions& options, const LoadedPolicy& policy) {
  std::string program = daemon_program();
  std::string foreground = "--foreground";
  std::string empty_buckets = "--empty-buckets";
  const bool crashed = after_a_crash(find_folder());
  const pid_t self = ::getpid();
  const pid_t child = require(::fork(), "fork");
  if (child == 0) {
    if (::fork() != 0) ::_exit(0);
    bring_policy_to(self, options, policy);
  }
  require(::waitpid(child, nullptr, 0), "waitpid");
  std::array<char*, 4> arguments{program.data(), foreground.data(), crashed ? empty_buckets.data() : nullptr, nullptr};
  ::execv(program.c_str(), arguments.data());
  throw CommandError(ExitCode::failed, fmt::format("{}: {}", program, std::strerror(errno)));
}

}  // namespace

ExitCode up(const UpOptions& options) {
  check_usage(options);
  if (!options.dry_run) require_permission();
  const LoadedPolicy policy = policy_of(options);
  if (options.dry_run) return dry_run(options, policy);
  if (auto daemon = connect(find_folder())) {
    apply_and_report(*daemon, options, policy);
    return ExitCode::done;
  }
  if (options.foreground) return become_daemon(options, policy);
  start_and_apply(options, policy);
  return ExitCode::done;
}

}  // namespace shaper::cli
