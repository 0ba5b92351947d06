#include "shaper/replay/replay_log.h"

#include <fmt/format.h>

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "shaper/core/guard.h"
#include "shaper/core/shaper.h"
#include "shaper/model/config.h"
#include "shaper/model/event_log.h"
#include "shaper/model/event_names.h"
#include "shaper/model/live_limits.h"
#include "shaper/replay/event_stream.h"
#include "shaper/replay/input.h"

namespace shaper {
namespace {

/// The core is told no time outside of this, so that its sums stay in range: 146 years.
constexpr Instant kLatest{Nanos{std::int64_t{1} << 62}};

/// IP works on no link with less (RFC 791), and no packet is longer than the largest one here.
constexpr std::uint32_t kSmallestMtu = 68;
constexpr std::uint32_t kLargestMtu = 1 << 24;

/// No grant is larger: one terabyte, a thousand times the deepest bucket.
constexpr ByteCount kLargestGrant{std::uint64_t{1} << 40};

/// Feeds a core with the calls of a log, one line at a time.
class LogPlayer {
 public:
  explicit LogPlayer(const LogReplayOptions& options) : read_(options.read), events_(options.events) {}

  /// One line's event; the answer is empty if all is well, else what is wrong.
  std::string play(const Event& event) {
    if (std::string error = check_time(event); !error.empty()) return error;
    now_ = std::max(now_, event.at);
    events_.flush();
    return std::visit([this](const auto& body) { return on(body); }, event.body);
  }

  /// Nothing is left that the core said and the log does not.
  [[nodiscard]] std::optional<Verdict> missing() const {
    return next_ < verdicts_.size() ? std::optional(verdicts_[next_]) : std::nullopt;
  }

  /// All of it is written; the answer is empty, or says why not.
  [[nodiscard]] std::string finish() { return events_.finish(); }

  [[nodiscard]] bool started() const { return shaper_.has_value(); }
  [[nodiscard]] const LogReplay& result() const { return result_; }

  [[nodiscard]] std::string describe(const Verdict& verdict) const {
    const bool known = verdict.class_index < policy_.classes.size();
    return describe_verdict(verdict, known ? policy_.classes[verdict.class_index].name : "?");
  }

 private:
  static constexpr const char* kNotStarted = "the log has no `start` line in front of this";

  template <typename... Parameters, typename... Arguments>
  void write(void (EventLog::*line)(Parameters...), const Arguments&... arguments) {
    if (EventLog* log = events_.log(); log != nullptr) (log->*line)(arguments...);
  }

  /// The names in front of the policy that was read just now.
  std::span<const event::Name> new_names() {
    const std::span<const event::Name> all = names_;
    return all.subspan(std::exchange(written_names_, all.size()));
  }

  std::string check_time(const Event& event) const {
    if (event.at < Instant{} || event.at > kLatest) return "a time out of range";
    const bool timed = event.at != Instant{};
    return timed && shaper_ && event.at < now_ ? "time goes backwards" : "";
  }

  /// Every call begins here: all verdicts of the call before must have been in the log.
  std::string begin_call() {
    if (!shaper_) return kNotStarted;
    if (const auto verdict = missing())
      return fmt::format("the log lacks `{}` in front of this line", describe(*verdict));
    verdicts_.clear();
    next_ = 0;
    ++result_.calls;
    return {};
  }

  std::string read_policy(const std::string& text, Policy& policy) {
    auto policy_read = read_(text, recorded_lookup(names_));
    if (!policy_read) return policy_read.error();
    policy = std::move(*policy_read);
    set_guard_ports(policy, std::exchange(guard_ports_, {}));
    for (LiveLimit& limit : live_) {
      auto match = parse_selector(limit.selector, recorded_lookup(names_), policy.mark_mask);
      if (!match) return match.error();
      limit.match = std::move(*match);
    }
    add_live_limits(policy, std::exchange(live_, {}));
    return {};
  }

  std::string check_mtu(LinkIndex link, std::uint32_t bytes) const {
    if (link >= policy_.links.size()) return "the policy has no link of this number";
    return bytes < kSmallestMtu || bytes > kLargestMtu ? "an MTU out of range" : "";
  }

