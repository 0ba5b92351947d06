// Asks and answers of a Lease.
#include <utility>

#include "shaper/cluster/lease.h"
#include "shaper/cluster/lease_amounts.h"

namespace shaper {
namespace {

constexpr Nanos kFirstPause = std::chrono::milliseconds{20};  // after a failed ask, doubled with each
constexpr Nanos kLongestPause = std::chrono::milliseconds{500};
constexpr unsigned kMostDoublings = 5;
constexpr std::int64_t kTickJitter = 5;    // percent
constexpr std::int64_t kPauseJitter = 25;  // percent

/// The clock of Redis has been set if it moved by more against ours.
constexpr Nanos kClockJump = std::chrono::milliseconds{50};

/// As far as Nanos can say; a later time is odd anyway.
constexpr std::uint64_t kLastMicrosecond = 9'000'000'000'000'000;

std::optional<LeaseReason> refusal(LeaseAnswer::Status status) {
  if (status == LeaseAnswer::Status::stale) return LeaseReason::odd;
  if (status == LeaseAnswer::Status::crowded) return LeaseReason::unavailable;
  if (status == LeaseAnswer::Status::foreign) return LeaseReason::version;
  return std::nullopt;
}

}  // namespace

bool Lease::may_ask(Instant now) const {
  return !in_flight_ && now >= next_ask() && (unanswered_ || !said_goodbye_ || returning_.value > 0);
}

std::optional<LeaseAsk> Lease::ask(Instant now) {
  if (!may_ask(now)) return std::nullopt;
  if (!unanswered_) unanswered_ = compose(now);
  unanswered_->in_fallback = state_ == LeaseState::fallback;
  in_flight_ = true;
  sent_ = now;
  tick_ = now + jitter_.around(interval(), kTickJitter);
  ++counters_.asks;
  return unanswered_;
}

LeaseAsk Lease::compose(Instant now) {
  LeaseAsk ask;
  ask.bucket = policy_.bucket;
  ask.config = policy_.config;
  ask.rate = policy_.rate;
  ask.burst = policy_.burst;
  ask.interval = interval();
  ask.lease = kLeasePeriods * ask.interval;
  ask.sequence = sequence_++;
  asked_at_ = now;
  in_fallback_when_asked_ = counters_.in_fallback;
  ask.give_back = std::exchange(returning_, {});
  ask.debt = std::exchange(unsettled_, {});
  ask.tell = policy_.strategy == Strategy::push;
  ask.reserve = policy_.reserve;
  if (policy_.local_rate || policy_.hosts > 0) ask.local_rate = fallback_rate();
  ask.observe = policy_.observe;
  if (idle(now)) {
    ask.leaving = true;
    if (state_ == LeaseState::leased) become(LeaseState::cold, LeaseReason::idle, now);
    valid_until_.reset();
    return ask;
  }
  const ByteCount want = wanted();
  if (want.value > 0) ask.want = rate_of(want, ask.interval);
  const ByteCount wallet = state_ == LeaseState::fallback ? ByteCount{} : left_;
  if (enough() > wallet) ask.need = enough() - wallet;
  return ask;
}

void Lease::on_answer(const LeaseAnswer& answer, std::uint64_t sequence, Instant sent, Instant now) {
  if (!unanswered_ || sequence != unanswered_->sequence) {
    ++counters_.ignored;
    return;
  }
  const LeaseAsk asked = *std::exchange(unanswered_, std::nullopt);
  if (const auto refused = refusal(answer.status)) {
    // Nothing was done: the next ask takes the bytes along.
    returning_ += asked.give_back;
    if (answer.status != LeaseAnswer::Status::crowded) unsettled_ += asked.debt;
    return failed(*refused, now);
  }
  in_flight_ = false;
  failures_ = 0;
  not_before_ = now;
  counters_.returned += asked.give_back;
  counters_.settled += asked.debt;
  learn(answer, now);
  // An answer cannot give more than was asked for.
  ByteCount bytes = std::min(answer.grant, asked.need);
  counters_.granted += bytes;
  const Instant until = sent + asked.lease;
  const bool jumped = clock_jumped(answer, sent, now);
  if (jumped) {
    ++counters_.clock_jumps;
    replica_.forget_others();
    counters_.discarded += std::exchange(bytes, {});
    tick_ = now;
  }
  const bool for_this_time = answer.status == LeaseAnswer::Status::replay && now - asked_at_ < asked.lease;
  if (for_this_time && policy_.without_redis == WithoutRedis::degrade) {
    // It was granted when it was asked for, and the local rule has given something for the same time.
    const ByteCount served = std::min(bytes, counters_.in_fallback - in_fallback_when_asked_);
    counters_.discarded += served;
    bytes -= served;
  }
  if (settles()) calibrate(answer, sent, now);
  if (now >= until) {
    ++counters_.late;
    returning_ += bytes;
    return;
  }
  if (state_ == LeaseState::fallback) withdraw();
  bytes = pay_loan(bytes);
  if (asked.leaving) return said_goodbye(now);
  valid_until_ = until;
  become(LeaseState::leased, LeaseReason::answer, now);
  if (!settles()) take_in(bytes, until);
}

void Lease::said_goodbye(Instant now) {
  said_goodbye_ = idle(now);
  welcomed_ = false;
  redis_clock_.reset();
  become(LeaseState::cold, LeaseReason::idle, now);
}

/// What is left of a grant when first packets are paid for.
ByteCount Lease::pay_loan(ByteCount bytes) {
  const ByteCount paid = std::min(loan_, bytes);
  loan_ -= paid;
  loan_left_ = std::min(loan_left_, loan_);
  return bytes - paid;
}

/// Grants go to the core, which spends them at their pace.
void Lease::take_in(ByteCount bytes, Instant until) {
  left_ += bytes;
  if (policy_.observe) return;
  const ByteCount wallet = left_ - std::min(left_, to_take_);
  give(bytes, until, pace_of(wallet));
}

void Lease::learn(const LeaseAnswer& answer, Instant now) {
  tokens_ = answer.tokens;
  members_.saw(answer.members, now);
  rate_ = answer.config > policy_.config ? answer.rate : policy_.rate;
  if (policy_.max_rate && rate_ > *policy_.max_rate) {
    ++counters_.too_fast;
    rate_ = *policy_.max_rate;
  }
}

bool Lease::clock_jumped(const LeaseAnswer& answer, Instant sent, Instant now) {
  const Nanos uncertain = (now - sent) / 2;
  const Nanos redis =
      std::chrono::microseconds{static_cast<std::int64_t>(std::min(answer.redis_time_us, kLastMicrosecond))};
  const Offset fresh{redis - (sent + uncertain).time_since_epoch(), uncertain};
  const std::optional<Offset> before = std::exchange(redis_clock_, fresh);
  if (!before) return false;
  const Nanos moved = std::chrono::abs(fresh.offset - before->offset);
  return moved > kClockJump + fresh.uncertain + before->uncertain;
}

void Lease::on_failure(std::uint64_t sequence, Instant sent, LeaseReason reason, Instant now) {
  const bool is_ours = in_flight_ && unanswered_ && unanswered_->sequence == sequence && *sent_ == sent;
  if (is_ours) failed(reason, now);
}

void Lease::failed(LeaseReason reason, Instant now) {
  in_flight_ = false;
  failure_ = reason;
  ++counters_.failures[static_cast<std::size_t>(reason)];
  const Nanos pause = std::min(kFirstPause * (1 << std::min(failures_, kMostDoublings)), kLongestPause);
  ++failures_;
  not_before_ = now + jitter_.around(pause, kPauseJitter);
}

void Lease::on_connected(Instant now) {
  if (failures_ > 0) not_before_ = now;
}

}  // namespace shaper
