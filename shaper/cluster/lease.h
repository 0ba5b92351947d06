// The host's part of a cluster limit, for one bucket: when to ask for grants and for how much, what of them the core
// gets, and what holds while nobody answers.
//
// The script deducts what it grants before it may be spent; what this host does not need it hands back. So whatever is
// lost, doubled or late, no byte is minted here: an ask is repeated with the same sequence and the same give-back until
// it is answered, each answer counts once, and bytes that this host gave itself are never given back. By other
// strategies a host spends first and owes it then: that is repeated in the same way.
//
// Pure: told the time, no clock, no socket. After anything has happened, and at next_call(), in this order: on_answer()
// or on_failure(); on_demand() with what the core says, all grants so far included; take_back() and taken(); grant();
// ask(); next_call().
#pragma once

#include <array>
#include <optional>

#include "shaper/cluster/demand_window.h"
#include "shaper/cluster/jitter.h"
#include "shaper/cluster/lease_exchange.h"
#include "shaper/cluster/member_watch.h"
#include "shaper/cluster/replica.h"
#include "shaper/cluster/round_trip.h"
#include "shaper/core/policy.h"
#include "shaper/core/shaper.h"

namespace shaper {

struct LeasePolicy {
  std::string bucket;
  std::uint64_t config = 0;  ///< version of rate and burst
  DataRate rate;             ///< of all hosts together
  ByteCount burst;
  Nanos interval = std::chrono::milliseconds{40};  ///< the least T
  WithoutRedis without_redis = WithoutRedis::degrade;
  std::uint32_t hosts = 0;             ///< how many there are; 0: not configured
  std::optional<DataRate> local_rate;  ///< what `degrade` gives; absent: a share of `rate`
  std::optional<DataRate> max_rate;    ///< a faster rate from Redis is not obeyed
  bool reserve = false;
  bool observe = false;  ///< with grants only
  Strategy strategy = Strategy::grants;
  Discipline discipline = Discipline::token;
  ByteCount frame{1'514};  ///< one full frame
};

enum class LeaseState : std::uint8_t {
  cold,      ///< no grant yet, or no traffic
  leased,    ///< spends grants
  fallback,  ///< nobody answers: spends by LeasePolicy::without_redis
};

/// Why the state is what it is, and how an ask failed.
enum class LeaseReason : std::uint8_t {
  start,
  idle,
  answer,
  expired,       ///< no answer for as long as a grant is valid
  timeout,       ///< no answer to one ask in time
  disconnected,  ///< the connection broke, or there is none
  unavailable,   ///< LOADING, BUSY, OOM, READONLY, MASTERDOWN, CLUSTERDOWN, MISCONF, NOREPLICAS, TRYAGAIN; too many
                 ///< hosts
  denied,        ///< NOAUTH, NOPERM, WRONGTYPE: an operator must act
  odd,           ///< an answer that makes no sense
  version,       ///< the bucket is of another version of shaper
};
inline constexpr std::size_t kLeaseReasons = 10;

struct LeaseCounters {
  ByteCount granted;      ///< by answers
  ByteCount returned;     ///< that answers have acknowledged
  ByteCount discarded;    ///< granted by an answer whose clock had jumped, or for what fallback has given meanwhile
  ByteCount unmetered;    ///< sent beyond the limit: in fallback by `allow`, or by `observe`
  ByteCount settled;      ///< taken out of the bucket after it was sent, as answers have acknowledged
  ByteCount in_fallback;  ///< sent in fallback: never a debt
  Nanos fallback{0};      ///< time spent in it
  std::array<std::uint64_t, kLeaseReasons> into_fallback{};  ///< by LeaseReason
  std::uint64_t out_of_fallback = 0;
  std::array<std::uint64_t, kLeaseReasons> failures{};  ///< of asks, by LeaseReason
  std::uint64_t asks = 0;
  std::uint64_t ignored = 0;      ///< answers that had come before
  std::uint64_t told = 0;         ///< how often others have told what they spent
  std::uint64_t late = 0;         ///< answers whose grant had ended; it was handed back
  std::uint64_t clock_jumps = 0;  ///< of Redis TIME against ours
  std::uint64_t too_fast = 0;     ///< answers with a rate above LeasePolicy::max_rate
};

/// Bytes for the core: shaper::Grant without its address.
struct LeaseGrant {
  ByteCount bytes;
  Instant valid_until;
  DataRate pace;
};

class Lease {
 public:
  /// `first_sequence` must be above all that this host has used for the bucket. `round_trip` must live as long.
  Lease(LeasePolicy policy, const RoundTrip& round_trip, std::uint64_t first_sequence, Jitter jitter, Instant now);

  /// Other settings from now on; the bucket's name stays.
  void change(LeasePolicy policy);

  // --- What it is told -----------------------------------------------------------------------------------------------

  /// What the core says of the bucket now. Packets that were refused because of refuses() must count as arrived.
  void on_demand(const Demand& demand, Instant now);

  /// The answer to the ask of this sequence that was sent at `sent`.
  void on_answer(const LeaseAnswer& answer, std::uint64_t sequence, Instant sent, Instant now);

  /// The ask that was sent at `sent` has failed. Timeouts the lease notices by itself.
  void on_failure(std::uint64_t sequence, Instant sent, LeaseReason reason, Instant now);

  /// Another host has spent so much, which was settled at that time of Redis.
  void on_spent_elsewhere(ByteCount bytes, std::uint64_t redis_time_us);

  /// There is a connection again: a failed ask is repeated at once.
  void on_connected(Instant now);

  /// What the core gave of the last take_back().
  void taken(ByteCount bytes);

