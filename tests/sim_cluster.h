// Many hosts that share a limit, in simulated time: each with a real core and a lease, between them and the bucket in
// Redis a network that delays, loses, doubles and reorders.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "shaper/cluster/lease.h"
#include "tests/sim_policy.h"
#include "tests/sim_redis.h"

namespace shaper::sim {

/// What happens when.
class Timeline {
 public:
  void at(Instant when, std::function<void()> what) { events_.push({std::max(when, now_), next_++, std::move(what)}); }
  void run_until(Instant end) {
    while (!events_.empty() && events_.top().when <= end) {
      const std::function<void()> what = std::move(events_.top().what);
      now_ = events_.top().when;
      events_.pop();
      what();
    }
    now_ = end;
  }
  [[nodiscard]] Instant now() const { return now_; }

 private:
  struct Event {
    Instant when;
    std::uint64_t order;
    mutable std::function<void()> what;
    bool operator<(const Event& other) const { return when != other.when ? when > other.when : order > other.order; }
  };
  std::priority_queue<Event> events_;
  std::uint64_t next_ = 0;
  Instant now_{1s};
};

/// Bytes sent, in bins of 5 ms.
class Sent {
 public:
  static constexpr Nanos kBin = 5ms;

  void add(ByteCount bytes, Instant when) {
    const auto bin = static_cast<std::size_t>(when.time_since_epoch() / kBin);
    if (bins_.size() <= bin) bins_.resize(bin + 1);
    bins_[bin] += bytes.value;
  }
  [[nodiscard]] std::uint64_t between(Instant begin, Instant end) const {
    std::uint64_t sum = 0;
    const auto last = static_cast<std::size_t>(end.time_since_epoch() / kBin);
    for (auto bin = static_cast<std::size_t>(begin.time_since_epoch() / kBin); bin < last && bin < bins_.size();
         ++bin) {
      sum += bins_[bin];
    }
    return sum;
  }
  /// In thousandths of `rate`, between two instants.
  [[nodiscard]] std::uint64_t permille(DataRate rate, Instant begin, Instant end) const {
    return between(begin, end) * 1'000 / bytes_in(rate, end - begin).value;
  }
  /// The least and the most of all windows of this length, in thousandths of `rate`.
  struct Extremes {
    std::uint64_t least = ~std::uint64_t{0};
    std::uint64_t most = 0;
  };
  [[nodiscard]] Extremes windows(DataRate rate, Nanos length, Instant begin, Instant end) const {
    Extremes extremes;
    for (; begin + length <= end; begin += kBin) {
      const std::uint64_t part = permille(rate, begin, begin + length);
      extremes.least = std::min(extremes.least, part);
      extremes.most = std::max(extremes.most, part);
    }
    return extremes;
  }
  /// The most that left beyond `rate`, over windows of any length.
  [[nodiscard]] std::uint64_t beyond(DataRate rate) const {
    std::uint64_t level = 0, most = 0;
    for (const std::uint64_t bytes : bins_) {
      level += bytes;
      most = std::max(most, level);
      level -= std::min(level, bytes_in(rate, kBin).value);
    }
    return most;
  }

 private:
  std::vector<std::uint64_t> bins_;
};

/// How messages fare, each way.
struct Network {
  Nanos mean_delay = 150us;
  Nanos least_delay{0};
  unsigned lost = 0;     ///< percent of asks, and of answers
  unsigned doubled = 0;  ///< percent
  Nanos sometimes{0};    ///< one of eight answers is late by up to so much
};

class Cluster;

class Host {
 public:
  Host(Cluster& cluster, std::uint32_t number, const LeasePolicy& policy, std::uint64_t seed);

