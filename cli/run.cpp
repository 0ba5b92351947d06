// `shaper run`: a command in the place of this process, so that its exit status, signals and terminal are its own. The
// daemon lifts the limit when the command and all that it has started have ended.
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <limits>
#include <sstream>

#include "cli/commands.h"
#include "cli/daemon_link.h"
#include "cli/limit.h"
#include "shaper/live/system_call.h"
#include "shaper/model/plain_text.h"
#include "shaper/model/tables.h"

namespace shaper::cli {
namespace {

/// A live limit for this process, lifted if it does not become the command.
class OwnLimit {
 public:
  explicit OwnLimit(const std::string& request) : daemon_(connect_or_fail()), id_(ask(daemon_, "limit", request)) {}
  OwnLimit(const OwnLimit&) = delete;
  OwnLimit& operator=(const OwnLimit&) = delete;
  ~OwnLimit() {
    try {
      (void)daemon_.request("unlimit", id_);
    } catch (const std::exception&) {
      // The daemon is gone, and the limit with it; or it finds out that this process has ended.
    }
  }

 private:
  ControlClient daemon_;  // asked with the rights that we had
  std::string id_;
};

/// Who called sudo. Not every user has an entry here.
struct Caller {
  std::string name, home = "/";
  uid_t user = 0;
  gid_t group = 0;
  bool has_entry = false;
};

/// The highest number would mean to the kernel that we stay who we are.
std::uint32_t number_in(const char* variable) {
  const char* text = std::getenv(variable);
  const auto number = text == nullptr ? std::nullopt : parse_number<std::uint32_t>(text);
  if (number && *number != std::numeric_limits<std::uint32_t>::max()) return *number;
  throw CommandError(ExitCode::failed,
                     fmt::format("{}: '{}' is nobody's number; call this by sudo, or as root without it", variable,
                                 terminal_text(text == nullptr ? "" : text)));
}

/// Nothing: we stay who we are.
std::optional<Caller> caller_of_sudo() {
  if (::geteuid() != 0 || std::getenv("SUDO_UID") == nullptr) return std::nullopt;
  Caller caller;
  caller.user = number_in("SUDO_UID");
  caller.group = number_in("SUDO_GID");
  const passwd* entry = ::getpwuid(caller.user);
  caller.has_entry = entry != nullptr;
  caller.name = caller.has_entry ? entry->pw_name : std::to_string(caller.user);
  if (caller.has_entry) caller.home = entry->pw_dir;
  return caller;
}

void become(const Caller& caller) {
  if (caller.has_entry) {
    require(::initgroups(caller.name.c_str(), caller.group), "initgroups");
  } else {
    require(::setgroups(1, &caller.group), "setgroups");
  }
  require(::setresgid(caller.group, caller.group, caller.group), "setresgid");
  require(::setresuid(caller.user, caller.user, caller.user), "setresuid");
  for (const auto& [name, value] : {std::pair{"HOME", caller.home}, {"USER", caller.name}, {"LOGNAME", caller.name}}) {
    require(::setenv(name, value.c_str(), 1), "setenv");
  }
}

bool is_in_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access(fmt::format("{}/{}", folder.empty() ? "." : folder, name).c_str(), F_OK) == 0) return true;
  }
  return false;
}

}  // namespace

void run_command(const std::optional<std::string>& rate, char* const* command) {
  const auto caller = caller_of_sudo();
  std::optional<OwnLimit> limit;
  if (rate) limit.emplace(limit_request(fmt::format("pid={}", ::getpid()), *rate, std::nullopt));
  if (caller) become(*caller);
  ::execvp(command[0], command);
  int error = errno;
  const std::string name = command[0];
  // It says so too of a name that is nowhere, when it may not look into one of the folders.
  if (error == EACCES && name.find('/') == std::string::npos && !is_in_path(name)) error = ENOENT;
  throw CommandError(error == ENOENT ? ExitCode::not_found : ExitCode::not_executable,
                     fmt::format("'{}' cannot be run: {}", terminal_text(name), std::strerror(error)));
}

}  // namespace shaper::cli
