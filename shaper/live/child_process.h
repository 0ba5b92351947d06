// Runs one program by its argument list and waits for it: never a shell, never the caller's PATH, no descriptor of ours
// passed on but the three that we make. What it reads and writes are files in memory, so nothing can block on a pipe.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shaper {

/// What to run. `arguments[0]` is a plain name, looked for in /usr/sbin, /usr/bin, /sbin and /bin, or a path with '/'.
struct Command {
  std::vector<std::string> arguments;
  std::string input;                                             ///< its standard input
  std::vector<std::pair<std::string, std::string>> environment;  ///< beside the fixed PATH and LC_ALL=C

  /// As a person would type it, for --dry-run and error lines.
  [[nodiscard]] std::string text() const;

  friend bool operator==(const Command&, const Command&) = default;
};

struct Outcome {
  int status = 0;          ///< exit status; 128 + n if signal n ended it, as a shell says
  bool timed_out = false;  ///< it was ended by us
  std::string output;      ///< standard output
  std::string errors;      ///< standard error

  [[nodiscard]] bool ok() const { return status == 0 && !timed_out; }
};

/// The path of a program in the fixed PATH.
[[nodiscard]] std::optional<std::string> find_program(std::string_view name);

/// Runs `command` to its end, or ends it with its children after `limit`. A program that does not exist is status 127
/// with one line in `errors`. Throws std::system_error where the system has no memory, descriptor or process left.
[[nodiscard]] Outcome run(const Command& command, std::chrono::milliseconds limit);

}  // namespace shaper
