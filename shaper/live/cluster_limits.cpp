#include "shaper/live/cluster_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "shaper/cluster/lease_script.h"
#include "shaper/core/keyed_buckets.h"
#include "shaper/live/clock.h"
#include "shaper/live/lease_words.h"
#include "shaper/model/address_text.h"

namespace shaper {
namespace {

/// A wallet that has run dry, or a first packet, is noticed so soon.
constexpr std::chrono::milliseconds kBetweenLooks{5};
/// Where every packet waits for an answer.
constexpr std::chrono::milliseconds kBetweenLooksOfRemote{1};

/// So many buckets at rest are looked at each time.
constexpr int kSwept = 4;

/// A host that has started anew finds its earlier incarnation once, or twice where an ask of that was still on its way.
constexpr unsigned kTakenByNamesake = 3;

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

}  // namespace

ClusterLimits::ClusterLimits(EventLoop& loop, PacketLoop& packets, std::function<void(const LeaseAsks&)> ask)
    : packets_(packets), ask_(std::move(ask)), timer_(loop, [this] { tick(); }) {}

void ClusterLimits::obey(const Policy& policy, const ClusterPolicy& cluster, Shaper& shaper, bool ordered) {
  shaper_ = &shaper;
  limits_ = policy.limits;
  cluster_ = cluster;
  for (const LimitPolicy& limit : limits_) {
    if (limit.scope == Scope::cluster) agree(limit, ordered);
  }
  // A limit's number may be another one now; its name stays.
  by_key_.clear();
  active_.clear();
  full_ = false;
  for (auto& [name, bucket] : buckets_) bucket.active = false;
  const Instant now = monotonic_now();
  std::vector<Demand> demands;
  shaper_->demand(now, demands);
  for (const Demand& demand : demands) {
    const auto known = buckets_.find(name_of(demand.from));
    if (known != buckets_.end()) {
      known->second.key = demand.from;
      known->second.lease.change(policy_of(demand.from));
      by_key_[demand.from] = &known->second;
    }
    activate(bucket_of(demand.from, now));
  }
  std::erase_if(buckets_, [this](const auto& entry) {
    if (!entry.second.active) add_counters(gone_[entry.second.limit], entry.second);
    return !entry.second.active;
  });
  const bool remote = std::any_of(limits_.begin(), limits_.end(), [](const LimitPolicy& limit) {
    return limit.scope == Scope::cluster && limit.cluster.strategy == Strategy::remote;
  });
  timer_.repeat(remote ? kBetweenLooksOfRemote : kBetweenLooks);
  tick();
}

/// Which version the file's rate and burst are: those in force, or if somebody ordered others, the next one.
void ClusterLimits::agree(const LimitPolicy& limit, bool ordered) {
  const ByteCount burst = burst_bytes(limit.burst, limit.rate);
  const auto [known, fresh] = in_force_.try_emplace(limit.name, InForce{0, limit.rate, burst, 0});
  InForce& in_force = known->second;
  const bool differs = in_force.rate != limit.rate || in_force.burst != burst;
  if (differs && ordered) in_force = {in_force.config + 1, limit.rate, burst, 0};
  if (!differs || ordered) in_force.ours = in_force.config;
}

void ClusterLimits::learn(const Bucket& bucket, const LeaseAnswer& answer) {
  InForce& in_force = in_force_.at(bucket.limit);
  if (answer.config < in_force.config) return;
  in_force.config = answer.config;
  in_force.rate = answer.rate;
  in_force.burst = answer.burst;
  if (!mismatch(limits_[bucket.key.limit])) in_force.ours = answer.config;
}

void ClusterLimits::stop() {
  shaper_ = nullptr;
  active_.clear();
  by_key_.clear();
  buckets_.clear();
  in_force_.clear();
  gone_.clear();
  timer_.set(std::nullopt);
}

void ClusterLimits::tick() {
  if (shaper_ == nullptr) return;
  const Instant now = monotonic_now();
  stirred_.clear();
  shaper_->stirred(stirred_);
  for (const LimitKey& key : stirred_) activate(bucket_of(key, now));
  // More than go in a call take turns.
  if (full_) std::rotate(active_.begin(), active_.begin() + kMostBucketsInCall, active_.end());
  LeaseAsks asks;
  std::erase_if(active_, [&](Bucket* bucket) {
    const auto demand = shaper_->demand(bucket->key, now);
    if (!demand) {
      forget(*bucket);
      return true;
    }
    follow(*bucket, *demand, now, asks);
    bucket->active = demand->waiting.value > 0 || bucket->lease.next_call().has_value();
    return !bucket->active;
  });
  full_ = asks.asks.size() == kMostBucketsInCall && active_.size() > kMostBucketsInCall;
  asks.timeout = round_trip_.timeout();
  if (!asks.asks.empty()) ask_(asks);
  sweep(now);
  if (now >= log_at_) log_warnings(now);
}

void ClusterLimits::activate(Bucket& bucket) {
  if (std::exchange(bucket.active, true)) return;
  active_.push_back(&bucket);
}

/// What the core has of a bucket is told to its lease, and what that says is done.
void ClusterLimits::follow(Bucket& bucket, const Demand& demand, Instant now, LeaseAsks& asks) {
  const ByteCount before = demand.spent < bucket.demand.spent ? ByteCount{} : bucket.demand.spent;
  bucket.sent_bytes += demand.spent - before;
  bucket.demand = demand;
  Lease& lease = bucket.lease;
  lease.on_demand(demand, now);
  if (const ByteCount bytes = lease.take_back(); bytes.value > 0) {
    lease.taken(packets_.take_back(bucket.key, bytes));
  }
  if (const auto grant = lease.grant()) {
    packets_.grant({bucket.key, grant->bytes, grant->valid_until, grant->pace});
  }
  if (lease.refuses() != bucket.refuses) {
    bucket.refuses = lease.refuses();
    packets_.refuse(bucket.key, bucket.refuses);
  }
  if (asks.asks.size() >= kMostBucketsInCall) return;  // the next look is soon
  if (auto ask = lease.ask(now)) {
    bucket.sequence = ask->sequence;
    bucket.want = ask->want;
    bucket.sent = now;
    asks.asks.push_back(std::move(*ask));
  }
}

/// Looks at a few of those at rest: the core may have forgotten them.
void ClusterLimits::sweep(Instant now) {
  for (int looks = 0; looks < kSwept && !by_key_.empty(); ++looks) {
    auto next = by_key_.upper_bound(swept_);
    if (next == by_key_.end()) next = by_key_.begin();
    swept_ = next->first;
    if (!next->second->active && !shaper_->demand(swept_, now)) forget(*next->second);
  }
}

/// What it counted stays.
void ClusterLimits::forget(const Bucket& bucket) {
  add_counters(gone_[bucket.limit], bucket);
  by_key_.erase(bucket.key);
  buckets_.erase(buckets_.find(bucket.name));
}

ClusterLimits::Bucket& ClusterLimits::bucket_of(const LimitKey& key, Instant now) {
  if (const auto known = by_key_.find(key); known != by_key_.end()) return *known->second;
  // Asks of an earlier life of the bucket had smaller numbers: it asked less than once in a microsecond.
  const auto first = static_cast<std::uint64_t>(now.time_since_epoch() / std::chrono::microseconds{1});
  Lease lease(policy_of(key), round_trip_, first, Jitter(first), now);
  Bucket fresh{.lease = std::move(lease), .key = key, .name = name_of(key), .limit = limits_[key.limit].name};
  Bucket& bucket = buckets_.emplace(fresh.name, std::move(fresh)).first->second;
  by_key_[key] = &bucket;
  return bucket;
}

LeasePolicy ClusterLimits::policy_of(const LimitKey& key) const {
  const LimitPolicy& limit = limits_[key.limit];
  LeasePolicy policy;
  policy.bucket = name_of(key);
  policy.config = in_force_.at(limit.name).ours;
  policy.rate = limit.rate;
  policy.burst = burst_bytes(limit.burst, limit.rate);
  policy.interval = cluster_.interval;
  policy.without_redis = limit.cluster.without_redis;
  policy.hosts = cluster_.hosts;
  policy.local_rate = limit.cluster.local_rate;
  policy.max_rate = limit.cluster.max_rate;
  policy.reserve = limit.cluster.reserve;
  policy.observe = limit.cluster.observe;
  policy.strategy = limit.cluster.strategy;
  policy.discipline = limit.discipline;
  return policy;
}

/// The limit's name and, with `by`, its key: the same on all hosts.
std::string ClusterLimits::name_of(const LimitKey& key) const {
  const LimitPolicy& limit = limits_[key.limit];
  if (!limit.by) return limit.name;
  const FlowKey& flow = key.key;
  if (flow == kOtherKeys) return limit.name + "/other";
  if (limit.by->by == EachBy::user) {
    const auto user = user_of_bucket(flow);
    return user ? fmt::format("{}/uid-{}", limit.name, *user) : limit.name + "/unknown";
  }
  const std::string source = format_address(flow.family, flow.source);
  if (limit.by->by != EachBy::flow) return fmt::format("{}/{}", limit.name, source);
  return fmt::format("{}/{},{},{},{},{}", limit.name, flow.protocol, source, flow.source_port,
                     format_address(flow.family, flow.destination), flow.destination_port);
}

void ClusterLimits::on_outcomes(std::string_view text) {
  const Instant now = monotonic_now();
  const std::vector<LeaseOutcome> outcomes = parse_lease_outcomes(text);
  if (!outcomes.empty()) {
    const LeaseOutcome& first = outcomes.front();
    ++calls_[std::string(first.answer ? "answered" : word_for(reason_of(first.reason)))];
  }
  for (const LeaseOutcome& outcome : outcomes) {
    const auto known = buckets_.find(outcome.bucket);
    if (known == buckets_.end() || known->second.sequence != outcome.sequence) continue;
    Bucket& bucket = known->second;
    if (outcome.answer) {
      on_answer(bucket, outcome, now);
      continue;
    }
    const LeaseReason reason = reason_of(outcome.reason);
    trouble_ = reason;
    if (reason == LeaseReason::timeout) round_trip_.timed_out();
    bucket.lease.on_failure(outcome.sequence, bucket.sent, reason, now);
  }
  tick();
}

void ClusterLimits::on_answer(Bucket& bucket, const LeaseOutcome& outcome, Instant now) {
  using Status = LeaseAnswer::Status;
  const LeaseAnswer& answer = *outcome.answer;
  round_trip_.measured(now - bucket.sent);
  trouble_.reset();
  const Nanos redis = std::chrono::microseconds{static_cast<std::int64_t>(answer.redis_time_us)};
  clock_offset_ = redis - (now - (now - bucket.sent) / 2).time_since_epoch() - offset_to_utc();
  if (answer.status == Status::replay) ++replays_;
  if (answer.status == Status::stale) ++stale_;
  if (answer.status == Status::taken && ++bucket.taken >= kTakenByNamesake) namesake_ = now;
  if (answer.status != Status::foreign) learn(bucket, answer);
  bucket.answer = answer;
  bucket.answered = now;
  bucket.lease.on_answer(answer, outcome.sequence, bucket.sent, now);
}

void ClusterLimits::on_spent(std::string_view text) {
  for (const SpentElsewhere& each : parse_spent_elsewhere(text)) {
    const auto known = buckets_.find(each.bucket);
    if (known != buckets_.end()) known->second.lease.on_spent_elsewhere(each.bytes, each.redis_time_us);
  }
  tick();
}

void ClusterLimits::on_connected() {
  ++connects_;
  for (auto& [name, bucket] : buckets_) {
    bucket.taken = 0;
    bucket.lease.on_connected(monotonic_now());
  }
  tick();
}

}  // namespace shaper
