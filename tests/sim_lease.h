// One lease beside a wallet made by hand, for tests that look at each step.
#pragma once

#include "shaper/cluster/lease.h"
#include "tests/sim_policy.h"

namespace shaper::sim {

inline LeasePolicy tenant_limit(WithoutRedis rule = WithoutRedis::degrade) {
  LeasePolicy policy;
  policy.bucket = "tenant";
  policy.config = 7;
  policy.rate = 80_mbit;  // 10 bytes each microsecond
  policy.burst = {1'000'000};
  policy.without_redis = rule;
  return policy;
}

class Bench {
 public:
  explicit Bench(const LeasePolicy& policy = tenant_limit(), std::uint64_t seed = 1)
      : lease{policy, round_trip, 100, Jitter{seed}, now} {
    call();
  }

  /// Packets come: they spend what is left, and wait for the rest.
  void arrive(std::uint64_t bytes) {
    core.arrived.value += bytes;
    core.waiting.value += bytes;
    spend();
  }
  void arrive_and_drop(std::uint64_t bytes) { core.arrived.value += bytes; }

  void pass(Nanos time) {
    now += time;
    if (valid_until && now >= *valid_until) core.left = {};
  }

  /// What is to be done after anything has happened.
  std::optional<LeaseAsk> call() {
    lease.on_demand(core, now);
    const ByteCount back = std::min(lease.take_back(), core.left);
    core.left -= back;
    took_back += back;
    if (back.value > 0) lease.taken(back);
    granted = lease.grant();
    if (granted) {
      core.left += granted->bytes;
      valid_until = granted->valid_until;
      spend();
    }
    std::optional<LeaseAsk> ask = lease.ask(now);
    if (ask) sent = now;
    return ask;
  }

  /// Calls when the lease wants it, until it asks or `time` has passed.
  std::optional<LeaseAsk> next_ask(Nanos time = 10s) {
    const Instant end = now + time;
    if (auto ask = call()) return ask;
    for (int calls = 0; calls < 100'000; ++calls) {
      const std::optional<Instant> when = lease.next_call();
      if (!when || *when > end) break;
      pass(std::max(*when - now, Nanos{0}));
      if (auto ask = call()) return ask;
    }
    pass(end - now);
    return std::nullopt;
  }

  /// The answer to the latest ask comes now.
  void answer(const LeaseAsk& ask, std::uint64_t grant) { answer(ask, answer_of(grant)); }
  void answer(const LeaseAsk& ask, LeaseAnswer answer) {
    answer.redis_time_us += static_cast<std::uint64_t>(now.time_since_epoch() / 1us);
    lease.on_answer(answer, ask.sequence, sent, now);
  }
  static LeaseAnswer answer_of(std::uint64_t grant, std::uint32_t members = 4) {
    LeaseAnswer answer;
    answer.grant = {grant};
    answer.tokens = 500'000;
    answer.members = members;
    answer.config = 7;
    answer.rate = 80_mbit;
    answer.redis_time_us = 1'700'000'000'000'000;
    return answer;
  }
  void fail(const LeaseAsk& ask, LeaseReason reason = LeaseReason::disconnected) {
    lease.on_failure(ask.sequence, sent, reason, now);
  }

  /// Traffic that is asked for and granted: leased from now on, with `grant` bytes left.
  void become_leased(std::uint64_t grant) {
    arrive(3'028 + 40'000);
    const auto ask = call();
    core.waiting = {};
    answer(*ask, grant + 3'028);  // the first packets are paid for
    call();
  }

  Instant now{1s};
  RoundTrip round_trip;
  Demand core;
  std::optional<Instant> valid_until;
  std::optional<LeaseGrant> granted;  ///< by the latest call
  ByteCount took_back;
  Instant sent;
  Lease lease;

 private:
  void spend() {
    const ByteCount bytes = std::min(core.left, core.waiting);
    core.left -= bytes;
    core.waiting -= bytes;
    core.spent += bytes;
  }
};

}  // namespace shaper::sim
