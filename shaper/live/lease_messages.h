// What the worker and the process that talks to Redis say to each other by way of the supervisor, as text: one line for
// each bucket, numbers between spaces.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shaper/cluster/lease_exchange.h"

namespace shaper {

/// Asks that go to the server in one call.
struct LeaseAsks {
  Nanos timeout{0};  ///< then they have failed
  std::vector<LeaseAsk> asks;

  [[nodiscard]] std::string text() const;
  /// Nothing: it is none.
  [[nodiscard]] static std::optional<LeaseAsks> parse(std::string_view text);
};

/// What came of one ask.
struct LeaseOutcome {
  std::string bucket;
  std::uint64_t sequence = 0;
  std::optional<LeaseAnswer> answer;  ///< absent: it failed, or nobody knows
  std::string reason;                 ///< why it failed, one word
};

/// What another host has spent of a bucket, and when that was settled.
struct SpentElsewhere {
  std::string bucket;
  ByteCount bytes;
  std::uint64_t redis_time_us = 0;

  [[nodiscard]] std::string line() const;
};
/// Lines that are none are left out.
[[nodiscard]] std::vector<SpentElsewhere> parse_spent_elsewhere(std::string_view text);
/// As the script publishes it; nothing: it is none, or of the host `self`.
[[nodiscard]] std::optional<SpentElsewhere> spent_elsewhere(std::string_view published, std::string_view self);

[[nodiscard]] std::string lease_outcomes_text(const std::vector<LeaseOutcome>& outcomes);
/// Lines that are none are left out.
[[nodiscard]] std::vector<LeaseOutcome> parse_lease_outcomes(std::string_view text);

}  // namespace shaper
