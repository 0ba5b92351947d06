// Virtual hosts on a real Redis: each has a core, a lease and the daemon's own process part for Redis
// (live/redis_helper.h) with a connection of its own. Packets come and go in real time, but only here: no kernel queue
// is involved.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "shaper/live/channel.h"
#include "shaper/live/clock.h"
#include "shaper/live/redis_helper.h"
#include "shaper/live/timer.h"
#include "tests/virtual_hosts.h"

namespace shaper::bench {

using namespace sim;

/// What one bucket for all, without any network, would carry of the same packets: the hosts' queues as long as theirs.
class IdealBucket {
 public:
  IdealBucket(const LeasePolicy& policy, std::size_t hosts, Instant now)
      : rate_{policy.rate}, depth_{policy.burst.value}, tokens_{depth_}, queues_(hosts), at_{now} {}

  void came(std::size_t host, ByteCount bytes, Instant now) {
    pass(now);
    if (queues_[host] + bytes.value <= Host::kBacklog.value) queues_[host] += bytes.value;
    serve();
  }
  [[nodiscard]] std::uint64_t carried() const { return carried_; }

 private:
  void pass(Instant now) {
    const std::uint64_t earned = bytes_in(rate_, now - at_).value;
    if (earned == 0) return;
    at_ += time_for(rate_, {earned});
    tokens_ = std::min(tokens_ + earned, depth_);
    serve();
  }
  void serve() {
    while (tokens_ > 0) {
      std::uint64_t& longest = *std::max_element(queues_.begin(), queues_.end());
      if (longest == 0) return;
      const std::uint64_t bytes = std::min(longest, tokens_);
      longest -= bytes;
      tokens_ -= bytes;
      carried_ += bytes;
    }
  }

  DataRate rate_;
  std::uint64_t depth_;
  std::uint64_t tokens_;
  std::vector<std::uint64_t> queues_;
  Instant at_;
  std::uint64_t carried_ = 0;
};

class Group : public HostGroup {
 public:
  /// They connect to the server on this unix socket, and have answers before anything is offered.
  Group(const std::string& socket, std::uint32_t hosts, const LeasePolicy& limit, std::uint64_t seed = 1)
      : HostGroup{hosts, limit, seed}, ideal_{policy, hosts, now()} {
    for (auto& host : this->hosts()) ways_.push_back(std::make_unique<Way>(*this, *host, socket));
    timer_.repeat(kBetweenLooks);
    while (connected_ < hosts) loop_.turn();
  }

  void run_for(Nanos time) {
    const Instant end = now() + time;
    while (now() < end) {
      loop_.turn();
      catch_up();
    }
  }

  /// What was done outside of run_for() took time too.
  void catch_up() { timeline.run_until(begin_ + (monotonic_now() - begun_)); }

  void carry(Host& host, const LeaseAsk& ask) override {
    if (host.cut_off) return;
    Way& way = *ways_[host.number];
    way.sequence = ask.sequence;
    way.sent = now();
    const std::string text = LeaseAsks{host.round_trip.timeout(), {ask}}.text();
    for (int copies = host.random.chance(network.doubled) ? 2 : 1; copies > 0; --copies) {
      way.helper_end.send("ask", text);
    }
  }

  void came(const Host& host, ByteCount wire_bytes) override { ideal_.came(host.number, wire_bytes, now()); }

  /// The longest time from a host's latest connection to its lease.
  [[nodiscard]] Nanos longest_from_connection() {
    Nanos longest{0};
    for (auto& host : hosts()) longest = std::max(longest, host->changed - ways_[host->number]->connected);
    return longest;
  }
  [[nodiscard]] std::uint64_t ideal_carried() const { return ideal_.carried(); }

  Network network;  ///< besides the real one: answers that are lost or late, asks that are doubled

 private:
  static constexpr Nanos kBetweenLooks{250'000};

  struct Way {
    Way(Group& group, Host& host, const std::string& socket) : Way{group, host, socket, Channel::make_ends()} {}
    Way(Group& group, Host& host, const std::string& socket, std::pair<Fd, Fd> ends)
        : helper{group.loop_, std::move(ends.first)},
          helper_end{group.loop_, std::move(ends.second),
                     [&group, &host](const Request& message) { group.on_message(host, message); }, [] {}} {
      helper_end.send("connect", "host-" + std::to_string(host.number) + "\n" + socket + "\n\n\n");
    }

    RedisHelper helper;
    Channel helper_end;
    std::uint64_t sequence = 0;  // of the latest ask
    Instant sent;
    Instant connected;
  };

  void on_message(Host& host, const Request& message) {
    catch_up();
    if (message.verb == "connected") {
      ++connected_;
      ways_[host.number]->connected = now();
      return host.connected();
    }
    if (message.verb == "spent") {
      for (const SpentElsewhere& spent : parse_spent_elsewhere(message.body)) {
        if (!host.cut_off) host.hear_of(spent.bytes, spent.redis_time_us);
      }
      return;
    }
    for (const LeaseOutcome& outcome : parse_lease_outcomes(message.body)) {
      if (outcome.sequence == ways_[host.number]->sequence) on_outcome(host, outcome);
    }
  }

  void on_outcome(Host& host, const LeaseOutcome& outcome) {
    const Instant asked_at = ways_[host.number]->sent;
    if (!outcome.answer) {
      return host.fail(outcome.sequence, asked_at,
                       outcome.reason == "timeout" ? LeaseReason::timeout : LeaseReason::disconnected);
    }
    if (host.random.chance(network.lost) || host.cut_off) return;
    Nanos late = network.least_delay;
    if (network.sometimes > Nanos{0} && host.random.below(8) == 0) late += host.random.up_to(network.sometimes);
    if (late == Nanos{0}) return host.hear(*outcome.answer, outcome.sequence, asked_at);
    timeline.at(now() + late, [=, &host] { host.hear(*outcome.answer, outcome.sequence, asked_at); });
  }

  EventLoop loop_;
  Timer timer_{loop_, [] {}};
  Instant begin_ = now();
  Instant begun_ = monotonic_now();
  IdealBucket ideal_;
  std::uint32_t connected_ = 0;
  std::vector<std::unique_ptr<Way>> ways_;
};

}  // namespace shaper::bench
