// Virtual hosts in simulated time: between them and the bucket in Redis is a network that delays, loses, doubles and
// reorders.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "tests/sim_redis.h"
#include "tests/virtual_hosts.h"

namespace shaper::sim {

class Cluster : public HostGroup {
 public:
  Cluster(std::uint32_t hosts, const LeasePolicy& limit, std::uint64_t seed = 1)
      : HostGroup{hosts, limit, seed}, redis{policy.rate, policy.burst} {}

  void run_for(Nanos time) { timeline.run_until(timeline.now() + time); }

  /// Redis ends: connections break. It comes back empty, and hosts connect within `back_off`.
  void kill() { state_ = State::gone; }
  void start_empty(Nanos back_off) {
    state_ = State::up;
    redis.lose_data();
    for (auto& host : hosts()) {
      timeline.at(now() + random.up_to(back_off), [&host] { host->connected(); });
    }
  }
  /// Redis stands still: what it is sent waits.
  void stop() { state_ = State::stopped; }
  void go_on() {
    state_ = State::up;
    for (auto& ask : std::exchange(waiting_, {})) ask();
  }

  void carry(Host& host, const LeaseAsk& ask) override {
    const Instant sent_at = now();
    if (state_ == State::gone) {
      timeline.at(sent_at + way(host), [&host, sequence = ask.sequence, sent_at] {
        host.fail(sequence, sent_at, LeaseReason::disconnected);
      });
      return;
    }
    for (int copies = host.random.chance(network.doubled) ? 2 : 1; copies > 0; --copies) {
      if (host.random.chance(network.lost)) continue;
      timeline.at(sent_at + way(host), [=, this, &host] {
        if (!host.cut_off) receive([=, this, &host] { answer(host, ask, sent_at); });
      });
    }
  }

  Redis redis;
  Network network;
  bool deaf = false;       ///< nobody hears what others spend
  std::uint64_t told = 0;  ///< messages

 private:
  enum class State : std::uint8_t { up, gone, stopped };

  Nanos way(Host& host) const { return network.least_delay + host.random.exponential(network.mean_delay); }
  void receive(std::function<void()> ask) {
    if (state_ == State::stopped) return waiting_.push_back(std::move(ask));
    ask();
  }
  void answer(Host& host, const LeaseAsk& ask, Instant sent_at) {
    const LeaseAnswer answer = redis.ask(host.number, ask, now());
    if (ask.tell && answer.status != LeaseAnswer::Status::replay) tell(host, ask.debt, answer.redis_time_us);
    if (host.random.chance(network.lost) || host.cut_off) return;
    Nanos back = way(host);
    if (host.random.below(8) == 0) back += host.random.up_to(network.sometimes);
    timeline.at(now() + back, [=, &host] { host.hear(answer, ask.sequence, sent_at); });
  }

  /// All other hosts hear it, unless they do not listen.
  void tell(const Host& spender, ByteCount bytes, std::uint64_t redis_time_us) {
    for (auto& other : hosts()) {
      if (other->number == spender.number || other->cut_off || deaf) continue;
      ++told;
      timeline.at(now() + way(*other), [=, &other] { other->hear_of(bytes, redis_time_us); });
    }
  }

  State state_ = State::up;
  std::vector<std::function<void()>> waiting_;
};

}  // namespace shaper::sim
