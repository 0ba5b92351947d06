// What a host and the script in Redis say to each other about one bucket of a cluster limit: the script keeps one
// bucket for all hosts and deducts what it grants before it may be spent.
#pragma once

#include <cstdint>
#include <string>

#include "shaper/core/units.h"

namespace shaper {

/// What a host asks for, and tells, about one bucket.
struct LeaseAsk {
  std::string bucket;          ///< the limit's name; with `by`, the key behind a slash
  std::uint64_t config = 0;    ///< version of rate and burst: the newer one is in force for all hosts
  DataRate rate;               ///< of all hosts together
  ByteCount burst;             ///< the depth of the bucket
  Nanos interval{0};           ///< T: how often this host asks
  Nanos lease{0};              ///< L: how long a grant is valid, and a host that says nothing counts as a member
  std::uint64_t sequence = 0;  ///< of this host and bucket: a repeated one gets the same answer and costs nothing
  DataRate want;               ///< what this host's traffic could use
  ByteCount need;              ///< at most so much is granted
  ByteCount give_back;         ///< of earlier grants, unused
  ByteCount debt{};            ///< spent beyond what was granted
  bool in_fallback = false;    ///< spends by its own rule until an answer comes
  bool leaving = false;        ///< has no traffic any more: no member from now on
  bool tell = false;           ///< all hosts are told of `debt`
  bool reserve = false;        ///< while this host is missing, for less than a minute, its share is kept free
  DataRate local_rate{};       ///< that share: what this host spends in fallback; zero for an equal part
  bool observe = false;        ///< count, but nobody is held up

  friend bool operator==(const LeaseAsk&, const LeaseAsk&) = default;
};

/// What the script answers.
struct LeaseAnswer {
  enum class Status : std::uint8_t {
    granted,
    fresh,       ///< granted, and the bucket did not exist: it starts half full
    old_config,  ///< granted, by the newer rate and burst below
    replay,      ///< the same sequence again: the answer of then
    stale,       ///< an older sequence: nothing was done
    crowded,     ///< the bucket has as many hosts as it can have: nothing is granted
    taken,       ///< granted, but another incarnation of this host is a member: before a start, or of the same name
    foreign,     ///< another version of shaper has written the bucket: nothing was done
  };
  static constexpr Status kLastStatus = Status::foreign;
  Status status = Status::granted;
  ByteCount grant;
  std::int64_t tokens = 0;  ///< bytes in the bucket, below zero for debts
  DataRate share;           ///< max-min fair: no host gets more while others want it
  bool contended = false;   ///< all hosts together want more than the rate
  std::uint32_t members = 0;
  std::uint64_t generation =
      0;                     ///< when the bucket was made, in microseconds of Redis: another one after a loss of data
  std::uint64_t config = 0;  ///< in force, with its rate and burst
  DataRate rate;
  ByteCount burst;
  std::uint64_t redis_time_us = 0;

  friend bool operator==(const LeaseAnswer&, const LeaseAnswer&) = default;
};

}  // namespace shaper
