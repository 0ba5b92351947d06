#include "shaper/live/iptables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <sstream>

#include "shaper/live/iptables_host.h"
#include "shaper/model/saved_rules.h"

namespace shaper {
namespace {

constexpr int kLockSeconds = 5;
constexpr std::chrono::seconds kTimeLimit{kLockSeconds + 10};

/// What iptables said, on one line and free of control characters.
std::string own_words(const Outcome& outcome) {
  std::string words;
  std::istringstream lines{outcome.errors};
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with('#') || line.starts_with("Try `")) continue;
    if (!words.empty()) words += "; ";
    for (const char c : line) words += c < ' ' || c == '\x7f' ? ' ' : c;
  }
  return words.empty() ? fmt::format("exit status {}", outcome.status) : words;
}

std::string failure(const Command& command, const Outcome& outcome) {
  const std::string& name = command.arguments.front();
  if (outcome.timed_out) return fmt::format("{} did not end within {} s", name, kTimeLimit.count());
  if (outcome.errors.find("xtables lock") != std::string::npos) {
    return fmt::format("{}: another program held the xtables lock for {} s; try again", name, kLockSeconds);
  }
  return fmt::format("{}: {}", name, own_words(outcome));
}

}  // namespace

std::string_view name_of(Backend backend) {
  constexpr std::array<std::string_view, 3> kNames{"host", "nft", "legacy"};
  return kNames.at(static_cast<std::size_t>(backend));
}

Iptables::Expected<Iptables> Iptables::of(Backend backend, std::string lock_file) {
  if (backend != Backend::host) return Iptables{backend, std::move(lock_file)};
  const Command command{{"iptables", "--version"}, "", {}};
  const Outcome outcome = run(command, kTimeLimit);
  if (!outcome.ok()) return tl::unexpected(failure(command, outcome));
  const bool nft = outcome.output.find("nf_tables") != std::string::npos;
  return Iptables{nft ? Backend::nft : Backend::legacy, std::move(lock_file)};
}

Iptables::Expected<std::string> Iptables::save(Family family) const {
  if (backend_ == Backend::legacy && legacy_table(family) == LegacyTable::missing) return "";
  const Command command{{program(family, backend_, "save"), "-t", "mangle"}, "", {}};
  Outcome outcome = run(command, kTimeLimit);
  if (!outcome.ok()) return tl::unexpected(failure(command, outcome));
  if (outcome.output.find("`mangle' is incompatible") != std::string::npos) {
    return tl::unexpected(command.arguments.front() +
                          ": the table mangle holds rules made by nft that iptables cannot read, so ours cannot "
                          "be told from them; move those to a table of their own");
  }
  return std::move(outcome.output);
}

Command Iptables::restore_command(Family family, std::string text) const {
  Command command{{program(family, backend_, "restore"), "--noflush", "--counters", "-w", std::to_string(kLockSeconds)},
                  std::move(text),
                  {}};
  if (!lock_file_.empty()) command.environment.emplace_back("XTABLES_LOCKFILE", lock_file_);
  return command;
}

Iptables::Expected<void> Iptables::restore(Family family, const std::string& text) const {
  if (text.empty()) return {};
  const Command command = restore_command(family, text);
  const Outcome outcome = run(command, kTimeLimit);
  if (!outcome.ok()) return tl::unexpected(failure(command, outcome));
  return {};
}

Iptables::Expected<std::vector<Iptables::Step>> Iptables::install_steps(const Policy& policy,
                                                                        std::span<const QueuePair> queues,
                                                                        std::vector<std::string>& notices) const {
  std::vector<Step> steps;
  for (const Family family : {Family::ipv4, Family::ipv6}) {
    std::optional<std::string> left_out = family == Family::ipv6 ? reason_without_ipv6(backend_) : std::nullopt;
    Expected<std::string> saved = left_out ? "" : save(family);
    if (!saved && family == Family::ipv6 && means_no_table(saved.error())) left_out = saved.error();
    if (left_out) {
      notices.push_back(without_ipv6(*left_out));
      continue;
    }
    if (!saved) return tl::unexpected(saved.error());
    auto text = rules_to_install(policy, queues, family, *saved);
    if (!text) return tl::unexpected(text.error());
    steps.push_back({family, std::move(*saved), std::move(*text)});
  }
  return steps;
}

/// What must be said if it fails; empty if it did not.
std::string Iptables::take_back(std::span<const Step> done) const {
  std::string trouble;
  for (const Step& step : done) {
    if (step.text.empty()) continue;
    const auto back = save(step.family).and_then([&](const std::string& saved) {
      return restore(step.family, rules_to_take_back(step.before, saved));
    });
    if (!back) trouble += fmt::format("; {} rules not taken back: {}", family_name(step.family), back.error());
  }
  return trouble;
}

/// Whether the rules go in without those that set CE. They are tried, for error words differ from back end to back end.
bool Iptables::lacks_ce(const Policy& policy, std::span<const QueuePair> queues, const Step& failed) const {
  if (!sets_ce(policy, Direction::egress) && !sets_ce(policy, Direction::ingress)) return false;
  Policy plain = policy;
  for (ClassPolicy& cls : plain.classes) cls.ecn = false;
  const auto text = rules_to_install(plain, queues, failed.family, failed.before);
  if (!text || !restore(failed.family, *text)) return false;
  const Step tried{failed.family, failed.before, *text};
  static_cast<void>(take_back(std::span{&tried, 1}));
  return true;
}

