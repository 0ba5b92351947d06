// shaper: its sub-commands and their options. The only file that includes CLI11, which costs seconds of compile time.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string_view>

#include "cli/commands.h"
#include "shaper/version.h"

namespace {

using shaper::Backend;
using shaper::cli::CommandError;
using shaper::cli::ExitCode;
using Run = std::function<ExitCode()>;

[[noreturn]] void not_in_this_version(std::string_view what) {
  throw CommandError(ExitCode::wrong_usage, fmt::format("'{}' is not in this version", what));
}

const std::map<std::string, Backend> kBackends{
    {"host", Backend::host}, {"nft", Backend::nft}, {"legacy", Backend::legacy}};

void add_check(CLI::App& app, Run& run) {
  auto* command = app.add_subcommand("check", "read a policy and print it as understood");
  auto file = std::make_shared<std::string>();
  command->add_option("FILE", *file, "the policy")->required();
  command->callback([file, &run] { run = [file] { return shaper::cli::check(*file); }; });
}

void add_up(CLI::App& app, Run& run) {
  auto* command = app.add_subcommand("up", "start the daemon, bring a policy into force, install the rules");
  auto options = std::make_shared<shaper::cli::UpOptions>();
  auto* file = command->add_option("FILE", options->file, "the policy")->capture_default_str();
  auto* interface = command->add_option("--interface", options->interface, "make a policy for this interface ...");
  auto* rate = command->add_option("--rate", options->rate, "... with this total rate, as 20mbit");
  interface->needs(rate)->excludes(file);
  rate->needs(interface);
  command->add_flag("--dry-run", options->dry_run, "print what would be done with privileges, do nothing");
  command->add_flag("--foreground", options->foreground, "become the daemon, log to stderr");
  command->add_option("--backend", options->backend, "host, nft or legacy: which iptables (default: the host's)")
      ->transform(CLI::Transformer(kBackends))
      ->type_name("WORD");
  command->add_option("--confirm", options->confirm, "go back after this time, as 60s, unless 'shaper confirm' comes");
  command->callback([options, &run] { run = [options] { return shaper::cli::up(*options); }; });
}

void add_reload(CLI::App& app, Run& run) {
  auto* command = app.add_subcommand("reload", "swap the policy of the running daemon");
  auto file = std::make_shared<std::optional<std::string>>();
  command->add_option("FILE", *file, "the policy (default: the file in force)");
  command->callback([file, &run] { run = [file] { return shaper::cli::reload(*file); }; });
}

void add_down(CLI::App& app, Run& run) {
  auto* command = app.add_subcommand("down", "remove the rules, release held packets, stop the daemon");
  auto dry_run = std::make_shared<bool>(false);
  command->add_flag("--dry-run", *dry_run, "print what would be done with privileges, do nothing");
  command->callback([dry_run, &run] { run = [dry_run] { return shaper::cli::down(*dry_run); }; });
}

void add_restart(CLI::App& app, Run& run) {
  app.add_subcommand("restart",
                     "a new worker, of the program on disk, goes on with all that the daemon knows and holds")
      ->callback([&run] { run = shaper::cli::restart; });
}

void add_confirm(CLI::App& app, Run& run) {
  app.add_subcommand("confirm", "keep the change that 'up --confirm' made")->callback([&run] {
    run = shaper::cli::confirm;
  });
  app.add_subcommand("revert", "go back at once to what was before that change")->callback([&run] {
    run = shaper::cli::revert;
  });
}

/// What the supervisor runs; no people's business.
void add_tend(CLI::App& app, Run& run) {
  auto* command = app.add_subcommand("tend", "")->group("");
  auto repair = std::make_shared<bool>(false);
  command->add_flag("--repair", *repair);
  command->callback([repair, &run] { run = [repair] { return shaper::cli::tend(*repair); }; });
}

void add_status(CLI::App& app, Run& run) {
  auto* command = app.add_subcommand("status", "links, classes, queues, rules, warnings");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "for programs");
  command->callback([json, &run] { run = [json] { return shaper::cli::status(*json); }; });
}