  /// Packets at random, from now on.
  void offer(DataRate rate, std::uint32_t ip_bytes = 1'500);
  void connected();
  void work();

  std::uint32_t number;
  bool cut_off = false;
  Random random;
  RoundTrip round_trip;
  Shaper core;
  Lease lease;
  std::uint64_t sent = 0;  ///< bytes
  std::uint64_t refused = 0;
  std::vector<Nanos> delays;
  Instant changed;            ///< the state, for the last time
  std::uint64_t arrived = 0;  ///< packets

 private:
  void arrive(std::uint64_t era);
  void release();
  void settle();
  void send(const LeaseAsk& ask);
  void hear(const LeaseAnswer& answer, std::uint64_t sequence, Instant sent_at);
  void call_at(std::optional<Instant>& planned, std::optional<Instant> when, void (Host::*what)());

  Cluster& cluster_;
  DataRate offered_;
  std::uint32_t ip_bytes_ = 1'500;
  std::uint64_t era_ = 0;
  std::uint64_t timeouts_ = 0;
  std::optional<Instant> lease_call_, release_call_;
  std::vector<Demand> demands_;
  Verdicts out_;
};

class Cluster {
 public:
  Cluster(std::uint32_t hosts, const LeasePolicy& limit, std::uint64_t seed = 1)
      : policy{limit}, random{seed}, redis{policy.rate, policy.burst} {
    for (std::uint32_t n = 0; n < hosts; ++n) {
      hosts_.push_back(std::make_unique<Host>(*this, n, policy, seed * 1'000 + n));
    }
  }

  void run_for(Nanos time) { timeline.run_until(timeline.now() + time); }
  [[nodiscard]] Instant now() const { return timeline.now(); }
  [[nodiscard]] std::vector<std::unique_ptr<Host>>& hosts() { return hosts_; }
  Host& host(std::size_t n) { return *hosts_[n]; }

  /// All hosts together offer that much.
  void offer(std::uint64_t permille) {
    for (auto& host : hosts_) host->offer({policy.rate.bits_per_second * permille / 1'000 / hosts_.size()});
  }

  /// Redis ends: connections break. It comes back empty, and hosts connect within `back_off`.
  void kill() { state = State::gone; }
  void start_empty(Nanos back_off) {
    state = State::up;
    redis.lose_data();
    for (auto& host : hosts_) {
      timeline.at(now() + random.up_to(back_off), [&host] { host->connected(); });
    }
  }
  /// Redis stands still: what it is sent waits.
  void stop() { state = State::stopped; }
  void go_on() {
    state = State::up;
    for (auto& ask : std::exchange(waiting_, {})) ask();
  }
  void receive(std::function<void()> ask) {
    if (state == State::stopped) return waiting_.push_back(std::move(ask));
    ask();
  }

  /// For what happens on the timeline.
  void keep(std::shared_ptr<void> object) { kept_.push_back(std::move(object)); }

  [[nodiscard]] std::size_t in(LeaseState wanted) const {
    return static_cast<std::size_t>(
        std::count_if(hosts_.begin(), hosts_.end(), [&](auto& host) { return host->lease.state() == wanted; }));
  }
  /// Jain's index in thousandths, of what hosts sent since `before`.
  [[nodiscard]] std::uint64_t jain(const std::vector<std::uint64_t>& before) const {
    Uint128 sum = 0, squares = 0;
    for (std::size_t n = 0; n < hosts_.size(); ++n) {
      const Uint128 kilobytes = (hosts_[n]->sent - before[n]) / 1'000;
      sum += kilobytes;
      squares += kilobytes * kilobytes;
    }
    return static_cast<std::uint64_t>(sum * sum * 1'000 / (squares * hosts_.size()));
  }
  [[nodiscard]] std::vector<std::uint64_t> sent_by_host() const {
    std::vector<std::uint64_t> bytes;
    for (const auto& host : hosts_) bytes.push_back(host->sent);
    return bytes;
  }

  enum class State : std::uint8_t { up, gone, stopped };

  LeasePolicy policy;
  Random random;
  Timeline timeline;
  Redis redis;
  Network network;
  State state = State::up;
  Sent sent;

 private:
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<std::function<void()>> waiting_;
  std::vector<std::shared_ptr<void>> kept_;
};

// --- A host ----------------------------------------------------------------------------------------------------------

inline Policy cluster_policy(const LeasePolicy& lease) {
  ClassPolicy all = borrowing(default_class());
  all.limits = {0};
  all.backlog = ByteCount{100'000};
  all.max_delay = Nanos{10s};
  Policy policy = policy_of(all);
  policy.limits.push_back(limit_named("tenant", lease.rate));
  policy.limits[0].scope = Scope::cluster;
  return policy;
}

inline Host::Host(Cluster& cluster, std::uint32_t index, const LeasePolicy& policy, std::uint64_t seed)
    : number{index},
      random{seed},
      core{cluster_policy(policy), StartCredit::full, {1, 2}, cluster.timeline.now()},
      lease{policy, round_trip, 1, Jitter{seed}, cluster.timeline.now()},
      cluster_{cluster} {
  work();
}

inline void Host::offer(DataRate rate, std::uint32_t ip_bytes) {
  offered_ = rate;
  ip_bytes_ = ip_bytes;
  if (offered_.bits_per_second == 0) {
    ++era_;
    return;
  }
  const Nanos gap = random.exponential(time_for(offered_, {ip_bytes_ + 14}));
  cluster_.timeline.at(cluster_.now() + gap, [this, era = ++era_] { arrive(era); });
}

inline void Host::arrive(std::uint64_t era) {
  if (era != era_) return;
  offer(offered_, ip_bytes_);
  if (lease.refuses()) {
    ++refused;
    return;
  }
  Packet packet = packet_of(number, ip_bytes_);
  packet.id.number = static_cast<std::uint32_t>(++arrived);
  core.on_packet(packet, cluster_.now(), out_);
  const std::optional<Instant> next = lease.next_call();
  if (lease.state() == LeaseState::cold || (next && *next <= cluster_.now())) return work();
  settle();
}

/// What follows anything that happens to a lease.
inline void Host::work() {
  const Instant now = cluster_.now();
  const LeaseState before = lease.state();
  demands_.clear();
  core.demand(now, demands_);
  lease.on_demand(demands_[0], now);
  const std::uint64_t timeouts = lease.counters().failures[static_cast<std::size_t>(LeaseReason::timeout)];
  if (timeouts != timeouts_) round_trip.timed_out();
  timeouts_ = timeouts;
  if (const ByteCount back = lease.take_back(); back.value > 0) lease.taken(core.take_back({}, back, now));
  if (const auto grant = lease.grant()) core.on_grant({{}, grant->bytes, grant->valid_until, grant->pace}, now, out_);
  if (const auto ask = lease.ask(now)) send(*ask);
  if (lease.state() != before) changed = now;
  settle();
}

inline void Host::release() {
  core.release(cluster_.now(), out_);
  settle();
}

inline void Host::settle() {
  for (const Verdict& verdict : out_) {
    if (!departs(verdict.decision)) continue;
    cluster_.sent.add(verdict.wire_bytes, cluster_.now());
    sent += verdict.wire_bytes.value;
    delays.push_back(verdict.delay);
  }
  out_.clear();
  call_at(release_call_, core.next_departure(), &Host::release);
  call_at(lease_call_, lease.next_call(), &Host::work);
}

/// Plans a call, unless one is planned that comes no later.
inline void Host::call_at(std::optional<Instant>& planned, std::optional<Instant> when, void (Host::*what)()) {
  if (!when || (planned && *planned <= *when)) return;
  const Instant at = std::max(*when, cluster_.now() + 1us);
  planned = at;
  cluster_.timeline.at(at, [this, &planned, at, what] {
    if (planned != at) return;
    planned.reset();
    (this->*what)();
  });
}

inline void Host::send(const LeaseAsk& ask) {
  const Network& network = cluster_.network;
  const Instant sent_at = cluster_.now();
  const auto way = [&] { return network.least_delay + random.exponential(network.mean_delay); };
  if (cluster_.state == Cluster::State::gone) {
    cluster_.timeline.at(sent_at + way(), [this, sequence = ask.sequence, sent_at] {
      lease.on_failure(sequence, sent_at, LeaseReason::disconnected, cluster_.now());
      work();
    });
    return;
  }
  for (int copies = random.chance(network.doubled) ? 2 : 1; copies > 0; --copies) {
    if (random.chance(network.lost)) continue;
    cluster_.timeline.at(sent_at + way(), [this, ask, sent_at] {
      if (cut_off) return;
      cluster_.receive([this, ask, sent_at] {
        const LeaseAnswer answer = cluster_.redis.ask(number, ask, cluster_.now());
        if (random.chance(cluster_.network.lost) || cut_off) return;
        Nanos back = cluster_.network.least_delay + random.exponential(cluster_.network.mean_delay);
        if (random.below(8) == 0) back += random.up_to(cluster_.network.sometimes);
        cluster_.timeline.at(cluster_.now() + back, [=, this] { hear(answer, ask.sequence, sent_at); });
      });
    });
  }
}

inline void Host::hear(const LeaseAnswer& answer, std::uint64_t sequence, Instant sent_at) {
  round_trip.measured(cluster_.now() - sent_at);
  const LeaseState before = lease.state();
  lease.on_answer(answer, sequence, sent_at, cluster_.now());
  if (lease.state() != before) changed = cluster_.now();
  work();
}

inline void Host::connected() {
  lease.on_connected(cluster_.now());
  work();
}

}  // namespace shaper::sim
