// Limits over many hosts: grants come from outside, and what is wanted is told. The core knows nothing of who grants.
#include <algorithm>

#include "shaper/core/shaper_state.h"

namespace shaper {
namespace {

/// The bucket that `key` names, if it exists and spends grants.
Meter* granted_meter(const Scheduler& scheduler, const LimitKey& key) {
  if (key.limit >= scheduler.limits().size()) return nullptr;
  Limit& limit = *scheduler.limits()[key.limit];
  if (!limit.grants()) return nullptr;
  if (limit.meter) return &*limit.meter;
  KeyedBucket* bucket = limit.keyed->find(key.key);
  return bucket == nullptr ? nullptr : &bucket->meter;
}

Demand demand_of(const LimitKey& from, const Meter& meter, Instant now) {
  const Wallet& wallet = *meter.wallet();
  return {from, wallet.arrived, wallet.spent, wallet.held, wallet.left_at(now), wallet.debt};
}

}  // namespace

void Shaper::State::on_grant(const Grant& grant, Instant now, Verdicts& out) {
  begin(now);
  Meter* meter = granted_meter(*scheduler_, grant.to);
  if (meter == nullptr) return;
  meter->accrue(now);
  meter->grant(grant.bytes, grant.valid_until, grant.pace);
  scheduler_->granted(*scheduler_->limits()[grant.to.limit], grant.to.key, now, out);
}

ByteCount Shaper::State::take_back(const LimitKey& from, ByteCount bytes, Instant now) {
  begin(now);
  Meter* meter = granted_meter(*scheduler_, from);
  if (meter == nullptr) return {};
  meter->accrue(now);
  return meter->take_back(bytes);
}

void Shaper::State::refuse(const LimitKey& at, bool on, Instant now, Verdicts& out) {
  begin(now);
  Meter* meter = granted_meter(*scheduler_, at);
  if (meter == nullptr || meter->refuses() == on) return;
  meter->refuse(on);
  if (!on) return;
  for (Flow* flow : flows_.all()) flow->owner->drop_refused(*flow, now, out);
  scheduler_->run(now, out);
}

void Shaper::State::demand(Instant now, std::vector<Demand>& demands) const {
  for (std::size_t i = 0; i < scheduler_->limits().size(); ++i) {
    const Limit& limit = *scheduler_->limits()[i];
    const auto index = static_cast<LimitIndex>(i);
    if (!limit.grants()) continue;
    if (limit.meter) demands.push_back(demand_of({index, {}}, *limit.meter, now));
    if (!limit.keyed) continue;
    for (const auto& [key, bucket] : *limit.keyed) demands.push_back(demand_of({index, key}, bucket.meter, now));
  }
}

std::optional<Demand> Shaper::State::demand(const LimitKey& from, Instant now) const {
  const Meter* meter = granted_meter(*scheduler_, from);
  return meter == nullptr ? std::nullopt : std::optional(demand_of(from, *meter, now));
}

std::vector<WalletState> Shaper::State::wallets(Instant now) const {
  std::vector<WalletState> states;
  for (std::size_t i = 0; i < scheduler_->limits().size(); ++i) {
    const Limit& limit = *scheduler_->limits()[i];
    if (!limit.grants() || !limit.meter) continue;
    const Wallet& wallet = *limit.meter->wallet();
    states.push_back({static_cast<LimitIndex>(i), wallet.left, wallet.debt, wallet.largest, wallet.pace.rate,
                      wallet.pace.frame, limit.meter->bucket_at(now).credit_nanobits(), wallet.valid_until,
                      wallet.refuses});
  }
  return states;
}

void Shaper::State::set_wallet(const WalletState& state, Instant now) {
  begin(now);
  Meter* meter = granted_meter(*scheduler_, {state.limit, {}});
  if (meter == nullptr) return;
  Wallet wallet;
  wallet.left = state.left;
  wallet.debt = state.debt;
  wallet.largest = state.largest;
  wallet.pace = {state.pace, state.frame, bytes_in(state.pace, kGrantSlack)};
  wallet.valid_until = state.valid_until;
  wallet.refuses = state.refuses;
  meter->set_wallet(wallet, state.credit_nanobits, now);
}

void Shaper::State::stirred(std::vector<LimitKey>& buckets) {
  for (std::size_t i = 0; i < scheduler_->limits().size(); ++i) {
    Limit& limit = *scheduler_->limits()[i];
    if (!limit.grants()) continue;
    limit.tell_stirred([&](const FlowKey& key) { buckets.push_back({static_cast<LimitIndex>(i), key}); });
  }
}

}  // namespace shaper
