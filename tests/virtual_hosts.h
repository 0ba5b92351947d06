// Many hosts that share a limit, each with a real core and a lease, and what they sent. The way to the bucket in Redis
// is somebody else's: a simulated one (sim_cluster.h), or the real one (bench/cluster_hosts.cpp).
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "shaper/cluster/lease.h"
#include "tests/sim_policy.h"

namespace shaper::sim {

inline constexpr std::uint32_t kEthernetBytes = 14;

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

class HostGroup;

class Host {
 public:
  static constexpr ByteCount kBacklog{100'000};

  Host(HostGroup& group, std::uint32_t number, const LeasePolicy& policy, std::uint64_t seed);

  /// Packets at random, from now on.
  void offer(DataRate rate, std::uint32_t ip_bytes = 1'500);
  void connected();
  void hear(const LeaseAnswer& answer, std::uint64_t sequence, Instant sent_at);
  void hear_of(ByteCount spent_elsewhere, std::uint64_t redis_time_us);
  void fail(std::uint64_t sequence, Instant sent_at, LeaseReason reason);

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
  void work();
  void release();
  void settle();
  void call_at(std::optional<Instant>& planned, std::optional<Instant> when, void (Host::*what)());

  HostGroup& group_;
  DataRate offered_;
  std::uint32_t ip_bytes_ = 1'500;
  std::uint64_t era_ = 0;
  std::uint64_t timeouts_ = 0;
  std::optional<Instant> lease_call_, release_call_;
  std::vector<Demand> demands_;
  Verdicts out_;
};

/// How messages fare, each way.
struct Network {
  Nanos mean_delay = 150us;
  Nanos least_delay{0};
  unsigned lost = 0;     ///< percent of asks, and of answers
  unsigned doubled = 0;  ///< percent
  Nanos sometimes{0};    ///< one of eight answers is late by up to so much
};

/// The hosts, their limit and the time.
class HostGroup {
 public:
  HostGroup(std::uint32_t hosts, const LeasePolicy& limit, std::uint64_t seed) : policy{limit}, random{seed} {
    for (std::uint32_t n = 0; n < hosts; ++n) {
      hosts_.push_back(std::make_unique<Host>(*this, n, policy, seed * 1'000 + n));
    }
  }
  virtual ~HostGroup() = default;

  [[nodiscard]] Instant now() const { return timeline.now(); }
  [[nodiscard]] std::vector<std::unique_ptr<Host>>& hosts() { return hosts_; }
  Host& host(std::size_t n) { return *hosts_[n]; }

  /// Takes an ask to the bucket. What comes of it is told to the host, not from inside the call.
  virtual void carry(Host& host, const LeaseAsk& ask) = 0;
  /// A packet has come to a host.
  virtual void came(const Host& /*host*/, ByteCount /*wire_bytes*/) {}

  /// All hosts together offer that much.
  void offer(std::uint64_t permille) {
    for (auto& host : hosts_) host->offer({policy.rate.bits_per_second * permille / 1'000 / hosts_.size()});
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

  LeasePolicy policy;
  Random random;
  Timeline timeline;
  Sent sent;

 private:
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<std::shared_ptr<void>> kept_;
};

// --- A host ----------------------------------------------------------------------------------------------------------

inline Policy cluster_policy(const LeasePolicy& lease) {
  ClassPolicy all = borrowing(default_class());
  all.limits = {0};
  all.backlog = Host::kBacklog;
  all.max_delay = Nanos{10s};
  Policy policy = policy_of(all);
  policy.limits.push_back(limit_named("tenant", lease.rate));
  policy.limits[0].scope = Scope::cluster;
  return policy;
}

inline Host::Host(HostGroup& group, std::uint32_t index, const LeasePolicy& policy, std::uint64_t seed)
    : number{index},
      random{seed},
      core{cluster_policy(policy), StartCredit::full, {1, 2}, group.timeline.now()},
      lease{policy, round_trip, 1, Jitter{seed}, group.timeline.now()},
      group_{group} {}

inline void Host::offer(DataRate rate, std::uint32_t ip_bytes) {
  offered_ = rate;
  ip_bytes_ = ip_bytes;
  if (offered_.bits_per_second == 0) {
    ++era_;
    return;
  }
  const Nanos gap = random.exponential(time_for(offered_, {ip_bytes_ + kEthernetBytes}));
  group_.timeline.at(group_.now() + gap, [this, era = ++era_] { arrive(era); });
}

inline void Host::arrive(std::uint64_t era) {
  if (era != era_) return;
  offer(offered_, ip_bytes_);
  group_.came(*this, {ip_bytes_ + kEthernetBytes});
  if (lease.refuses()) {
    ++refused;
    return;
  }
  Packet packet = packet_of(number, ip_bytes_);
  packet.id.number = static_cast<std::uint32_t>(++arrived);
  core.on_packet(packet, group_.now(), out_);
  const std::optional<Instant> next = lease.next_call();
  if (lease.state() == LeaseState::cold || (next && *next <= group_.now())) return work();
  settle();
}

/// What follows anything that happens to a lease.
inline void Host::work() {
  const Instant now = group_.now();
  const LeaseState before = lease.state();
  demands_.clear();
  core.demand(now, demands_);
  lease.on_demand(demands_[0], now);
  const std::uint64_t timeouts = lease.counters().failures[static_cast<std::size_t>(LeaseReason::timeout)];
  if (timeouts != timeouts_) round_trip.timed_out();
  timeouts_ = timeouts;
  if (const ByteCount back = lease.take_back(); back.value > 0) lease.taken(core.take_back({}, back, now));
  if (const auto grant = lease.grant()) core.on_grant({{}, grant->bytes, grant->valid_until, grant->pace}, now, out_);
  if (const auto ask = lease.ask(now)) group_.carry(*this, *ask);
  if (lease.state() != before) changed = now;
  settle();
}

inline void Host::release() {
  core.release(group_.now(), out_);
  settle();
}

inline void Host::settle() {
  for (const Verdict& verdict : out_) {
    if (!departs(verdict.decision)) continue;
    group_.sent.add(verdict.wire_bytes, group_.now());
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
  const Instant at = std::max(*when, group_.now() + 1us);
  planned = at;
  group_.timeline.at(at, [this, &planned, at, what] {
    if (planned != at) return;
    planned.reset();
    (this->*what)();
  });
}

inline void Host::hear(const LeaseAnswer& answer, std::uint64_t sequence, Instant sent_at) {
  round_trip.measured(group_.now() - sent_at);
  const LeaseState before = lease.state();
  lease.on_answer(answer, sequence, sent_at, group_.now());
  if (lease.state() != before) changed = group_.now();
  work();
}

inline void Host::hear_of(ByteCount spent_elsewhere, std::uint64_t redis_time_us) {
  lease.on_spent_elsewhere(spent_elsewhere, redis_time_us);
  work();
}

inline void Host::fail(std::uint64_t sequence, Instant sent_at, LeaseReason reason) {
  lease.on_failure(sequence, sent_at, reason, group_.now());
  work();
}

inline void Host::connected() {
  lease.on_connected(group_.now());
  work();
}

}  // namespace shaper::sim
