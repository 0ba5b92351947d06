// Differentiated services code points by their names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shaper {

/// A name of the IANA registry ("EF", "af41"), "BE" for 0, or a number from 0 to 63.
[[nodiscard]] std::optional<std::uint8_t> parse_dscp(std::string_view text);

/// The name, or the number where there is none.
[[nodiscard]] std::string dscp_name(std::uint8_t dscp);

/// The names that parse_dscp() knows.
[[nodiscard]] std::vector<std::string_view> dscp_names();

}  // namespace shaper
