// A call of the script in Redis (grants.lua): its keys and arguments, and what its reply says. Pure; sends nothing.
//
// One call asks about up to kMostBucketsInCall buckets of one group: Redis Cluster keeps a group's keys in one place.
// To be sent as EVALSHA kGrantsScriptSha1, and after NOSCRIPT at once as EVAL kGrantsScript, with the same sequences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "shaper/cluster/lease_exchange.h"

namespace shaper {

inline constexpr std::size_t kMostBucketsInCall = 32;

/// Numbers of the script are below this: there a double is exact.
inline constexpr std::uint64_t kExactInScript = std::uint64_t{1} << 53;

/// Who asks.
struct LeaseHost {
  std::string id;
  std::uint64_t incarnation = 0;  ///< another one after each start

  friend bool operator==(const LeaseHost&, const LeaseHost&) = default;
};

struct LeaseCall {
  std::vector<std::string> keys;
  std::vector<std::string> arguments;

  friend bool operator==(const LeaseCall&, const LeaseCall&) = default;
};

/// The group of a bucket, the same on every host: FNV-1a of its name, modulo `groups`.
[[nodiscard]] std::uint32_t lease_group(std::string_view bucket, std::uint32_t groups);

/// `asks` are at most kMostBucketsInCall, all of `group`. What is too large for the script is cut to its largest
/// number.
[[nodiscard]] LeaseCall lease_call(const LeaseHost& host, std::span<const LeaseAsk> asks, std::uint32_t group = 0);

/// The answers to so many asks, in their order; the error is a sentence.
[[nodiscard]] tl::expected<std::vector<LeaseAnswer>, std::string> read_lease_reply(std::span<const std::int64_t> reply,
                                                                                   std::size_t asks);

/// How long until the bucket covers `need` if nobody takes anything out: (level + need - depth) / rate, rounded up,
/// with level = depth - tokens.
[[nodiscard]] Nanos waiting_time(const LeaseAnswer& answer, ByteCount need);

}  // namespace shaper
