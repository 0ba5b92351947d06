// `shaper run`: a command in the place of this process, so that its exit status, signals and terminal are its own. The
// daemon lifts the limit when the command and all that it has started have ended.
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

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

/// Who called sudo.
struct Caller {
  std::string name, home;
  uid_t user = 0;
  gid_t group = 0;
};

/// Nothing: we stay who we are.
std::optional<Caller> caller_of_sudo() {
  const char* user = std::getenv("SUDO_UID");
  if (::geteuid() != 0 || user == nullptr) return std::nullopt;
  const auto id = parse_number<uid_t>(user);
  const passwd* entry = id ? ::getpwuid(*id) : nullptr;
  if (entry == nullptr) {
    throw CommandError(ExitCode::failed,
                       fmt::format("SUDO_UID: no user here has the number '{}'", terminal_text(user)));
  }
  const char* group = std::getenv("SUDO_GID");
  const auto group_id = group == nullptr ? std::nullopt : parse_number<gid_t>(group);
  return Caller{entry->pw_name, entry->pw_dir, *id, group_id.value_or(entry->pw_gid)};
}

void become(const Caller& caller) {
  require(::initgroups(caller.name.c_str(), caller.group), "initgroups");
  require(::setresgid(caller.group, caller.group, caller.group), "setresgid");
  require(::setresuid(caller.user, caller.user, caller.user), "setresuid");
  for (const auto& [name, value] : {std::pair{"HOME", caller.home}, {"USER", caller.name}, {"LOGNAME", caller.name}}) {
    require(::setenv(name, value.c_str(), 1), "setenv");
  }
}

}  // namespace

void run_command(const std::optional<std::string>& rate, char* const* command) {
  const auto caller = caller_of_sudo();
  std::optional<OwnLimit> limit;
  if (rate) limit.emplace(limit_request(fmt::format("pid={}", ::getpid()), *rate, std::nullopt));
  if (caller) become(*caller);
  ::execvp(command[0], command);
  const int error = errno;
  throw CommandError(error == ENOENT ? ExitCode::not_found : ExitCode::not_executable,
                     fmt::format("'{}' cannot be run: {}", terminal_text(command[0]), std::strerror(error)));
}

}  // namespace shaper::cli