  std::string check_limit(const LimitKey& bucket) const {
    const bool known = bucket.limit < policy_.limits.size() && policy_.limits[bucket.limit].scope == Scope::cluster;
    return known ? "" : "the policy has no cluster limit of this number";
  }

  std::string check_grant(const LimitKey& bucket, ByteCount bytes) const {
    if (std::string error = check_limit(bucket); !error.empty()) return error;
    return bytes > kLargestGrant ? "a grant out of range" : "";
  }

  std::string on(const event::PolicyText& line) {
    if (shaper_) return "a second policy; a change of policy is a `swap`";
    policy_text_ = line.text;
    return read_policy(line.text, policy_);
  }

  std::string on(const event::Name& line) {
    names_.push_back(line);
    return {};
  }

  std::string on(const event::GuardPorts& line) {
    guard_ports_ = line.ports;
    return {};
  }

  std::string on(const event::Live& line) {
    if (line.rate < kSlowestRate || line.rate > kFastestRate) return "a rate out of range";
    live_.push_back({line.id, line.rate, std::nullopt, line.selector, {}});
    return {};
  }

  std::string on(const event::Mtu& line) {
    if (std::string error = check_mtu(line.link, line.bytes); !error.empty()) return error;
    if (shaper_) return "a link's first MTU behind the start";
    mtus_.push_back(line);
    return {};
  }

  std::string on(const event::Start& line) {
    if (shaper_) return "a second start";
    if (policy_.links.empty()) return "the log has no `policy` line in front of this";
    shaper_.emplace(policy_, line.credit, line.key.value_or(HashKey{}), now_);
    std::vector<std::uint32_t> mtus(policy_.links.size());
    for (const event::Mtu& mtu : mtus_) {
      shaper_->set_mtu(mtu.link, mtu.bytes);
      mtus.at(mtu.link) = mtu.bytes;
    }
    write(&EventLog::begin, now_, line, policy_, std::exchange(policy_text_, {}), new_names(), mtus);
    return {};
  }

  std::string on(const event::Arrival& line) {
    if (std::string error = begin_call(); !error.empty()) return error;
    if (line.packet.link >= policy_.links.size()) return "the policy has no link of this number";
    shaper_->on_packet(line.packet, now_, verdicts_);
    write(&EventLog::arrival, now_, line.packet);
    return {};
  }

  std::string on(const event::Release&) {
    std::string error = begin_call();
    if (!error.empty()) return error;
    shaper_->release(now_, verdicts_);
    write(&EventLog::release, now_);
    return error;
  }

  std::string on(const event::Departed&) {
    std::string error = begin_call();
    if (!error.empty()) return error;
    shaper_->on_departed(now_);
    write(&EventLog::departed, now_);
    return error;
  }

  std::string on(const event::QueuesDry&) {
    std::string error = begin_call();
    if (!error.empty()) return error;
    shaper_->on_queues_dry();
    write(&EventLog::queues_dry, now_);
    return error;
  }

  std::string on(const event::Swap& line) {
    std::string error = begin_call();
    if (error.empty()) error = read_policy(line.policy_text, policy_);
    if (!error.empty()) return error;
    shaper_->swap(policy_, now_, verdicts_);
    write(&EventLog::swap, now_, policy_, line.policy_text, new_names());
    return error;
  }

  std::string on(const event::MtuChange& line) {
    std::string error = begin_call();
    if (error.empty()) error = check_mtu(line.link, line.bytes);
    if (!error.empty()) return error;
    shaper_->set_mtu(line.link, line.bytes);
    write(&EventLog::mtu, now_, line.link, line.bytes);
    return error;
  }

  std::string on(const event::Lost& line) {
    std::string error = begin_call();
    if (!error.empty()) return error;
    shaper_->on_lost(line.verdict);
    write(&EventLog::lost, now_, line.verdict);
    return error;
  }