Iptables::Expected<std::vector<std::string>> Iptables::install(const Policy& policy,
                                                               std::span<const QueuePair> queues) const {
  std::vector<std::string> notices;
  const auto steps = install_steps(policy, queues, notices);
  if (!steps) return tl::unexpected(steps.error());
  for (std::size_t i = 0; i < steps->size(); ++i) {
    const Step& step = (*steps)[i];
    const auto done = restore(step.family, step.text);
    if (done) continue;
    if (step.family == Family::ipv6 && means_no_table(done.error())) {
      notices.push_back(without_ipv6(done.error()));
      continue;
    }
    std::string trouble = done.error();
    if (lacks_ce(policy, queues, step)) {
      trouble = fmt::format("this kernel cannot set CE by a rule (xt_mark, xt_TOS); set ecn = false in each class ({})",
                            done.error());
    }
    return tl::unexpected(trouble + take_back(std::span{*steps}.first(i)));
  }
  for (const Step& step : *steps) {
    for (const std::string& rule : rules_run_twice(policy, step.before)) {
      notices.push_back(
          fmt::format("{}: this rule runs twice for each packet that gets CE; move it to another hook, or "
                      "set ecn = false: {}",
                      family_name(step.family), rule));
    }
  }
  // Only now, so that nothing is unshaped meanwhile.
  const auto cleaned = Iptables{other_than(backend_), lock_file_}.remove_own(Unreadable::is_empty);
  if (!cleaned) notices.push_back(fmt::format("rules of ours are left behind: {}", cleaned.error()));
  return notices;
}

Iptables::Expected<void> Iptables::remove_own(Unreadable unreadable) const {
  Expected<void> first_error;
  for (const Family family : families(backend_)) {
    const bool may_be_empty = unreadable == Unreadable::is_empty;
    if (may_be_empty && backend_ == Backend::legacy && legacy_table(family) != LegacyTable::there) continue;
    const auto saved = save(family);
    if (!saved && (may_be_empty || means_no_table(saved.error()))) continue;
    const auto done = saved.and_then([&](const std::string& text) { return restore(family, rules_to_remove(text)); });
    if (!done && first_error) first_error = done;
  }
  return first_error;
}

Iptables::Expected<void> Iptables::remove() const {
  const auto other = Iptables{other_than(backend_), lock_file_}.remove_own(Unreadable::is_empty);
  const auto own = remove_own(Unreadable::is_error);
  return own ? other : own;
}

Iptables::Expected<RulesReport> Iptables::inspect(const Policy& policy, std::span<const QueuePair> queues) const {
  std::optional<RulesReport> all;
  for (const Family family : families(backend_)) {
    const auto saved = save(family);
    if (!saved && family == Family::ipv6 && means_no_table(saved.error())) continue;
    if (!saved) return tl::unexpected(saved.error());
    const RulesReport report = inspect_rules(policy, queues, family, *saved);
    if (!all) all = {report.state, {}};
    if (all->state != report.state) all->state = RulesState::partly;
    all->behind.insert(all->behind.end(), report.behind.begin(), report.behind.end());
  }
  return *all;
}

/// Without a table's name, -save shows those that are there; with one, the legacy program would make it.
std::optional<std::string> Iptables::mixed() const {
  const Backend other = other_than(backend_);
  std::string where;
  for (const Family family : families(other)) {
    const Outcome outcome = run({{program(family, other, "save")}, "", {}}, kTimeLimit);
    const std::vector<std::string> tables = outcome.ok() ? foreign_tables(outcome.output) : std::vector<std::string>{};
    if (tables.empty()) continue;
    where += fmt::format("{}{} {}", where.empty() ? "" : ", ", family_name(family), fmt::join(tables, " and "));
  }
  if (where.empty()) return std::nullopt;
  return fmt::format(
      "iptables ({0}) has rules of others in {1}, and ours are for iptables ({2}): both hold, a packet meets the table "
      "first that was made last, and 'shaper' looks at other rules in {2} only; keep all in one, as with --backend {0}",
      name_of(other), where, name_of(backend_));
}

Iptables::Expected<std::vector<Command>> Iptables::plan_install(const Policy& policy,
                                                                std::span<const QueuePair> queues) const {
  std::vector<Command> commands;
  for (const Family family : families(backend_)) {
    const auto text = rules_to_install(policy, queues, family, save(family).value_or(""));
    if (!text) return tl::unexpected(text.error());
    if (!text->empty()) commands.push_back(restore_command(family, *text));
  }
  return commands;
}

std::vector<Command> Iptables::plan_remove() const {
  std::vector<Command> commands;
  for (const Iptables& tables : {*this, Iptables{other_than(backend_), lock_file_}}) {
    for (const Family family : families(tables.backend_)) {
      std::string text = rules_to_remove(tables.save(family).value_or(""));
      if (!text.empty()) commands.push_back(tables.restore_command(family, std::move(text)));
    }
  }
  return commands;
}

}  // namespace shaper
