// What /proc tells of the processes of this host. What cannot be read is left out.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace shaper::cli {

[[nodiscard]] std::vector<pid_t> all_processes();

/// A file of the process, as "comm" or "stat"; empty if it cannot be read.
[[nodiscard]] std::string file_of(pid_t process, std::string_view name);

/// The inodes of the sockets that it has open. Needs CAP_SYS_PTRACE for those of other users.
[[nodiscard]] std::vector<std::string> sockets_of(pid_t process);

}  // namespace shaper::cli
