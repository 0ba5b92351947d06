#include "shaper/live/runtime_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>
#include <system_error>
#include <vector>

#include "shaper/live/fd.h"

namespace shaper {
namespace {

#ifndef SO_NETNS_COOKIE
constexpr int SO_NETNS_COOKIE = 71;  // asm-generic/socket.h
#endif

enum class Missing : std::uint8_t { is_made, is_nothing };

/// A folder that we trust, and the ones below it that are ours.
struct Place {
  std::string base;
  std::vector<std::string> below;
  uid_t owner = 0;
  mode_t mode = 0700;
};

/// The user as seen from outside our user namespace; nothing: this is the first one.
std::optional<std::uint64_t> user_outside() {
  constexpr std::uint64_t kAllUsers = 4'294'967'295;
  std::ifstream map{"/proc/self/uid_map"};
  const std::uint64_t user = geteuid();
  std::uint64_t inside = 0;
  std::uint64_t outside = 0;
  std::uint64_t count = 0;
  while (map >> inside >> outside >> count) {
    if (inside == 0 && outside == 0 && count == kAllUsers) return std::nullopt;
    if (user >= inside && user - inside < count) return outside + (user - inside);
  }
  return user;
}

bool is_folder_of(const std::string& path, uid_t owner) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == owner;
}

Place place_for(std::uint64_t cookie) {
  const std::string last = std::to_string(cookie);
  const auto outside = user_outside();
  if (!outside) return {"/run", {"shaper", last}, 0, 0750};
  const char* xdg = std::getenv("XDG_RUNTIME_DIR");
  if (xdg != nullptr && *xdg == '/' && is_folder_of(xdg, geteuid())) return {xdg, {"shaper", last}, geteuid(), 0700};
  return {"/tmp", {fmt::format("shaper-{}", *outside), last}, geteuid(), 0700};
}

std::string path_of(const Place& place) {
  std::string path = place.base;
  for (const std::string& name : place.below) path += '/' + name;
  return path;
}

RuntimeFolder folder_at(const Place& place, std::uint64_t cookie) {
  return {path_of(place), cookie, place.base == "/run"};
}

/// The group that may read; nothing where there is none or we may not give files to it.
std::optional<gid_t> readers() {
  const group* entry = getgrnam("shaper");  // called at start-up only, by one thread
  return entry == nullptr ? std::nullopt : std::optional{entry->gr_gid};
}

/// Gives a folder that we have just made its rights, whatever the umask was.
void set_rights(const Fd& folder, const Place& place) {
  if (fchmod(folder.get(), place.mode) != 0) throw std::system_error(errno, std::generic_category(), "fchmod");
  const auto group = place.mode == 0750 ? readers() : std::nullopt;
  if (!group) return;
  // Who is in a group may give it what is his: so CAP_CHOWN is not needed.
  const auto before = static_cast<gid_t>(setfsgid(*group));
  const int result = fchown(folder.get(), static_cast<uid_t>(-1), *group);
  const int error = errno;
  setfsgid(before);
  if (result != 0) throw std::system_error(error, std::generic_category(), "fchown");
}

/// Why this is not a folder to be trusted; nothing: it is.
std::optional<std::string> distrust(const Fd& folder, const Place& place) {
  struct stat status {};
  if (fstat(folder.get(), &status) != 0) return std::strerror(errno);
  if (status.st_uid != place.owner) return fmt::format("it belongs to user {}, not {}", status.st_uid, place.owner);
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "others may write in it";
  return std::nullopt;
}

tl::expected<bool, std::string> enter(const Place& place, Missing missing) {
  Fd folder{open(place.base.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  std::string path = place.base;
  for (const std::string& name : place.below) {
    path += '/' + name;
    const bool made = missing == Missing::is_made && mkdirat(folder.get(), name.c_str(), 0700) == 0;
    if (!made && missing == Missing::is_made && errno != EEXIST) {
      return tl::unexpected(fmt::format("cannot make {}: {}", path, std::strerror(errno)));
    }
    folder = Fd{openat(folder.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    if (!folder && errno == ENOENT && missing == Missing::is_nothing) return false;
    if (!folder) return tl::unexpected(fmt::format("cannot use {}: {}", path, std::strerror(errno)));
    if (made) set_rights(folder, place);
    if (const auto reason = distrust(folder, place)) {
      return tl::unexpected(fmt::format("refusing {}: {}; remove it", path, *reason));
    }
  }
  return true;
}

}  // namespace

std::uint64_t network_namespace_cookie() {
  const Fd any{socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  std::uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  if (!any || getsockopt(any.get(), SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size) != 0) {
    throw std::system_error(errno, std::generic_category(), "SO_NETNS_COOKIE");
  }
  return cookie;
}

gid_t group_of_readers(const RuntimeFolder& folder) {
  struct stat status {};
  if (lstat(folder.path.c_str(), &status) == 0) return status.st_gid;
  return readers().value_or(getegid());
}

RuntimeFolder runtime_folder_here() {
  const std::uint64_t cookie = network_namespace_cookie();
  return folder_at(place_for(cookie), cookie);
}

tl::expected<RuntimeFolder, std::string> make_runtime_folder() {
  const std::uint64_t cookie = network_namespace_cookie();
  const Place place = place_for(cookie);
  return enter(place, Missing::is_made).map([&](bool) { return folder_at(place, cookie); });
}

tl::expected<std::optional<RuntimeFolder>, std::string> find_runtime_folder() {
  const std::uint64_t cookie = network_namespace_cookie();
  const Place place = place_for(cookie);
  return enter(place, Missing::is_nothing).map([&](bool there) {
    return there ? std::optional{folder_at(place, cookie)} : std::nullopt;
  });
}

}  // namespace shaper
