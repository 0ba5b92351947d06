// Small files in the run-time folder, written and read as a whole: a crash leaves the old one or the new one.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace shaper {

/// Writes `path`.new for the owner alone (0600), then puts it in the place of the old file. Error: one line.
[[nodiscard]] tl::expected<void, std::string> write_whole_file(const std::string& path, std::string_view text);

/// The first `most` bytes of a regular file of our own; nothing if there is none. Error: it cannot be read, or belongs
/// to somebody else.
[[nodiscard]] tl::expected<std::optional<std::string>, std::string> read_own_file(const std::string& path,
                                                                                  std::size_t most);

}  // namespace shaper
