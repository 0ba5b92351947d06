#include "cli/status.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "cli/apply.h"
#include "cli/commands.h"
#include "cli/operator_ssh.h"
#include "cli/queue_owners.h"
#include "shaper/core/guard.h"
#include "shaper/live/name_lookup.h"
#include "shaper/live/nfqueue.h"
#include "shaper/live/supervisor.h"
#include "shaper/live/whole_file.h"
#include "shaper/model/tables.h"
#include "shaper/version.h"

namespace shaper::cli {
namespace {

/// What the rules must look like for the links and queues that the daemon reports.
Policy policy_of(const StatusReport& report) {
  Policy policy;
  policy.mark_mask = report.mark_mask;
  for (const LinkReport& link : report.links) {
    LinkPolicy& of_link = policy.links.emplace_back();
    of_link.name = link.name;
    of_link.interface = link.interface;
    of_link.direction = link.direction;
    of_link.without_daemon = link.without_daemon;
  }
  for (const LimitReport& limit : report.limits) policy.limits.emplace_back().scope = limit.scope;
  return policy;
}

std::vector<QueuePair> queues_of(const StatusReport& report) {
  std::vector<QueuePair> pairs;
  for (std::size_t i = 0; i + 1 < report.queues.size(); i += 2) {
    pairs.push_back({static_cast<LinkIndex>(i / 2), report.queues[i].number, report.queues[i + 1].number});
  }
  return pairs;
}

/// Rules of ours that stop packets where nobody listens.
bool holds_blocking_rule(std::string_view saved) {
  while (!saved.empty()) {
    const std::size_t end = std::min(saved.find('\n'), saved.size());
    const std::string_view line = saved.substr(0, end);
    saved.remove_prefix(std::min(end + 1, saved.size()));
    const bool ours = line.starts_with("-A shaper-out ") || line.starts_with("-A shaper-in ");
    if (ours && line.find("NFQUEUE") != std::string_view::npos &&
        line.find("--queue-bypass") == std::string_view::npos) {
      return true;
    }
  }
  return false;
}

/// Once: the daemon may have told of it already.
void warn(StatusReport& report, const std::string& line) {
  if (std::ranges::find(report.warnings, line) == report.warnings.end()) report.warnings.push_back(line);
}

using FoundIptables = Iptables::Expected<Iptables>;

FoundIptables iptables_in_use(const std::optional<RuntimeFolder>& folder) {
  const auto record = undo_record_of(folder);
  return Iptables::of(record ? record->backend : Backend::host, folder ? folder->xtables_lock() : std::string());
}

/// Looks at the rules, if we may; says so if not.
void add_rules(StatusReport& report, const FoundIptables& iptables) {
  const auto found = iptables ? iptables->inspect(policy_of(report), queues_of(report))
                              : tl::unexpected<std::string>(iptables.error());
  if (!found) {
    warn(report, fmt::format("the rules cannot be looked at: {}", found.error()));
    return;
  }
  const bool shaping = report.mode == Mode::shaping;
  // With no daemon to compare with, any trace of us is "partly".
  report.rules = found->state == RulesState::missing || (shaping && found->state == RulesState::partly)
                     ? RulesStatus::missing
                     : RulesStatus::present;
  if (shaping && report.rules == RulesStatus::missing) {
    warn(report, "packets do not come here: the rules are missing or changed; 'shaper up' repairs them");
  }
  for (const std::string& rule : found->behind) {
    warn(report, fmt::format("a rule behind ours is not reached by what we queue: {}", rule));
  }
  for (const Family family : {Family::ipv4, Family::ipv6}) {
    const auto saved = iptables->save(family);
    if (!shaping && saved && holds_blocking_rule(*saved)) report.mode = Mode::blocked;
  }
}

/// Rules in the other back end, and queues that ours had to make way for.
void add_other_programs(StatusReport& report, const FoundIptables& iptables) {
  const auto mixed = iptables ? iptables->mixed() : std::nullopt;
  if (mixed) warn(report, *mixed);
  if (report.queues.empty()) return;
  const std::uint16_t last = std::ranges::max(report.queues, {}, &QueueReport::number).number;
  for (const std::string& line : queues_of_others(last, report.queues.front().number)) warn(report, line);
}

void print(const StatusReport& report, bool json) {
  std::fputs(json ? (status_json(report) + '\n').c_str() : status_table(report).c_str(), stdout);
}

/// Why the last daemon ended, if it gave up.
void add_trouble(StatusReport& report, const RuntimeFolder& folder) {
  const auto line = read_own_file(folder.trouble(), 4096);
  if (line && *line) report.warnings.push_back("the daemon " + (*line)->substr(0, (*line)->find('\n')));
}

/// Installs the rules of the policy in force. Returns how that went, for a sentence.
std::string put_back(ControlClient& daemon, const StatusReport& report, const FoundIptables& iptables) {
  const std::string request = ask(daemon, "policy");
  const std::size_t line_end = std::min(request.find('\n'), request.size() - 1);
  const auto parsed = parse_policy(request.substr(line_end + 1), request.substr(0, line_end), system_names());
  if (!parsed) return fmt::format("not put back: {}", parsed.error().text());
  const auto done = iptables.and_then(
      [&](const Iptables& found) { return found.install(guarded(parsed->policy), queues_of(report)); });
  return done ? fmt::format("put back at {:%FT%TZ}", fmt::gmtime(std::time(nullptr)))
              : fmt::format("not put back: {}", done.error());
}

/// An SSH server may start later than we do, as at boot: then its ports are guarded too.
void guard_late_servers(ControlClient& daemon, const StatusReport& report) {
  const auto is_guard = [](const ClassReport& row) { return row.name == kGuardClass; };
  if (std::any_of(report.classes.begin(), report.classes.end(), is_guard)) return;
  const std::vector<std::uint16_t> ports = ssh_ports();
  if (!ports.empty()) (void)daemon.request("guard-too", fmt::format("{}", fmt::join(ports, " ")));
}

}  // namespace

ExitCode say_no_daemon() {
  std::fputs("shaper: no daemon runs here\n", stderr);
  return ExitCode::no_daemon;
}

StatusReport report_without_daemon(const std::optional<RuntimeFolder>& folder) {
  StatusReport report;
  report.version = kVersion;
  report.mode = Mode::bypassed;
  if (folder) add_trouble(report, *folder);
  if (probe_permission()) add_rules(report, iptables_in_use(folder));
  const bool rules = report.rules == RulesStatus::present;
  if (report.mode == Mode::blocked) {
    report.warnings.emplace_back("traffic is blocked until a daemon runs; 'shaper up' starts it, 'shaper down' opens");
  } else if (rules) {
    report.warnings.emplace_back("traffic flows unshaped; 'shaper up' repairs, 'shaper down' removes our rules");
  }
  return report;
}

ExitCode tend(bool repair) {
  require_permission();
  const FoundIptables iptables = iptables_in_use(find_folder());
  ControlClient daemon = connect_or_fail();
  StatusReport report = ask_status(daemon);
  std::string text;
  const auto look = [&] {
    report.warnings.clear();
    report.rules.reset();
    add_rules(report, iptables);
  };
  look();
  if (repair && report.rules == RulesStatus::missing) {
    text = fmt::format("{}\n{}\n", kRepaired, put_back(daemon, report, iptables));
    look();
  } else {
    text = report.rules ? fmt::format("{}\n", rules_status_name(*report.rules)) : "unknown\n";
  }
  for (const std::string& warning : report.warnings) text += warning + '\n';
  std::fputs(text.c_str(), stdout);
  guard_late_servers(daemon, report);
  return ExitCode::done;
}

ExitCode status(bool json) {
  const auto folder = find_folder();
  auto daemon = connect(folder);
  if (!daemon) {
    print(report_without_daemon(folder), json);
    return say_no_daemon();
  }
  StatusReport report = ask_status(*daemon);
  if (probe_permission()) {
    const FoundIptables iptables = iptables_in_use(folder);
    add_rules(report, iptables);
    add_other_programs(report, iptables);
  }
  print(report, json);
  return ExitCode::done;
}

}  // namespace shaper::cli
