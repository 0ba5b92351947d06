// What a Lease does while nobody answers.
#include "shaper/cluster/lease.h"
#include "shaper/cluster/lease_amounts.h"

namespace shaper {
namespace {

/// The burst of `degrade`: as many frames, or what comes in so much time.
constexpr std::uint64_t kBurstFrames = 2;
constexpr Nanos kBurstTime = std::chrono::milliseconds{10};

/// Where it is not known how many hosts share the limit: none may take it all.
constexpr std::uint64_t kUnknownHosts = 16;

}  // namespace

void Lease::become(LeaseState state, LeaseReason reason, Instant now) {
  pass_time(now);
  if (state == state_) return;
  if (state == LeaseState::fallback) ++counters_.into_fallback[static_cast<std::size_t>(reason)];
  if (state_ == LeaseState::fallback) ++counters_.out_of_fallback;
  state_ = state;
  reason_ = reason;
}

void Lease::pass_time(Instant now) {
  if (state_ == LeaseState::fallback) counters_.fallback += now - counted_;
  counted_ = now;
}

void Lease::consider_fallback(Instant now) {
  const std::optional<Instant> begin = fallback_begin();
  if (!begin || now < *begin) return;
  become(LeaseState::fallback, failures_ > 0 ? failure_ : LeaseReason::expired, now);
  topped_up_ = now;
}

/// When it begins if no answer comes and the demand stays as it is.
std::optional<Instant> Lease::fallback_begin() const {
  if (state_ == LeaseState::fallback || idle(seen_at_)) return std::nullopt;
  if (failures_ > 0 && empty()) return seen_at_;
  // Whoever asked only after the end had stood still himself.
  if (unanswered_ && valid_until_ && asked_at_ < *valid_until_) return valid_until_;
  return std::nullopt;
}

DataRate Lease::fallback_rate() const {
  if (policy_.local_rate) return *policy_.local_rate;
  std::uint64_t hosts = policy_.hosts;
  if (hosts == 0) hosts = members_.most();
  if (hosts == 0) hosts = kUnknownHosts;
  return {rate_.bits_per_second / hosts};
}

ByteCount Lease::fallback_burst() const {
  return std::max(ByteCount{kBurstFrames * policy_.frame.value}, bytes_in(fallback_rate(), kBurstTime));
}

/// When the local rule has something to give again; without traffic it can wait.
std::optional<Instant> Lease::next_top_up() const {
  if (policy_.observe || policy_.without_redis == WithoutRedis::reject || idle(seen_at_)) return std::nullopt;
  if (policy_.without_redis == WithoutRedis::allow) return topped_up_ + interval();
  const DataRate rate = std::max(fallback_rate(), kSlowestRate);
  return topped_up_ + std::min(interval(), time_for(rate, {fallback_burst().value / 2}));
}

/// The core gets what the local rule gives; what it has not spent of that is the level of the local bucket.
void Lease::top_up(Instant now) {
  if (policy_.observe) return;
  const Instant until = now + kLeasePeriods * interval();
  if (policy_.without_redis == WithoutRedis::allow) unpaid_ += fill(kPlenty, left_, until, kFastestRate);
  if (policy_.without_redis == WithoutRedis::degrade) {
    const ByteCount earned = bytes_in(fallback_rate(), now - topped_up_);
    if (earned == ByteCount{}) return;  // its time is not lost
    const bool evenly = policy_.discipline == Discipline::leaky;
    const DataRate pace = evenly ? fallback_rate() : rate_of(fallback_burst(), kAtOnce);
    unpaid_ += fill(std::min(fallback_burst(), left_ + earned), left_, until, pace);
  }
  topped_up_ = now;
}

/// What the local rule gave and nobody has spent goes.
void Lease::withdraw() {
  if (to_give_) {
    left_ -= std::min(left_, to_give_->bytes);
    unpaid_ -= std::min(unpaid_, to_give_->bytes);
    to_give_.reset();
  }
  to_take_ = unpaid_;
}

}  // namespace shaper
