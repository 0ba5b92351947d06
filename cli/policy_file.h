// Reads files that a user names: policies and event logs.
#pragma once

#include <string>
#include <vector>

#include "shaper/model/config.h"
#include "shaper/model/event_log.h"

namespace shaper::cli {

inline constexpr std::size_t kLargestPolicy = 1024 * 1024;

/// The text of a regular file of at most `most` bytes. Throws CommandError: one line with the path, exit code 1.
[[nodiscard]] std::string read_file(const std::string& path, std::size_t most);

struct LoadedPolicy {
  std::string name;  ///< of the file, for messages
  std::string text;
  Policy policy;
  HostPolicy host;
  std::vector<event::Name> names;  ///< users and groups that it names
};

/// Reads and checks a policy; its warnings go to stderr. Throws CommandError: `file:line:column: message`, exit code 2.
[[nodiscard]] LoadedPolicy load_policy(const std::string& path);
[[nodiscard]] LoadedPolicy check_policy(const std::string& text, const std::string& name);

/// Where a policy goes by who sends: what of that this kernel, and the privileges of a caller who may start the daemon,
/// do not give; to stderr.
void warn_of_owners(const Policy& policy);

}  // namespace shaper::cli
