#include "cli/apply.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "cli/commands.h"
#include "cli/operator_ssh.h"
#include "cli/queue_owners.h"
#include "shaper/core/guard.h"
#include "shaper/live/nfqueue.h"
#include "shaper/model/plain_text.h"
#include "shaper/model/report.h"

namespace shaper::cli {
namespace {

constexpr std::size_t kLongestPassword = 4096;

/// The name of a file as the first line of a request.
std::string on_one_line(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, '?');
  return name;
}

/// Reads the lines `queues LINK FAST SPLIT` of the daemon's answer. Its warnings we have printed ourselves; its notices
/// only it can know of.
std::vector<QueuePair> read_answer(std::string_view answer, const Policy& policy) {
  std::vector<QueuePair> pairs;
  while (!answer.empty()) {
    const std::size_t end = std::min(answer.find('\n'), answer.size());
    std::string_view line = answer.substr(0, end);
    answer.remove_prefix(std::min(end + 1, answer.size()));
    const std::string_view kind = take_word(line);
    if (kind == "notice") std::fputs(fmt::format("{}\n", line).c_str(), stderr);
    if (kind != "queues") continue;
    const std::string_view name = take_word(line);
    const auto fast = parse_number<std::uint16_t>(take_word(line));
    const auto split = parse_number<std::uint16_t>(take_word(line));
    const auto link = std::find_if(policy.links.begin(), policy.links.end(),
                                   [name](const LinkPolicy& each) { return each.name == name; });
    if (link == policy.links.end() || !fast || !split) continue;
    pairs.push_back({static_cast<LinkIndex>(link - policy.links.begin()), *fast, *split});
  }
  if (pairs.size() != policy.links.size()) {
    throw CommandError(ExitCode::failed,
                       "the daemon did not say which queues it has bound: restart it with this version");
  }
  return pairs;
}

void print(const std::vector<std::string>& notices) {
  for (const std::string& notice : notices) std::fputs((notice + '\n').c_str(), stderr);
}

/// Who has the queues that the daemon would have bound.
void tell_owners(ControlClient& daemon) {
  const auto report = parse_status(daemon.request("status").body);
  const bool known = report && !report->queues.empty();
  print(queues_of_others(kFirstQueue + 2 * kPairsTried - 1,
                         known ? std::optional{report->queues.front().number} : std::nullopt));
}

/// The queues of the links.
std::vector<QueuePair> ask_to_load(ControlClient& daemon, const LoadedPolicy& policy) {
  const std::string request = on_one_line(policy.name) + '\n' + policy.text;
  try {
    // The file is read with the rights of who gives the policy, not with the daemon's.
    if (policy.host.cluster && !policy.host.cluster->password_file.empty()) {
      const std::string& file = policy.host.cluster->password_file;
      std::string password = read_file(file, kLongestPassword);
      password.resize(std::min(password.find_first_of("\r\n"), password.size()));
      (void)ask(daemon, "password", on_one_line(file) + '\n' + password);
    }
    return read_answer(ask(daemon, "load", request), policy.policy);
  } catch (const CommandError& error) {
    if (error.code() == ExitCode::failed) tell_owners(daemon);
    throw;
  }
}

}  // namespace

Iptables iptables_of(Backend backend, const std::string& lock_file) {
  auto iptables = Iptables::of(backend, lock_file);
  if (!iptables) throw CommandError(ExitCode::failed, iptables.error());
  return std::move(*iptables);
}

void tell_of_mixed(const Iptables& iptables) {
  if (const auto line = iptables.mixed()) print({*line});
}

std::vector<QueuePair> load(ControlClient& daemon, const LoadedPolicy& policy) {
  // Who may not look into others' processes leaves the guard as it is.
  if (probe_permission()) (void)ask(daemon, "guard", fmt::format("{}", fmt::join(ssh_ports(), " ")));
  std::vector<QueuePair> pairs = ask_to_load(daemon, policy);
  print(queues_of_others(std::ranges::max(pairs, {}, &QueuePair::split).split, pairs.front().fast));
  return pairs;
}

Policy guarded(Policy policy) {
  set_guard_ports(policy, ssh_ports());
  return policy;
}

Applied apply(ControlClient& daemon, const RuntimeFolder& folder, const LoadedPolicy& policy,
              const std::string& policy_file, Backend backend) {
  const Iptables iptables = iptables_of(backend, folder.xtables_lock());
  Applied applied{load(daemon, policy), iptables.backend()};

  UndoRecord record;
  record.boot = boot_id();
  record.cookie = folder.cookie;
  record.backend = applied.backend;
  record.queues = applied.queues;
  if (!policy_file.empty()) record.policy_file = on_one_line(std::filesystem::absolute(policy_file).string());
  if (const auto written = write_undo_record(folder.undo_record(), record); !written) {
    throw CommandError(ExitCode::failed, written.error());
  }
  const auto notices = iptables.install(guarded(policy.policy), applied.queues);
  if (!notices) throw CommandError(ExitCode::failed, notices.error());
  print(*notices);
  tell_of_mixed(iptables);
  (void)ask(daemon, "rules-installed");
  return applied;
}

std::string describe(const Applied& applied, const Policy& policy) {
  std::string text;
  for (const QueuePair& pair : applied.queues) {
    const LinkPolicy& link = policy.links.at(pair.link);
    text +=
        fmt::format("{}: {} of {} is shaped, queues {} and {}, rules in iptables ({})\n", link.name,
                    direction_name(link.direction), link.interface, pair.fast, pair.split, name_of(applied.backend));
  }
  return text;
}

}  // namespace shaper::cli
