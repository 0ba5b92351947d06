// Demand, the wallet and the order of things; asking is in lease_ask.cpp, fallback in lease_fallback.cpp, what differs
// by strategy in lease_strategy.cpp.
#include "shaper/cluster/lease.h"

#include <algorithm>
#include <utility>

#include "shaper/cluster/lease_amounts.h"

namespace shaper {
namespace {

/// The allowance for first packets comes again after so much time without traffic: with every answer it would leak.
constexpr Nanos kIdleForWelcome = std::chrono::seconds{1};
constexpr std::uint64_t kWelcomeFrames = 2;

/// Until it is used.
constexpr Nanos kLongValid = std::chrono::hours{24 * 365};

/// The wallet may run out earlier than the mean says, but nobody looks all the time.
constexpr Nanos kShortestLook = std::chrono::milliseconds{2};

}  // namespace

Lease::Lease(LeasePolicy policy, const RoundTrip& round_trip, std::uint64_t first_sequence, Jitter jitter, Instant now)
    : policy_(std::move(policy)),
      round_trip_(&round_trip),
      jitter_(jitter),
      rate_(policy_.rate),
      seen_at_(now),
      sequence_(first_sequence),
      tick_(now),
      not_before_(now) {}

void Lease::change(LeasePolicy policy) {
  if (policy_.observe && !policy.observe) {
    // The grants were only counted: they are handed back, and what the core got instead is taken away.
    returning_ += left_;
    left_ = unpaid_ = kPlenty;
    to_give_.reset();
  }
  if (policy.strategy != policy_.strategy) {
    // What is there was not given by the new one; where it was paid for, that is lost.
    unpaid_ = left_;
    replica_ = {};
  }
  policy_ = std::move(policy);
  rate_ = policy_.rate;
  to_take_ = unpaid_;
}

void Lease::on_demand(const Demand& demand, Instant now) {
  count(demand, now);
  if (in_flight_ && now >= *sent_ + round_trip_->timeout()) failed(LeaseReason::timeout, now);
  consider_fallback(now);
  const bool expired = valid_until_ && now >= *valid_until_;
  if (state_ == LeaseState::leased && idle(now) && expired) become(LeaseState::cold, LeaseReason::idle, now);
  if (policy_.observe && demand.left.value < kPlenty.value / 2) {
    fill(kPlenty, demand.left, now + kLongValid, kFastestRate);
  }
  if (state_ == LeaseState::fallback) {
    top_up(now);
  } else if (settles()) {
    follow_replica(now);
  } else {
    welcome(now);
    plan_give_back(now);
  }
  spends_in_fallback_ = state_ == LeaseState::fallback;
}

void Lease::count(const Demand& demand, Instant now) {
  pass_time(now);
  const bool new_bucket = demand.arrived < seen_.arrived || demand.spent < seen_.spent;
  const ByteCount spent = new_bucket ? demand.spent : demand.spent - seen_.spent;
  const bool came = demand.arrived != seen_.arrived && demand.arrived.value > 0;
  count_spent(spent, demand, now);
  if (settles() && looked_ && !spends_in_fallback_) {
    unsettled_ += spent;
    replica_.spend(spent);
  }
  looked_ = true;
  seen_ = demand;
  seen_at_ = now;
  if (policy_.observe) seen_.waiting = {};
  if (came || seen_.waiting.value > 0) {
    last_traffic_ = now;
    said_goodbye_ = false;
  }
  const bool held_up = seen_.waiting.value > 0 || (came && left_ == ByteCount{});
  window_.look(demand.arrived, held_up, interval(), now);
}

void Lease::count_spent(ByteCount spent, const Demand& demand, Instant now) {
  if (spends_in_fallback_) counters_.in_fallback += spent;
  if (!policy_.observe) {
    if (spends_in_fallback_ && policy_.without_redis == WithoutRedis::allow) counters_.unmetered += spent;
    left_ = demand.left + (to_give_ ? to_give_->bytes : ByteCount{});
    // What was paid for is spent first: so nothing else is ever handed back.
    unpaid_ = std::min(unpaid_, left_);
    loan_left_ = std::min(loan_left_, left_ - unpaid_);
    return;
  }
  const ByteCount paid = std::min(left_, spent);
  left_ -= paid;
  counters_.unmetered += spent - paid;
  if (valid_until_ && now >= *valid_until_) left_ = {};
}

/// Packets that come after a pause need not wait for the first answer. The first grants pay for them.
void Lease::welcome(Instant now) {
  if (!may_welcome()) return;
  if (sent_ && last_traffic_ && now - *last_traffic_ < kIdleForWelcome) return;
  welcomed_ = true;
  const ByteCount allowance{kWelcomeFrames * policy_.frame.value};
  loan_ = loan_left_ = fill(allowance, left_, now + kLongValid, rate_of(policy_.frame, kAtOnce));
}

bool Lease::may_welcome() const {
  const bool may = failures_ == 0 && tokens_ >= 0 && loan_ == ByteCount{};
  return may && asks_ahead() && state_ == LeaseState::cold && !welcomed_ && !policy_.observe;
}

/// Before a new ask: what is too much here goes back with it.
void Lease::plan_give_back(Instant now) {
  if (unanswered_ || said_goodbye_ || !may_ask(now)) return;
  ByteCount keep;
  if (!idle(now)) {
    if (state_ == LeaseState::cold) return;
    keep = kept();
  }
  if (left_ <= keep + to_take_) return;
  const ByteCount surplus = left_ - keep - to_take_;
  if (policy_.observe) {
    left_ -= surplus;
    returning_ += surplus;
  } else {
    to_take_ += surplus;
  }
}

bool Lease::idle(Instant now) const {
  return !last_traffic_ || now - *last_traffic_ >= 2 * interval();
}

/// What would be spent in a period.
ByteCount Lease::wanted() const {
  std::uint64_t bytes = window_.arrived(interval()).value;
  // Without head-room the demand of a TCP would never grow.
  if (window_.held_up()) bytes += bytes / 4;
  return ByteCount{bytes} + seen_.waiting;
}

/// What would be spent until an answer to the ask after the next one can be here.
ByteCount Lease::wanted_until_answer() const {
  const ByteCount want = wanted();
  if (want == ByteCount{}) return want;
  return want + bytes_in(rate_of(want, interval()), round_trip_->typical());
}

/// Somebody is short of credit.
bool Lease::empty() const {
  if (wanted() == ByteCount{}) return false;
  return left_ == ByteCount{} || (left_ < policy_.frame && seen_.waiting.value > 0);
}

/// How long the wallet lasts where nobody waits; with a queue it is spent until it is empty.
Nanos Lease::lasts() const {
  if (empty()) return Nanos{0};
  const ByteCount want = wanted();
  return want == ByteCount{} ? interval() : time_for(rate_of(want, interval()), left_);
}

/// An answer would come too late if the wallet ran out first.
bool Lease::runs_out() const {
  return empty() || (seen_.waiting == ByteCount{} && lasts() < round_trip_->typical() + kShortestLook);
}

void Lease::give(ByteCount bytes, Instant valid_until, DataRate pace) {
  const ByteCount earlier = to_give_ ? to_give_->bytes : ByteCount{};
  to_give_ = {earlier + bytes, valid_until, pace};
}

/// Gives the core what it lacks to have `up_to`; nobody has paid for it yet. Returns what that was.
ByteCount Lease::fill(ByteCount up_to, ByteCount there, Instant valid_until, DataRate pace) {
  const ByteCount bytes = up_to > there ? up_to - there : ByteCount{};
  give(bytes, valid_until, pace);
  if (!policy_.observe) left_ += bytes;
  return bytes;
}

ByteCount Lease::take_back() {
  return std::exchange(to_take_, {});
}

void Lease::taken(ByteCount bytes) {
  left_ -= std::min(left_, bytes);
  if (settles()) return;
  const ByteCount unpaid = std::min(bytes, unpaid_);
  const ByteCount lent = std::min(bytes - unpaid, loan_left_);
  unpaid_ -= unpaid;
  loan_left_ -= lent;
  loan_ -= lent;
  returning_ += bytes - unpaid - lent;
}

std::optional<LeaseGrant> Lease::grant() {
  return std::exchange(to_give_, std::nullopt);
}

std::optional<Instant> Lease::next_call() const {
  std::optional<Instant> next;
  const auto at = [&next](Instant when) { next = next ? std::min(*next, when) : when; };
  if (may_welcome()) at(sent_ && last_traffic_ ? *last_traffic_ + kIdleForWelcome : seen_at_);
  if (in_flight_) {
    at(*sent_ + round_trip_->timeout());
  } else if (unanswered_ || !said_goodbye_ || returning_.value > 0) {
    at(next_ask());
    // The mean does not say when the wallet runs out: look before.
    if (asks_ahead() && state_ == LeaseState::leased && !unanswered_ && wanted().value > 0) {
      at(std::max(*sent_ + kShortestGap, seen_at_ + std::max(kShortestLook, lasts() / 2)));
    }
  }
  if (!asks_ahead() && state_ == LeaseState::leased) {
    at(seen_at_ + std::min(kShortestLook, shortest_gap()));
  }
  if (const auto begin = fallback_begin()) at(*begin);
  if (state_ == LeaseState::fallback) {
    if (const auto top_up = next_top_up()) at(*top_up);
  } else if (failures_ > 0 && !idle(seen_at_)) {
    at(seen_at_ + kShortestLook);  // the wallet runs out
  }
  return next;
}

Instant Lease::next_ask() const {
  if (unanswered_) return not_before_;
  const Instant soon = sent_ ? std::max(not_before_, *sent_ + shortest_gap()) : not_before_;
  if (state_ != LeaseState::leased || said_goodbye_) return soon;
  const Instant tick = std::max(tick_, not_before_);
  return hurries() ? std::min(soon, tick) : tick;
}

}  // namespace shaper