  // --- What it says --------------------------------------------------------------------------------------------------

  /// What to take back from the core, once.
  [[nodiscard]] ByteCount take_back();

  /// What the core gets, once.
  [[nodiscard]] std::optional<LeaseGrant> grant();

  /// What is to be sent now.
  [[nodiscard]] std::optional<LeaseAsk> ask(Instant now);

  /// When it wants to be told the demand again, at the latest; nothing: when a packet has come.
  [[nodiscard]] std::optional<Instant> next_call() const;

  [[nodiscard]] LeaseState state() const { return state_; }
  [[nodiscard]] LeaseReason reason() const { return reason_; }
  /// Nothing of the limit may pass, and nothing may wait.
  [[nodiscard]] bool refuses() const {
    return state_ == LeaseState::fallback && !policy_.observe && policy_.without_redis == WithoutRedis::reject;
  }
  /// In force for all hosts, as far as this one may obey.
  [[nodiscard]] DataRate rate() const { return rate_; }
  /// F: what `degrade` gives.
  [[nodiscard]] DataRate fallback_rate() const;
  [[nodiscard]] Nanos interval() const;
  [[nodiscard]] const LeaseCounters& counters() const { return counters_; }

 private:
  // Demand and the wallet.
  void count(const Demand& demand, Instant now);
  void count_spent(ByteCount spent, const Demand& demand, Instant now);
  void pass_time(Instant now);
  void welcome(Instant now);
  void plan_give_back(Instant now);
  [[nodiscard]] bool empty() const;
  [[nodiscard]] bool runs_out() const;
  [[nodiscard]] Nanos lasts() const;
  [[nodiscard]] bool idle(Instant now) const;
  [[nodiscard]] ByteCount wanted() const;
  [[nodiscard]] ByteCount wanted_until_answer() const;
  void give(ByteCount bytes, Instant valid_until, DataRate pace);
  ByteCount fill(ByteCount up_to, ByteCount there, Instant valid_until, DataRate pace);
  [[nodiscard]] bool may_welcome() const;
  void take_in(ByteCount bytes, Instant until);
  [[nodiscard]] ByteCount pay_loan(ByteCount bytes);

  // By strategy (lease_strategy.cpp).
  [[nodiscard]] bool asks_ahead() const { return policy_.strategy == Strategy::grants; }
  [[nodiscard]] bool settles() const {
    return policy_.strategy == Strategy::poll || policy_.strategy == Strategy::push;
  }
  [[nodiscard]] bool hurries() const;
  [[nodiscard]] Nanos shortest_gap() const;
  [[nodiscard]] ByteCount kept() const;
  [[nodiscard]] ByteCount enough() const;
  [[nodiscard]] DataRate pace_of(ByteCount wallet) const;
  void calibrate(const LeaseAnswer& answer, Instant sent, Instant now);
  void follow_replica(Instant now);

  // Asking.
  [[nodiscard]] bool may_ask(Instant now) const;
  [[nodiscard]] Instant next_ask() const;
  [[nodiscard]] LeaseAsk compose(Instant now);
  void said_goodbye(Instant now);
  void learn(const LeaseAnswer& answer, Instant now);
  [[nodiscard]] bool clock_jumped(const LeaseAnswer& answer, Instant sent, Instant now);
  void failed(LeaseReason reason, Instant now);

  // Fallback.
  void become(LeaseState state, LeaseReason reason, Instant now);
  void consider_fallback(Instant now);
  void top_up(Instant now);
  void withdraw();
  [[nodiscard]] ByteCount fallback_burst() const;
  [[nodiscard]] std::optional<Instant> next_top_up() const;
  [[nodiscard]] std::optional<Instant> fallback_begin() const;

  LeasePolicy policy_;
  const RoundTrip* round_trip_;
  Jitter jitter_;
  DataRate rate_;

  LeaseState state_ = LeaseState::cold;
  LeaseReason reason_ = LeaseReason::start;
  LeaseCounters counters_;

  DemandWindow window_;
  Demand seen_;  // the latest
  bool looked_ = false;
  Instant seen_at_;
  std::optional<Instant> last_traffic_;
  ByteCount left_;       // of grants, in the core
  ByteCount unpaid_;     // at most so much of it was given in fallback
  ByteCount loan_;       // for first packets, to be paid by the next grants
  ByteCount loan_left_;  // at most so much of it is in the core
  ByteCount returning_;  // taken back, for the next ask
  ByteCount to_take_;
  Replica replica_;      // of the bucket, where it is settled afterwards
  ByteCount unsettled_;  // spent here, and in no ask yet
  std::optional<LeaseGrant> to_give_;
  std::optional<Instant> valid_until_;  // of the grants

  std::uint64_t sequence_;
  std::optional<LeaseAsk> unanswered_;
  Instant asked_at_;                  // that ask, for the first time
  ByteCount in_fallback_when_asked_;  // LeaseCounters::in_fallback
  bool in_flight_ = false;
  std::optional<Instant> sent_;  // the latest ask
  Instant tick_;
  Instant not_before_;     // of the next ask
  unsigned failures_ = 0;  // in a row
  LeaseReason failure_ = LeaseReason::start;
  bool said_goodbye_ = true;  // and nothing has come since
  bool welcomed_ = false;     // the allowance for first packets was given
  std::int64_t tokens_ = 0;   // in the bucket, by the last answer

  struct Offset {
    Nanos offset;
    Nanos uncertain;  // half a round trip
  };
  std::optional<Offset> redis_clock_;
  MemberWatch members_;
  Instant topped_up_;
  Instant counted_;  // fallback time up to here
  bool spends_in_fallback_ = false;
};

}  // namespace shaper
