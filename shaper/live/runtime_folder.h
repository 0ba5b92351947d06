// Where the daemon of this network namespace keeps its socket and its undo record, and how the command line finds it.
//
//   real root                 /run/shaper/COOKIE                0750, group shaper if there is one
//   in a user namespace       $XDG_RUNTIME_DIR/shaper/COOKIE    0700, or
//                             /tmp/shaper-UID/COOKIE            0700, UID as seen outside
//
// COOKIE is the number of the network namespace (SO_NETNS_COOKIE, Linux 5.14): unlike its inode it is never used again
// before a reboot. Every step of the path is opened without following links and must belong to who may be trusted:
// root in /run, ourselves elsewhere. Whatever else is there is refused, not repaired.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tl/expected.hpp>

namespace shaper {

struct RuntimeFolder {
  std::string path;
  std::uint64_t cookie = 0;  ///< of the network namespace
  bool real_root = false;    ///< it is in /run

  [[nodiscard]] std::string control_socket() const { return path + "/control"; }
  [[nodiscard]] std::string undo_record() const { return path + "/undo"; }
  /// Where a daemon that gave up said why.
  [[nodiscard]] std::string trouble() const { return path + "/trouble"; }
  /// What `revert` brings back.
  [[nodiscard]] std::string fallback() const { return path + "/fallback"; }
  /// For Iptables::of(): empty for real root, who uses the one of all programs.
  [[nodiscard]] std::string xtables_lock() const { return real_root ? "" : path + "/xtables.lock"; }
};

/// The number of the calling thread's network namespace. Throws std::system_error (Linux before 5.14).
[[nodiscard]] std::uint64_t network_namespace_cookie();

/// The group that may ask the daemon of `folder`: that of the folder, and before there is one the group that it will
/// have.
[[nodiscard]] gid_t group_of_readers(const RuntimeFolder& folder);

/// Where the folder is or would be; touches nothing. The same for every process of one user namespace with one
/// XDG_RUNTIME_DIR, so for the command line and the daemon that it starts. Throws as network_namespace_cookie().
[[nodiscard]] RuntimeFolder runtime_folder_here();

/// Makes what is missing. Error: one line with the path and the reason.
[[nodiscard]] tl::expected<RuntimeFolder, std::string> make_runtime_folder();

/// The folder if it exists, nothing if it does not (no daemon was ever here). Error: it must not be trusted or read.
[[nodiscard]] tl::expected<std::optional<RuntimeFolder>, std::string> find_runtime_folder();

}  // namespace shaper
