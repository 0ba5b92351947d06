// Live limits: limits that are added while the daemon runs (`shaper limit`), for the flows that a selector names. Each
// is one bucket more on their way, whatever their class, so it only ever narrows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "shaper/core/policy.h"
#include "shaper/model/config.h"

namespace shaper {

struct LiveLimit {
  std::uint64_t id = 0;  ///< counted from 1
  DataRate rate;
  std::optional<Instant> until;  ///< absent: for good
  std::string selector;          ///< as it was given
  Match match;                   ///< what it says

  friend bool operator==(const LiveLimit&, const LiveLimit&) = default;
};

/// Reads `KEY=VALUE[,KEY=VALUE]` with the keys of a policy's `match`; all must hold. No one may ask for `mark_mask`.
/// The error is a sentence.
[[nodiscard]] tl::expected<Match, std::string> parse_selector(std::string_view text, const NameLookup& names,
                                                              std::uint32_t mark_mask = kDefaultMarkMask);

/// Adds them to all classes of the policy but its guards, behind its own limits.
void add_live_limits(Policy& policy, std::span<const LiveLimit> live);

/// A line, `ID BITS_PER_SECOND UNTIL SELECTOR`, for another process; UNTIL in nanoseconds, or `-`.
[[nodiscard]] std::string live_limit_line(const LiveLimit& limit);
/// What that line says, `match` apart; nothing: it is none.
[[nodiscard]] std::optional<LiveLimit> parse_live_limit_line(std::string_view line);

}  // namespace shaper
