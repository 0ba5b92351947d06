// The words of the policy language, level by level, and the one that somebody may have meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace shaper {

/// A kind of table.
struct Level {
  std::string_view title;  ///< "a link"
  std::span<const std::string_view> keys;
};

extern const Level kTopLevel, kLinkLevel, kClassLevel, kEachLevel, kLimitLevel, kClusterLevel, kMatchLevel;

/// The candidate with the fewest letters to change, in quotation marks.
[[nodiscard]] std::string nearest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace shaper
