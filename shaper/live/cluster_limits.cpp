#include "shaper/live/cluster_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "shaper/cluster/lease_script.h"
#include "shaper/live/clock.h"
#include "shaper/model/address_text.h"

namespace shaper {
namespace {

/// A wallet that has run dry, or a first packet, is noticed so soon.
constexpr std::chrono::milliseconds kBetweenLooks{5};

LeaseReason reason_of(std::string_view word) {
  constexpr std::array<std::string_view, 9> kUnavailable{
      "LOADING", "BUSY", "OOM", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "MISCONF", "NOREPLICAS", "TRYAGAIN"};
  constexpr std::array<std::string_view, 4> kDenied{"NOAUTH", "NOPERM", "WRONGTYPE", "WRONGPASS"};
  constexpr std::array<std::string_view, 4> kDisconnected{"disconnected", "unreachable", "refused", "garbled"};
  const auto is_in = [word](const auto& words) { return std::find(words.begin(), words.end(), word) != words.end(); };
  if (word == "timeout") return LeaseReason::timeout;
  if (is_in(kDisconnected)) return LeaseReason::disconnected;
  if (is_in(kUnavailable)) return LeaseReason::unavailable;
  return is_in(kDenied) ? LeaseReason::denied : LeaseReason::odd;
}

std::string_view word_of(LeaseState state) {
  constexpr std::array<std::string_view, 3> kNames{"cold", "leased", "fallback"};
  return kNames[static_cast<std::size_t>(state)];
}

std::string_view words_on(LeaseReason reason) {
  constexpr std::array<std::string_view, kLeaseReasons> kNames{"it was not asked yet",
                                                               "nothing was to be asked",
                                                               "it has answered",
                                                               "its last grant has ended",
                                                               "it is late",
                                                               "no connection",
                                                               "it is not ready",
                                                               "it does not let this host in",
                                                               "its answer makes no sense"};
  return kNames[static_cast<std::size_t>(reason)];
}

void add(ClusterLimitReport& limit, const LeaseCounters& counters) {
  const auto sum = [](const auto& numbers) {
    return std::accumulate(numbers.begin(), numbers.end(), std::uint64_t{0});
  };
  limit.granted += counters.granted;
  limit.returned += counters.returned;
  limit.unmetered += counters.unmetered;
  limit.in_fallback += counters.in_fallback;
  limit.fallback_time = std::max(limit.fallback_time, counters.fallback);
  limit.fallbacks += sum(counters.into_fallback);
  limit.asks += counters.asks;
  limit.failed_asks += sum(counters.failures);
  limit.clock_jumps += counters.clock_jumps;
}

}  // namespace

ClusterLimits::ClusterLimits(EventLoop& loop, PacketLoop& packets, std::function<void(const LeaseAsks&)> ask)
    : packets_(packets), ask_(std::move(ask)), timer_(loop, [this] { tick(); }) {}

void ClusterLimits::obey(const Policy& policy, const ClusterPolicy& cluster, Shaper& shaper) {
  shaper_ = &shaper;
  limits_ = policy.limits;
  cluster_ = cluster;
  // A limit's number may be another one now; its name stays.
  for (auto& [name, bucket] : buckets_) bucket.seen = false;
  demands_.clear();
  shaper_->demand(monotonic_now(), demands_);
  for (const Demand& demand : demands_) {
    const auto known = buckets_.find(name_of(demand.from));
    if (known == buckets_.end()) continue;
    known->second.seen = true;
    known->second.key = demand.from;
    known->second.lease.change(policy_of(demand.from));
  }
  std::erase_if(buckets_, [](const auto& entry) { return !entry.second.seen; });
  timer_.repeat(kBetweenLooks);
  tick();
}

void ClusterLimits::stop() {
  shaper_ = nullptr;
  buckets_.clear();
  timer_.set(std::nullopt);
}

void ClusterLimits::tick() {
  if (shaper_ == nullptr) return;
  const Instant now = monotonic_now();
  demands_.clear();
  shaper_->demand(now, demands_);
  for (auto& [name, bucket] : buckets_) bucket.seen = false;
  LeaseAsks asks;
  for (const Demand& demand : demands_) follow(demand, now, asks);
  std::erase_if(buckets_, [](const auto& entry) { return !entry.second.seen; });
  asks.timeout = round_trip_.timeout();
  if (!asks.asks.empty()) ask_(asks);
}

/// One bucket: what the core has of it is told to its lease, and what that says is done.
void ClusterLimits::follow(const Demand& demand, Instant now, LeaseAsks& asks) {
  Bucket& bucket = bucket_of(demand.from, now);
  bucket.seen = true;
  Lease& lease = bucket.lease;
  lease.on_demand(demand, now);
  if (const ByteCount bytes = lease.take_back(); bytes.value > 0) {
    lease.taken(packets_.take_back(demand.from, bytes));
  }
  if (const auto grant = lease.grant()) {
    packets_.grant({demand.from, grant->bytes, grant->valid_until, grant->pace});
  }
  if (lease.refuses() != bucket.refuses) {
    bucket.refuses = lease.refuses();
    packets_.refuse(demand.from, bucket.refuses);
  }
  if (asks.asks.size() >= kMostBucketsInCall) return;  // the next look is soon
  if (auto ask = lease.ask(now)) {
    bucket.sequence = ask->sequence;
    bucket.sent = now;
    asks.asks.push_back(std::move(*ask));
  }
}

ClusterLimits::Bucket& ClusterLimits::bucket_of(const LimitKey& key, Instant now) {
  std::string name = name_of(key);
  if (const auto known = buckets_.find(name); known != buckets_.end()) return known->second;
  // Asks of an earlier life of the bucket had smaller numbers: it asked less than once in a microsecond.
  const auto first = static_cast<std::uint64_t>(now.time_since_epoch() / std::chrono::microseconds{1});
  Lease lease(policy_of(key), round_trip_, first, Jitter(first), now);
  return buckets_.emplace(std::move(name), Bucket{std::move(lease), key, 0, now, {}}).first->second;
}

LeasePolicy ClusterLimits::policy_of(const LimitKey& key) const {
  const LimitPolicy& limit = limits_[key.limit];
  LeasePolicy policy;
  policy.bucket = name_of(key);
  policy.rate = limit.rate;
  policy.burst = burst_bytes(limit.burst, limit.rate);
  policy.interval = cluster_.interval;
  policy.without_redis = limit.cluster.without_redis;
  policy.hosts = cluster_.hosts;
  policy.local_rate = limit.cluster.local_rate;
  policy.max_rate = limit.cluster.max_rate;
  policy.reserve = limit.cluster.reserve;
  policy.observe = limit.cluster.observe;
  policy.discipline = limit.discipline;
  return policy;
}

/// The limit's name and, with `by`, its key: the same on all hosts.
std::string ClusterLimits::name_of(const LimitKey& key) const {
  const LimitPolicy& limit = limits_[key.limit];
  if (!limit.by) return limit.name;
  const FlowKey& flow = key.key;
  const std::string source = format_address(flow.family, flow.source);
  if (limit.by->by != EachBy::flow) return fmt::format("{}/{}", limit.name, source);
  return fmt::format("{}/{},{},{},{},{}", limit.name, flow.protocol, source, flow.source_port,
                     format_address(flow.family, flow.destination), flow.destination_port);
}

void ClusterLimits::on_outcomes(std::string_view text) {
  const Instant now = monotonic_now();
  for (const LeaseOutcome& outcome : parse_lease_outcomes(text)) {
    const auto known = buckets_.find(outcome.bucket);
    if (known == buckets_.end() || known->second.sequence != outcome.sequence) continue;
    Bucket& bucket = known->second;
    if (outcome.answer) {
      round_trip_.measured(now - bucket.sent);
      trouble_.reset();
      bucket.answer = *outcome.answer;
      bucket.lease.on_answer(*outcome.answer, outcome.sequence, bucket.sent, now);
    } else {
      const LeaseReason reason = reason_of(outcome.reason);
      trouble_ = reason;
      if (reason == LeaseReason::timeout) round_trip_.timed_out();
      bucket.lease.on_failure(outcome.sequence, bucket.sent, reason, now);
    }
  }
  tick();
}

void ClusterLimits::on_connected() {
  for (auto& [name, bucket] : buckets_) bucket.lease.on_connected(monotonic_now());
  tick();
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
  for (std::size_t i = 0; i < limits_.size(); ++i) {
    if (limits_[i].scope == Scope::cluster) report.limits.push_back(report_on(static_cast<LimitIndex>(i)));
  }
  return report;
}

ClusterLimitReport ClusterLimits::report_on(LimitIndex index) const {
  ClusterLimitReport report;
  report.name = limits_[index].name;
  report.limit = limits_[index].rate;
  LeaseState worst = LeaseState::cold;
  LeaseReason reason = LeaseReason::start;
  for (const auto& [name, bucket] : buckets_) {
    if (bucket.key.limit != index) continue;
    const Lease& lease = bucket.lease;
    if (report.buckets++ == 0 || lease.state() > worst) {
      worst = lease.state();
      reason = lease.reason();
      report.limit = lease.rate();
      report.fallback_rate = lease.fallback_rate();
    }
    report.members = std::max<std::uint64_t>(report.members, bucket.answer.members);
    report.generation = bucket.answer.generation;
    if (bucket.answer.contended && limits_[index].by == std::nullopt) report.share = bucket.answer.share;
    add(report, lease.counters());
  }
  report.state = word_of(worst);
  report.reason = words_on(reason);
  return report;
}

}  // namespace shaper