  std::string on(const event::PassAll&) {
    std::string error = begin_call();
    if (!error.empty()) return error;
    shaper_->pass_all(now_, verdicts_);
    write(&EventLog::pass_all, now_);
    return error;
  }

  std::string on(const event::Granted& line) {
    const Grant& grant = line.grant;
    std::string error = begin_call();
    if (error.empty()) error = check_grant(grant.to, grant.bytes);
    if (!error.empty()) return error;
    if (grant.valid_until < Instant{} || grant.valid_until > kLatest) return "a grant's end out of range";
    if (grant.pace < kSlowestRate || grant.pace > kFastestRate) return "a grant's pace out of range";
    shaper_->on_grant(grant, now_, verdicts_);
    write(&EventLog::grant, now_, grant);
    return {};
  }

  std::string on(const event::TakenBack& line) {
    std::string error = begin_call();
    if (error.empty()) error = check_grant(line.from, line.bytes);
    if (!error.empty()) return error;
    // What was there is in the core alone, and so the same here.
    static_cast<void>(shaper_->take_back(line.from, line.bytes, now_));
    write(&EventLog::take_back, now_, line.from, line.bytes);
    return error;
  }

  std::string on(const event::Refused& line) {
    std::string error = begin_call();
    if (error.empty()) error = check_limit(line.at);
    if (!error.empty()) return error;
    shaper_->refuse(line.at, line.on, now_, verdicts_);
    write(&EventLog::refuse, now_, line.at, line.on);
    return error;
  }

  std::string on(const event::Outcome& line) {
    if (!shaper_) return kNotStarted;
    const auto expected = missing();
    if (!expected) return fmt::format("the log has `{}`, the replay has no verdict here", describe(line.verdict));
    if (!same_verdict(*expected, line.verdict)) {
      return fmt::format("the log has `{}`, the replay `{}`", describe(line.verdict), describe(*expected));
    }
    write(&EventLog::outcomes, now_, std::span(&*expected, 1));
    ++next_;
    ++result_.verdicts;
    return {};
  }

  std::string on(const event::Skipped& line) {
    return fmt::format("{} lines are missing here (their reader was too slow): the rest cannot be replayed",
                       line.lines);
  }

  const PolicyReader& read_;
  EventStream events_;
  Policy policy_;
  std::string policy_text_;  // until the start
  std::vector<event::Name> names_;
  std::size_t written_names_ = 0;
  std::vector<std::uint16_t> guard_ports_;  // of the next policy
  std::vector<LiveLimit> live_;             // of the next policy
  std::vector<event::Mtu> mtus_;
  std::optional<Shaper> shaper_;
  Instant now_;
  Verdicts verdicts_;     // of the last call
  std::size_t next_ = 0;  // of them, not yet met in the log
  LogReplay result_;
};

}  // namespace

tl::expected<Policy, std::string> read_logged_policy(std::string_view text, const NameLookup& names) {
  auto parsed = parse_policy(text, "policy in this line", names);
  if (!parsed) return tl::unexpected(parsed.error().text());
  return std::move(parsed->policy);
}

tl::expected<LogReplay, std::string> replay_log(std::FILE* log, std::string_view log_name,
                                                const LogReplayOptions& options) {
  std::uint64_t line_number = 1;
  const auto failure = [&](std::string_view what) {
    return tl::unexpected(fmt::format("{}:{}: {}", log_name, line_number, what));
  };
  Lines lines(log);
  if (lines.next() != kFirstEventLine) return failure(fmt::format("an event log begins with `{}`", kFirstEventLine));
  LogPlayer player(options);
  while (const auto line = lines.next()) {
    ++line_number;
    const auto event = parse_event(*line);
    if (!event) return failure(event.error());
    if (const std::string error = player.play(*event); !error.empty()) return failure(error);
  }
  if (lines.unreadable()) return failure("the rest cannot be read");
  if (!player.started()) return failure("the log ends in front of its `start` line");
  if (const std::string error = player.finish(); !error.empty()) return failure(error);
  LogReplay result = player.result();
  result.cut_short = lines.unfinished() || player.missing();
  return result;
}

}  // namespace shaper
