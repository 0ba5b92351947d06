// The worker and its supervisor: what a worker tells, so that another one can go on, and what it is told.
#include <fmt/format.h>
#include <unistd.h>

#include "shaper/live/clock.h"
#include "shaper/live/service.h"
#include "shaper/live/supervisor.h"
#include "shaper/model/plain_text.h"

namespace shaper {
namespace {

constexpr std::string_view kGuardLine = "guard ";
constexpr std::string_view kPasswordLine = "password ";
constexpr std::string_view kLiveLine = "live ";

std::vector<PacketId> parse_released(std::string_view text) {
  std::vector<PacketId> ids;
  while (!text.empty()) {
    std::string_view line = take_line(text);
    const auto queue = parse_number<std::uint16_t>(take_word(line));
    const auto number = parse_number<std::uint32_t>(take_word(line));
    if (queue && number) ids.push_back({*queue, *number});
  }
  return ids;
}

}  // namespace

void Service::give_signs_of_life() {
  sign_of_life_.repeat(kSignOfLife);
  supervisor_.send("alive");
}

void Service::on_supervisor(const Request& message) {
  const auto& verb = message.verb;
  if (verb == "end") {
    shut_down();
  } else if (verb == "released") {
    packets_.skip(parse_released(message.body));
  } else if (verb == "restarted") {
    std::string_view rest = message.body;
    const std::string_view times = take_word(rest);
    const std::string_view when = take_word(rest);
    trouble_.push_back(fmt::format("the worker was started anew {} times, at last at {}: it {}", times, when, rest));
  } else if (verb == "unconfirmed") {
    const auto seconds = parse_number<std::uint32_t>(message.body);
    if (seconds) reverts_at_ = monotonic_now() + std::chrono::seconds{*seconds};
  } else if (verb == "rules") {
    std::string_view text = message.body;
    const std::string_view state = take_line(text);
    rules_ = parse_rules_status(state == kRepaired ? rules_status_name(RulesStatus::present) : state);
    if (state == kRepaired)
      trouble_.push_back(fmt::format("our rules were missing or changed and were {}", take_line(text)));
    rules_warnings_.clear();
    while (!text.empty()) rules_warnings_.emplace_back(take_line(text));
  } else if (verb == "answer") {
    cluster_.on_outcomes(message.body);
  } else if (verb == "connected") {
    cluster_.on_connected();
  } else if (verb == "spent") {
    cluster_.on_spent(message.body);
  } else if (verb == "no-script") {
    cluster_.on_no_script();
  } else if (verb == "owned") {
    owners_.on_answers(message.body);
  } else if (verb == "gone") {
    end_limits_of(message.body);
  } else if (verb == "lacks") {
    owners_.on_begin(message.body);
  } else if (verb == "load") {
    go_on_with(message.body);
  } else if (verb == "prepare") {
    prepare(message.body);
  } else if (verb == "hand-over") {
    hand_over(message.body);
  } else if (verb == "stay") {
    stay(message.body);
  } else if (verb == "take-over") {
    take_over();
  }
}

/// What another worker told with tell_in_force(). Nothing is read meanwhile, so nothing waits for this.
void Service::go_on_with(std::string_view in_force) {
  const Response response = bring_into_force(read_in_force(in_force));
  if (response.status != ResponseStatus::ok) throw std::runtime_error(response.body);
  control_.open();
}

Service::Reading Service::read_in_force(std::string_view in_force) {
  const std::string policy = adopt_queues(in_force);
  return read_policy(policy, {guard_ports_, live_});
}

/// Returns the request to load that stands behind the queues.
std::string Service::adopt_queues(std::string_view in_force) {
  for (std::string_view line = take_line(in_force); !line.empty(); line = take_line(in_force)) {
    if (line.starts_with(kPasswordLine)) {
      passwords_[std::string(line.substr(kPasswordLine.size()))] = take_line(in_force);
      continue;
    }
    if (line.starts_with(kGuardLine)) {
      guard_ports_ = parse_numbers(line.substr(kGuardLine.size()));
      continue;
    }
    if (line.starts_with(kLiveLine)) {
      if (auto limit = parse_live_limit_line(line.substr(kLiveLine.size()))) live_.push_back(std::move(*limit));
      continue;
    }
    const auto fast = parse_number<std::uint16_t>(take_word(line));
    const auto split = parse_number<std::uint16_t>(take_word(line));
    if (!fast || !split) continue;
    const QueuePair pair{0, *fast, *split};
    if (queues_.emplace(line, pair).second) packets_.adopt(pair);
  }
  return std::string(in_force);
}

/// The guarded ports, the password of Redis behind its file, live limits, the queues, a line `FAST SPLIT LINK` each,
/// and behind an empty line the request to load.
void Service::tell_in_force() {
  std::string text = fmt::format("{}{}\n", kGuardLine, fmt::join(loaded_->policy.guard_ports, " "));
  if (const auto& cluster = loaded_->host.cluster; cluster && passwords_.contains(cluster->password_file)) {
    text += fmt::format("{}{}\n{}\n", kPasswordLine, cluster->password_file, passwords_[cluster->password_file]);
  }
  for (const LiveLimit& limit : live_) text += fmt::format("{}{}\n", kLiveLine, live_limit_line(limit));
  std::string blocked;
  for (const auto& [name, pair] : queues_) text += fmt::format("{} {} {}\n", pair.fast, pair.split, name);
  for (const LinkPolicy& link : loaded_->policy.links) {
    const QueuePair& pair = queues_.at(link.name);
    if (link.without_daemon == WithoutDaemon::block) blocked += fmt::format("{} {} ", pair.fast, pair.split);
  }
  supervisor_.send("blocked", blocked);
  supervisor_.send("repair", loaded_->host.repair ? "1" : "0");
  supervisor_.send("in-force", fmt::format("{}\n{}\n{}", text, loaded_->file, loaded_->text));
}

Response Service::await_confirmation(const std::string& seconds) {
  const auto number = parse_number<std::uint32_t>(seconds);
  if (!number) return {ResponseStatus::refused, "revert-after needs a number of seconds"};
  supervisor_.send("revert-after", seconds);
  const bool first = !reverts_at_;
  reverts_at_ = monotonic_now() + std::chrono::seconds{*number};
  return {ResponseStatus::ok, first ? "first" : "again"};
}

Response Service::disarm() {
  if (!reverts_at_) return {ResponseStatus::refused, "nothing waits to be confirmed"};
  supervisor_.send("confirmed");
  reverts_at_.reset();
  return {};
}

void Service::add_warnings_of_supervisor(std::vector<std::string>& warnings) const {
  warnings.insert(warnings.end(), trouble_.begin(), trouble_.end());
  warnings.insert(warnings.end(), rules_warnings_.begin(), rules_warnings_.end());
  if (!reverts_at_) return;
  const auto left = std::chrono::ceil<std::chrono::seconds>(*reverts_at_ - monotonic_now());
  warnings.push_back(fmt::format("not confirmed: goes back to what was before in {} s; 'shaper confirm' keeps it",
                                 std::max<std::int64_t>(left.count(), 0)));
}

}  // namespace shaper
