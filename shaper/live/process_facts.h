// What /proc tells about a process (proc(5)). Everything is read below one opened folder /proc/PID, which stays that of
// one process: when that has ended nothing can be read any more, even if another one has its number.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "shaper/live/fd.h"

namespace shaper {

/// Names one process for good, a number alone does not.
struct ProcessId {
  std::uint64_t started = 0;  ///< ticks since boot
  std::uint32_t pid = 0;

  friend auto operator<=>(const ProcessId&, const ProcessId&) = default;  // the oldest first
};

struct ProcessFacts {
  ProcessId id;
  std::uint32_t parent = 0;
  std::uint32_t group = 0;    ///< the number of its process group: that of the process that made it
  std::uint32_t session = 0;  ///< likewise
  bool ended = false;         ///< its parent has not asked yet how
  std::string name;           ///< as the process likes it: any bytes
};

/// None: it is gone.
[[nodiscard]] Fd open_process(std::uint32_t pid);

/// All but the name, from the text of /proc/PID/stat.
[[nodiscard]] std::optional<ProcessFacts> parse_process_stat(std::string_view text);

/// Nothing: it has ended.
[[nodiscard]] std::optional<ProcessFacts> process_facts(const Fd& folder);
/// The same without the name.
[[nodiscard]] std::optional<ProcessFacts> process_standing(const Fd& folder);

/// Calls visit(pid) for each process that is there.
void for_each_process(const std::function<void(std::uint32_t)>& visit);

}  // namespace shaper
