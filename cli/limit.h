// A live limit as people write it, as the daemon takes it.
#pragma once

#include <optional>
#include <string>

namespace shaper::cli {

/// The body of the request `limit`; `time` absent: for good. Throws CommandError if something is written wrongly.
[[nodiscard]] std::string limit_request(const std::string& selector, const std::string& rate,
                                        const std::optional<std::string>& time);

}  // namespace shaper::cli