void add_flows(CLI::App& app, Run& run) {
  constexpr double kLongest = 86'400;
  auto* command = app.add_subcommand("flows", "statistics of each flow");
  auto options = std::make_shared<shaper::cli::FlowsOptions>();
  command->add_flag("--json", options->json, "for programs");
  auto* interval = command->add_option("--interval", options->interval, "rates over so many seconds, not over the last")
                       ->check(CLI::Range(1.0, kLongest))
                       ->type_name("SECONDS");
  command->add_option("--watch", options->watch, "again and again, every second or so many seconds")
      ->expected(0, 1)
      ->default_str("1")
      ->check(CLI::Range(0.1, kLongest))
      ->type_name("[SECONDS]")
      ->excludes(interval);
  command
      ->add_option("--sort", options->sort, "rate, bytes, packets, backlog, delay (p99), drops or age: largest first")
      ->type_name("KEY")
      ->capture_default_str();
  command->add_flag("--reverse", options->reverse, "smallest first");
  command->add_option("-n,--limit", options->most, "at most so many (default: all, or what the terminal has room for)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  command->add_option("--class", options->of_class, "only flows of this class")->type_name("NAME");
  command->add_option("--address", options->address, "only from or to it")->type_name("ADDRESS[/LENGTH]");
  command->add_option("--port", options->port, "only from or to it")->check(CLI::Range(1, 65'535))->type_name("N");
  command->add_option("--protocol", options->protocol, "tcp, udp, icmp, ... or a number")->type_name("WORD");
  command->add_option("--user", options->user, "only of this user")->type_name("NAME|UID");
  command->add_option("--match", options->text, "only with this text in a word, whatever its case")->type_name("TEXT");
  command->callback([options, &run] { run = [options] { return shaper::cli::flows(*options); }; });
}

void add_top(CLI::App& app, Run& run) {
  app.add_subcommand("top", "what flows, how fast and what is slow, live; limit and explain what you see")
      ->callback([&run] { run = shaper::cli::top; });
}

void add_limit(CLI::App& app, Run& run) {
  auto* command = app.add_subcommand("limit", "a limit more for some flows, from now on");
  auto selector = std::make_shared<std::string>();
  auto rate = std::make_shared<std::string>();
  auto time = std::make_shared<std::optional<std::string>>();
  command->add_option("SELECTOR", *selector, "keys of a policy's match: user=backup, or remote=10.0.0.0/8,protocol=udp")
      ->required();
  command->add_option("RATE", *rate, "of all of them together, as 5mbit")->required();
  command->add_option("--for", *time, "lift it after this time, as 10m")->type_name("TIME");
  command->callback([=, &run] { run = [=] { return shaper::cli::limit(*selector, *rate, *time); }; });

  command = app.add_subcommand("unlimit", "lift such a limit");
  auto id = std::make_shared<std::uint64_t>();
  command->add_option("ID", *id, "its number: 'shaper status' lists them")->required();
  command->callback([id, &run] { run = [id] { return shaper::cli::unlimit(*id); }; });
}

void add_run(CLI::App& app, Run& run, char* const* words) {
  auto* command = app.add_subcommand("run", "a command, under a limit of its own: shaper run --rate 5mbit -- COMMAND");
  auto rate = std::make_shared<std::optional<std::string>>();
  command->add_option("--rate", *rate, "of it and all that it starts, as 5mbit (default: no limit)");
  command->callback([=, &run] {
    if (*words == nullptr) throw CLI::ValidationError("run: a COMMAND behind '--' is missing");
    run = [=]() -> ExitCode { shaper::cli::run_command(*rate, words); };
  });
}

void add_cluster(CLI::App& app, Run& run) {
  auto* command = app.add_subcommand("cluster", "limits over several hosts");
  command->require_subcommand(1);
  auto* show = command->add_subcommand("show", "their state, as this host sees it");
  auto json = std::make_shared<bool>(false);
  show->add_flag("--json", *json, "for programs");
  show->callback([json, &run] { run = [json] { return shaper::cli::cluster_show(*json); }; });
  for (const char* later : {"set", "rm", "members"}) {
    command->add_subcommand(later, "")->group("")->prefix_command()->callback(
        [later] { not_in_this_version(fmt::format("cluster {}", later)); });
  }
}

void add_metrics(CLI::App& app, Run& run) {
  app.add_subcommand("metrics", "the statistics as text for Prometheus")->callback([&run] {
    run = shaper::cli::metrics;
  });
}

void add_explain(CLI::App& app, Run& run) {
  auto* command = app.add_subcommand("explain", "the class that a packet gets, and why");
  auto options = std::make_shared<shaper::cli::ExplainOptions>();
  auto words = std::make_shared<std::vector<std::string>>();
  command->add_option("PACKET", *words, "as 'tcp 10.0.0.1:40000 > 10.0.0.2:443 user=backup'")->required();
  command->add_option("--policy", options->policy_file, "ask this file, not the daemon");
  command->callback([options, words, &run] {
    for (const std::string& word : *words) options->packet += (options->packet.empty() ? "" : " ") + word;
    run = [options] { return shaper::cli::explain(*options); };
  });
}

void add_events(CLI::App& app, Run& run) {
  auto* command = app.add_subcommand("events", "the running daemon's event log");
  command->callback([&run] { run = [] { return shaper::cli::events(); }; });
}

void add_replay(CLI::App& app, Run& run) {
  auto* command = app.add_subcommand("replay", "a capture, or an event log, through the same core");
  auto options = std::make_shared<shaper::cli::ReplayCommandOptions>();
  command
      ->add_option("CAPTURE", options->capture, "pcap, pcapng, or the output of 'shaper events'; - is standard input")
      ->required();
  command->add_option("--policy", options->policy_file, "the policy (an event log has its own)");
  command->add_option("--link", options->link, "the link that all packets pass");
  command->add_option("--mtu", options->mtu, "of the link")->check(CLI::Range(68, 1 << 24))->capture_default_str();
  command->add_option("--events", options->events_file, "write the event log to this file");
  command->add_option("--html", options->html_file, "write a report to this file: a page for a browser");
  command->add_flag("--json", options->json, "for programs");
  command->add_flag("--quiet", options->quiet, "no progress on the terminal");
  command->callback([options, &run] { run = [options] { return shaper::cli::replay(*options); }; });
}

void add_serve(CLI::App& app, Run& run) {
  auto* command = app.add_subcommand("serve", "a live page, JSON and Prometheus metrics by HTTP, only to read");
  auto options = std::make_shared<shaper::cli::ServeOptions>();
  command->add_option("--listen", options->listen, "where, as 127.0.0.1:9469 or [::1]:9469")
      ->type_name("ADDRESS:PORT")
      ->capture_default_str();
  command->add_flag("--flows", options->flows, "show flows too: who talks to whom");
  command->add_option("--host", options->hosts, "a further name of this host, or of a proxy, that browsers may ask for")
      ->allow_extra_args(false)
      ->type_name("NAME");
  command->add_option("--user", options->user, "the user to become (default: nobody)")->type_name("NAME");
  command->callback([options, &run] { run = [options]() -> ExitCode { shaper::cli::serve(*options); }; });
}

/// How many of the arguments are ours. Behind the `--` of `run` they are another program's: CLI11 would take some for
/// lists.
int count_own(int count, char** arguments) {
  if (count < 2 || std::string_view(arguments[1]) != "run") return count;
  return static_cast<int>(std::find(arguments, arguments + count, std::string_view("--")) - arguments);
}

ExitCode run_command_line(int count, char** arguments) {
  CLI::App app{"Shapes the traffic of this host, per flow. docs/cli.md is the reference.", "shaper"};
  app.set_version_flag("--version", fmt::format("shaper {}", shaper::kVersion));
  app.require_subcommand(1);
  Run run;
  for (const auto& add :
       {add_check, add_up, add_confirm, add_reload, add_restart, add_down, add_status, add_flows, add_top, add_limit,
        add_cluster, add_metrics, add_explain, add_events, add_replay, add_serve, add_tend}) {
    add(app, run);
  }
  const int own = count_own(count, arguments);
  add_run(app, run, arguments + std::min(own + 1, count));
  try {
    app.parse(own, arguments);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      app.exit(error);  // --help and --version
      return ExitCode::done;
    }
    throw CommandError(ExitCode::wrong_usage, fmt::format("{}; see 'shaper --help'", error.what()));
  }
  return run();
}

/// One line on stderr, behind all that was printed.
void tell(std::string_view before, const std::exception& error) {
  std::fflush(stdout);
  std::fputs(fmt::format("{}{}\n", before, error.what()).c_str(), stderr);
}

}  // namespace

int main(int count, char** arguments) {
  ExitCode code = ExitCode::failed;
  try {
    code = run_command_line(count, arguments);
  } catch (const shaper::cli::PolicyError& error) {
    tell("", error);
    code = error.code();
  } catch (const CommandError& error) {
    tell("shaper: ", error);
    code = error.code();
  } catch (const std::exception& error) {
    tell("shaper: ", error);
  }
  return static_cast<int>(code);
}
