// The version of the programs, as CMakeLists.txt has it, and the word for two that differ.
#pragma once

#include <string>
#include <string_view>

namespace shaper {

extern const char* const kVersion;

/// What to do about a daemon of another version than this command's; empty: it is of the same.
[[nodiscard]] std::string version_advice(std::string_view daemon, std::string_view command = kVersion);

}  // namespace shaper
