// What differs between the strategies.
//
// grants: hosts ask ahead, and spend evenly what they get.
// remote: a host asks for what waits, no sooner and no more, and it leaves as soon as it is granted.
// poll:   a host spends from a copy of the bucket, and says afterwards what it has spent, for which the bucket goes
//         below zero. Nothing is granted.
// push:   the same, said sooner, and Redis tells it to all hosts.
#include "shaper/cluster/lease.h"
#include "shaper/cluster/lease_amounts.h"

namespace shaper {
namespace {

/// Of copies.
constexpr Nanos kShortestSettlement = std::chrono::milliseconds{50};

/// Packets that come in so much time ask together.
constexpr Nanos kBatch = std::chrono::milliseconds{1};

}  // namespace

Nanos Lease::interval() const {
  return round_trip_->interval(settles() ? std::max(policy_.interval, kShortestSettlement) : policy_.interval);
}

Nanos Lease::shortest_gap() const {
  return policy_.strategy == Strategy::remote ? kBatch : kShortestGap;
}

/// Whether the next ask is to go before its time.
bool Lease::hurries() const {
  switch (policy_.strategy) {
    case Strategy::grants:
      return runs_out();
    case Strategy::remote:
      return seen_.waiting.value > 0 && enough() > left_;
    case Strategy::poll:
      return false;
    case Strategy::push:
      return unsettled_.value > 0;
  }
  return false;
}

/// With so much here nothing need be asked for.
ByteCount Lease::enough() const {
  if (asks_ahead()) return wanted_until_answer() + loan_;
  return settles() ? ByteCount{} : seen_.waiting + seen_.debt;
}

/// What is not given back, while there is traffic.
ByteCount Lease::kept() const {
  return asks_ahead() ? wanted_until_answer() + ByteCount{wanted().value / 2} : enough();
}

DataRate Lease::pace_of(ByteCount wallet) const {
  const bool evenly = policy_.discipline == Discipline::leaky;
  DataRate pace = evenly ? rate_ : kFastestRate;
  if (asks_ahead()) pace = rate_of({(evenly ? 1U : 2U) * wallet.value}, interval());
  return policy_.max_rate ? std::min(pace, *policy_.max_rate) : pace;
}

void Lease::on_spent_elsewhere(ByteCount bytes, std::uint64_t redis_time_us) {
  if (!settles() || state_ != LeaseState::leased) return;
  ++counters_.told;
  replica_.spent_elsewhere(bytes, redis_time_us);
}

void Lease::calibrate(const LeaseAnswer& answer, Instant sent, Instant now) {
  replica_.calibrate(answer, rate_, unsettled_, now - (now - sent) / 2);
}

/// The core has what the copy has: the rest is given, or taken away.
void Lease::follow_replica(Instant now) {
  replica_.pass(now);
  unpaid_ = {};
  if (state_ != LeaseState::leased || !replica_.level()) return;
  const std::int64_t there = static_cast<std::int64_t>(left_.value) - static_cast<std::int64_t>(seen_.debt.value);
  const std::int64_t lacks = *replica_.level() - there;
  if (lacks > 0) {
    give({static_cast<std::uint64_t>(lacks)}, *valid_until_, pace_of(left_));
    left_ = {static_cast<std::uint64_t>(std::max<std::int64_t>(*replica_.level(), 0))};
  } else {
    to_take_ = std::min(left_, ByteCount{static_cast<std::uint64_t>(-lacks)});
  }
}

}  // namespace shaper
