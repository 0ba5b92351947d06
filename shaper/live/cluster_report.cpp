// What ClusterLimits tells those who look, and what it warns of.
#include <fmt/format.h>
#include <syslog.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "shaper/cluster/lease_script.h"
#include "shaper/live/clock.h"
#include "shaper/live/cluster_limits.h"
#include "shaper/live/lease_words.h"
#include "shaper/model/units_text.h"

namespace shaper {
namespace {

/// How long a host of the same name is told of.
constexpr std::chrono::seconds kRecent{60};

/// Clocks that differ by more are not kept by NTP.
constexpr std::chrono::seconds kClocksDiffer{1};

constexpr std::chrono::seconds kBetweenLogs{1};

constexpr ByteCount kFrame{1'514};

/// What holds for a limit on this host while nobody answers.
std::string consequence(const LimitPolicy& limit, DataRate fallback_rate) {
  if (limit.cluster.observe) return "nothing is counted";
  switch (limit.cluster.without_redis) {
    case WithoutRedis::reject:
      return "nothing of it passes here";
    case WithoutRedis::allow:
      return "all of it passes here, unmetered";
    case WithoutRedis::degrade:
      return fmt::format("this host keeps {} by itself", format_rate(fallback_rate));
  }
  return "";
}

}  // namespace

void ClusterLimits::add_counters(ClusterLimitReport& limit, const Bucket& bucket) {
  const LeaseCounters& counters = bucket.lease.counters();
  const auto sum = [](const auto& numbers) {
    return std::accumulate(numbers.begin(), numbers.end(), std::uint64_t{0});
  };
  limit.granted += counters.granted;
  limit.returned += counters.returned;
  limit.unmetered += counters.unmetered;
  limit.in_fallback += counters.in_fallback;
  limit.settled += counters.settled;
  limit.told += counters.told;
  limit.sent += bucket.sent_bytes;
  limit.fallback_time = std::max(limit.fallback_time, counters.fallback);
  limit.fallbacks += sum(counters.into_fallback);
  limit.asks += counters.asks;
  limit.failed_asks += sum(counters.failures);
  limit.clock_jumps += counters.clock_jumps;
  for (std::size_t i = 0; i < kLeaseReasons; ++i) {
    const std::uint64_t count = counters.into_fallback[i];
    if (count > 0) limit.fallback_reasons[std::string(word_for(static_cast<LeaseReason>(i)))] += count;
  }
}

void ClusterLimits::add(ClusterLimitReport& limit, const Bucket& bucket, Instant now) const {
  const Lease& lease = bucket.lease;
  add_counters(limit, bucket);
  if (limit.buckets++ == 0 || lease.state() == LeaseState::fallback || limit.state == word_for(LeaseState::cold)) {
    limit.state = word_for(lease.state());
    limit.reason = words_on(lease.reason());
    limit.advice = advice_on(lease.reason());
    limit.fallback_rate = lease.fallback_rate();
  }
  limit.wallet += bucket.demand.left;
  limit.debt += bucket.demand.debt;
  limit.want.bits_per_second += bucket.want.bits_per_second;
  if (lease.state() == LeaseState::leased) {
    limit.lease_age = std::max(limit.lease_age.value_or(Nanos{0}), now - bucket.answered);
  }
  if (!bucket.answer) return;
  const LeaseAnswer& answer = *bucket.answer;
  limit.members = std::max<std::uint64_t>(limit.members, answer.members);
  limit.generation = answer.generation;
  limit.contended |= answer.contended;
  if (limits_[bucket.key.limit].by) return;
  limit.lacks = {answer.burst.value - static_cast<std::uint64_t>(answer.tokens)};
  limit.wait = waiting_time(answer, std::max(bucket.demand.waiting, kFrame));
  if (answer.contended) limit.share = answer.share;
}

/// One for each limit of the policy; those that are none over several hosts have no name.
std::vector<ClusterLimitReport> ClusterLimits::begin_reports() const {
  std::vector<ClusterLimitReport> all(limits_.size());
  for (std::size_t i = 0; i < limits_.size(); ++i) {
    const LimitPolicy& limit = limits_[i];
    if (limit.scope != Scope::cluster) continue;
    if (const auto gone = gone_.find(limit.name); gone != gone_.end()) all[i] = gone->second;
    const InForce& in_force = in_force_.at(limit.name);
    all[i].name = limit.name;
    all[i].strategy = strategy_name(limit.cluster.strategy);
    all[i].state = word_for(LeaseState::cold);
    all[i].reason = words_on(LeaseReason::start);
    all[i].limit = std::min(in_force.rate, limit.cluster.max_rate.value_or(in_force.rate));
    all[i].config = in_force.config;
    all[i].config_mismatch = mismatch(limit);
  }
  return all;
}

std::optional<ClusterReport> ClusterLimits::report() const {
  if (shaper_ == nullptr) return std::nullopt;
  ClusterReport report;
  report.host = cluster_.host;
  report.redis = cluster_.redis;
  report.round_trip = round_trip_.typical();
  report.slow_round_trip = round_trip_.slow();
  report.timeout = round_trip_.timeout();
  if (trouble_) report.trouble = words_on(*trouble_);
  report.calls = calls_;
  report.connects = connects_;
  report.no_script = no_script_;
  report.replays = replays_;
  report.stale = stale_;
  report.clock_offset = clock_offset_;
  report.limits = begin_reports();
  const Instant now = monotonic_now();
  for (const auto& [name, bucket] : buckets_) add(report.limits[bucket.key.limit], bucket, now);
  std::erase_if(report.limits, [](const ClusterLimitReport& limit) { return limit.name.empty(); });
  report.warnings = warnings(report.limits);
  report.namesake = namesake_seen();
  return report;
}

// --- Warnings --------------------------------------------------------------------------------------------------------

/// Whether other hosts go by another rate or burst than this one's file.
bool ClusterLimits::mismatch(const LimitPolicy& limit) const {
  const InForce& in_force = in_force_.at(limit.name);
  return in_force.rate != limit.rate || in_force.burst != burst_bytes(limit.burst, limit.rate);
}

bool ClusterLimits::namesake_seen() const {
  return namesake_ && monotonic_now() - *namesake_ < kRecent;
}

/// In words that stay as long as what they tell of does: each is logged once.
std::vector<std::string> ClusterLimits::warnings(const std::vector<ClusterLimitReport>& limits) const {
  std::vector<std::string> lines;
  if (trouble_) {
    lines.push_back(fmt::format("Redis at {}: {}{}", cluster_.redis, words_on(*trouble_), advice_on(*trouble_)));
  }
  if (namesake_seen()) {
    lines.push_back(
        fmt::format("another host has this one's name, {}: their shares are wrong; give each its own `host` "
                    "in [cluster]",
                    cluster_.host));
  }
  if (clock_offset_ && std::chrono::abs(*clock_offset_) > kClocksDiffer) {
    lines.push_back(fmt::format(
        "the clocks of Redis at {} and of this host differ by more than {} s: limits do not suffer, they go "
        "by that of Redis; keep both by NTP",
        cluster_.redis, kClocksDiffer.count()));
  }
  for (const ClusterLimitReport& limit : limits) {
    if (limit.name.empty()) continue;
    const auto policy =
        std::find_if(limits_.begin(), limits_.end(), [&](const LimitPolicy& each) { return each.name == limit.name; });
    if (limit.config_mismatch) {
      const InForce& in_force = in_force_.at(limit.name);
      lines.push_back(fmt::format(
          "limit {}: {} with a burst of {} bytes is in force on all hosts, not {} and {} bytes of this one's "
          "file; put the same into all files and reload them: what is loaded last holds for all",
          limit.name, format_rate(in_force.rate), in_force.burst.value, format_rate(policy->rate),
          burst_bytes(policy->burst, policy->rate).value));
    }
    if (limit.state != word_for(LeaseState::fallback)) continue;
    lines.push_back(fmt::format("limit {}: falls back ({}): {}{}", limit.name, limit.reason,
                                consequence(*policy, limit.fallback_rate), trouble_ ? "" : limit.advice));
  }
  return lines;
}

/// What is at rest asks for nothing, so nothing ails it.
void ClusterLimits::log_warnings(Instant now) {
  log_at_ = now + kBetweenLogs;
  std::vector<ClusterLimitReport> limits = begin_reports();
  for (const Bucket* bucket : active_) add(limits[bucket->key.limit], *bucket, now);
  const std::vector<std::string> lines = warnings(limits);
  std::set<std::string> hold(lines.begin(), lines.end());
  for (const std::string& line : hold) {
    if (!logged_.contains(line)) ::syslog(LOG_WARNING, "%s", line.c_str());
  }
  logged_ = std::move(hold);
}

}  // namespace shaper
