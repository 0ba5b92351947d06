// The sub-commands of `shaper`, one function each in its own file. They print for people on stdout, say what went wrong
// by a CommandError, and return the exit code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "shaper/live/iptables.h"

namespace shaper::cli {

/// Scripts depend on these numbers.
enum class ExitCode : std::uint8_t {
  done = 0,
  failed = 1,            ///< refused or failed, a missing file included
  wrong_usage = 2,       ///< or a bad policy
  no_daemon = 3,         ///< none runs in this network namespace
  no_permission = 4,     ///< the message names the capability
  not_executable = 126,  ///< the command of `run`, as a shell says it
  not_found = 127,
};

/// Ends a command with one line on stderr.
class CommandError : public std::runtime_error {
 public:
  CommandError(ExitCode code, const std::string& line) : std::runtime_error(line), code_(code) {}
  [[nodiscard]] ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

/// A bad policy: the line is `file:line:column: message` and is printed as it is.
class PolicyError : public CommandError {
 public:
  explicit PolicyError(const std::string& line) : CommandError(ExitCode::wrong_usage, line) {}
};

inline constexpr const char* kDefaultPolicyFile = "/etc/shaper/shaper.toml";

struct UpOptions {
  std::string file = kDefaultPolicyFile;
  std::string interface;  ///< empty: the policy comes from `file`
  std::string rate;
  bool dry_run = false;
  bool foreground = false;
  std::optional<std::string> confirm;  ///< the time within which `shaper confirm` must come
  Backend backend = Backend::host;
};

struct FlowsOptions {
  bool json = false;
  std::optional<double> watch;     ///< seconds between two looks
  std::optional<double> interval;  ///< seconds over which rates are measured
  std::string sort = "rate";
  bool reverse = false;
  std::optional<std::size_t> most;
  // What is absent is not asked.
  std::optional<std::string> of_class;
  std::optional<std::string> address;
  std::optional<std::uint16_t> port;
  std::optional<std::string> protocol;
  std::optional<std::string> user;
  std::optional<std::string> text;
};

struct ExplainOptions {
  std::string packet;
  std::optional<std::string> policy_file;  ///< absent: the running daemon's policy, else the default file
};

struct ServeOptions {
  std::string listen = "127.0.0.1:9469";
  bool flows = false;
  std::vector<std::string> hosts;   ///< further names that readers may call this host by
  std::optional<std::string> user;  ///< who to become; absent: nobody, where we are root
};

struct ReplayCommandOptions {
  std::string capture;
  std::optional<std::string> policy_file;
  std::optional<std::string> link;
  std::optional<std::string> events_file;
  std::optional<std::string> html_file;
  std::uint32_t mtu = 1500;
  bool json = false;
  bool quiet = false;
};

[[nodiscard]] ExitCode check(const std::string& file);
[[nodiscard]] ExitCode up(const UpOptions& options);
[[nodiscard]] ExitCode reload(const std::optional<std::string>& file);
[[nodiscard]] ExitCode down(bool dry_run);
[[nodiscard]] ExitCode restart();
[[nodiscard]] ExitCode confirm();
/// Goes back to what was before the change that is not confirmed.
[[nodiscard]] ExitCode revert();
[[nodiscard]] ExitCode status(bool json);
/// What the supervisor runs to know of the rules: a line with their state, then the warnings. With `repair` they are
/// put back if that is needed; then kRepaired and how that went stand in front.
[[nodiscard]] ExitCode tend(bool repair);
[[nodiscard]] ExitCode flows(const FlowsOptions& options);
/// A full-screen view until somebody leaves it.
[[nodiscard]] ExitCode top();
/// A live limit for the flows that `selector` names; `time` absent: for good.
[[nodiscard]] ExitCode limit(const std::string& selector, const std::string& rate,
                             const std::optional<std::string>& time);
[[nodiscard]] ExitCode unlimit(std::uint64_t id);
/// Becomes the command, which ends with a null pointer, as the user who called sudo; with `rate` it has a live limit.
[[noreturn]] void run_command(const std::optional<std::string>& rate, char* const* command);
[[nodiscard]] ExitCode cluster_show(bool json);
/// For Prometheus.
[[nodiscard]] ExitCode metrics();
[[nodiscard]] ExitCode explain(const ExplainOptions& options);
[[nodiscard]] ExitCode events();
[[nodiscard]] ExitCode replay(const ReplayCommandOptions& options);
/// Ends only by a signal.
[[noreturn]] void serve(const ServeOptions& options);

}  // namespace shaper::cli
