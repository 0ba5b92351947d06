// The head of a log, and what all its lines have in common.
#include "shaper/replay/log_player.h"

#include <fmt/format.h>

#include <algorithm>

#include "shaper/core/guard.h"
#include "shaper/model/event_names.h"
#include "shaper/replay/report_collector.h"

namespace shaper {
namespace {

/// The core is told no time outside of this, so that its sums stay in range: 146 years.
constexpr Instant kLatest{Nanos{std::int64_t{1} << 62}};

/// IP works on no link with less (RFC 791), and no packet is longer than the largest one here.
constexpr std::uint32_t kSmallestMtu = 68;
constexpr std::uint32_t kLargestMtu = 1 << 24;

/// No grant is larger: one terabyte, a thousand times the deepest bucket.
constexpr ByteCount kLargestGrant{std::uint64_t{1} << 40};

bool out_of_range(DataRate rate) {
  return rate < kSlowestRate || rate > kFastestRate;
}

}  // namespace

std::string LogPlayer::play(const Event& event) {
  if (std::string error = check_time(event); !error.empty()) return error;
  now_ = std::max(now_, event.at);
  events_.flush();
  return std::visit([this](const auto& body) { return on(body); }, event.body);
}

ReplayFigures LogPlayer::figures() const {
  UserNames users;
  for (const event::Name& name : names_) {
    if (name.kind == event::Name::Kind::user) users[name.number] = name.name;
  }
  return replay_figures(*shaper_, policy_, users, now_);
}

/// The names in front of the policy that was read just now.
std::span<const event::Name> LogPlayer::new_names() {
  const std::span<const event::Name> all = names_;
  return all.subspan(std::exchange(written_names_, all.size()));
}

std::string LogPlayer::describe(const Verdict& verdict) const {
  const bool known = verdict.class_index < policy_.classes.size();
  return describe_verdict(verdict, known ? policy_.classes[verdict.class_index].name : "?");
}

std::string LogPlayer::check_time(const Event& event) const {
  if (event.at < Instant{} || event.at > kLatest) return "a time out of range";
  const bool timed = event.at != Instant{};
  return timed && shaper_ && event.at < now_ ? "time goes backwards" : "";
}

std::string LogPlayer::check_mtu(LinkIndex link, std::uint32_t bytes) const {
  if (link >= policy_.links.size()) return "the policy has no link of this number";
  return bytes < kSmallestMtu || bytes > kLargestMtu ? "an MTU out of range" : "";
}

std::string LogPlayer::check_limit(const LimitKey& bucket) const {
  const bool known = bucket.limit < policy_.limits.size() && policy_.limits[bucket.limit].scope == Scope::cluster;
  return known ? "" : "the policy has no cluster limit of this number";
}

std::string LogPlayer::check_grant(const LimitKey& bucket, ByteCount bytes) const {
  if (std::string error = check_limit(bucket); !error.empty()) return error;
  return bytes > kLargestGrant ? "a grant out of range" : "";
}

std::string LogPlayer::check_grant_terms(Instant valid_until, DataRate pace) {
  if (valid_until < Instant{} || valid_until > kLatest) return "a grant's end out of range";
  return out_of_range(pace) ? "a grant's pace out of range" : "";
}

std::string LogPlayer::read_policy(const std::string& text) {
  auto policy_read = read_(text, recorded_lookup(names_));
  if (!policy_read) return policy_read.error();
  policy_ = std::move(*policy_read);
  policy_text_ = text;
  set_guard_ports(policy_, std::exchange(guard_ports_, {}));
  policy_.finds_owners = std::exchange(finds_owners_, false);
  for (LiveLimit& limit : live_) {
    auto match = parse_selector(limit.selector, recorded_lookup(names_), policy_.mark_mask);
    if (!match) return match.error();
    limit.match = std::move(*match);
  }
  add_live_limits(policy_, std::exchange(live_, {}));
  return {};
}

std::string LogPlayer::on(const event::PolicyText& line) {
  if (shaper_) return "a second policy; a change of policy is a `swap`";
  return read_policy(line.text);
}

std::string LogPlayer::on(const event::Name& line) {
  names_.push_back(line);
  return {};
}

std::string LogPlayer::on(const event::GuardPorts& line) {
  guard_ports_ = line.ports;
  return {};
}

std::string LogPlayer::on(const event::FindsOwners&) {
  finds_owners_ = true;
  return {};
}

std::string LogPlayer::on(const event::Live& line) {
  if (out_of_range(line.rate)) return "a rate out of range";
  live_.push_back({line.id, line.rate, std::nullopt, line.selector, {}});
  return {};
}

std::string LogPlayer::on(const event::Mtu& line) {
  if (std::string error = check_mtu(line.link, line.bytes); !error.empty()) return error;
  if (shaper_) return "a link's first MTU behind the start";
  mtus_.push_back(line);
  return {};
}

std::string LogPlayer::on(const event::Start& line) {
  if (shaper_) return "a second start";
  if (policy_.links.empty()) return "the log has no `policy` line in front of this";
  shaper_.emplace(policy_, line.credit, line.key.value_or(HashKey{}), now_);
  std::vector<std::uint32_t> mtus(policy_.links.size());
  for (const event::Mtu& mtu : mtus_) {
    shaper_->set_mtu(mtu.link, mtu.bytes);
    mtus.at(mtu.link) = mtu.bytes;
  }
  write(&EventLog::begin, now_, line, policy_, policy_text_, new_names(), mtus);
  if (report_ != nullptr) report_->obeys(policy_, now_);
  return {};
}

std::string LogPlayer::on(const event::Granting& line) {
  const WalletState& wallet = line.wallet;
  if (!shaper_ || result_.calls > 0) return "a wallet that is not behind the `start` line";
  if (std::string error = check_limit({wallet.limit, {}}); !error.empty()) return error;
  if (std::max({wallet.left, wallet.debt, wallet.largest}) > kLargestGrant || wallet.frame > kDeepestBucket) {
    return "a wallet out of range";
  }
  std::string error = check_grant_terms(wallet.valid_until.value_or(Instant{}), wallet.pace);
  if (!error.empty()) return error;
  shaper_->set_wallet(wallet, now_);
  write(&EventLog::wallet, wallet);
  return {};
}

}  // namespace shaper
