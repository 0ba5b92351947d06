// Who sends a flow, beyond the user of its socket: the cgroup that the socket was made in, the process that holds it,
// the container that these belong to. Found outside (live/owner_helper.h) while packets go on, told to the core by
// on_owner().
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shaper/core/units.h"

namespace shaper {

/// The kernel keeps this much of a process's name (TASK_COMM_LEN of linux/sched.h, without the zero at its end).
inline constexpr std::size_t kProcessNameBytes = 15;

/// What was found out; what was not is empty.
struct Owner {
  std::optional<std::uint32_t> user;  ///< of the socket
  std::string cgroup;                 ///< path from the root of cgroup2: "/system.slice/backup.service"
  std::string process;                ///< name
  std::uint32_t pid = 0;              ///< of the process that holds the socket
  std::uint64_t started = 0;  ///< when that began, in ticks since boot: with `pid` it names one process for good
  std::vector<std::uint32_t>
      lineage;            ///< of the numbers that the policy's `pid` keys name: the process itself, forebears
  std::string container;  ///< id, 64 hexadecimal digits
  std::string container_name;

  template <typename Image>
  void carry(Image& image);

  friend auto operator<=>(const Owner&, const Owner&) = default;
};

/// What the flows of one cgroup, or of one container, have sent since they were seen first.
struct OwnerTotal {
  std::string cgroup;  ///< of flows of no container; "unknown": only a process was found; "other": there are too many
  std::string container;  ///< its name, or the first 12 digits of its id
  std::uint64_t sent_packets = 0;
  ByteCount wire_bytes;

  template <typename Image>
  void carry(Image& image);
};

}  // namespace shaper
