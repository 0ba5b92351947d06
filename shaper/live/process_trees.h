// The processes that a policy's `pid` keys name, with all that they have started, directly or not.
//
// The kernel forgets who started a process whose parent has ended. So descendants are written down while their parents
// live: once a second, and those of who is asked about at once. Process groups and sessions are not forgotten: their
// number is that of the process that made them, and is nobody else's while they last. Who leaves both, and ends every
// process between itself and the one that is named within that second before it sends anything, is not found.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shaper/live/process_facts.h"
#include "shaper/live/scan_pace.h"

namespace shaper {

class ProcessTrees {
 public:
  /// These numbers from now on. Of a number that is new, or whose processes have all ended, it is the process that has
  /// it now.
  void follow(std::span<const std::uint32_t> numbers);

  [[nodiscard]] bool empty() const { return trees_.empty(); }

  /// Looks at all processes.
  void look();
  /// When to look again: in a second, or later where a look takes more than a quarter of one.
  [[nodiscard]] Instant next_look() const { return next_look_; }

  /// The numbers whose processes have all ended, each once.
  [[nodiscard]] std::vector<std::uint32_t> take_gone();

  /// The numbers that the process descends from or has itself, sorted.
  [[nodiscard]] std::vector<std::uint32_t> lineage(const ProcessFacts& process);

  /// All that is known, for take_up() in a fresh process: a line `NUMBER PID STARTED` for each.
  [[nodiscard]] std::string text() const;
  void take_up(std::string_view text);

 private:
  struct Tree {
    std::set<ProcessId> members;
    bool told_gone = false;
  };
  using Standing = std::map<std::uint32_t, ProcessFacts>;  // by pid

  static void renew(std::uint32_t number, Tree& tree, const Standing& standing);

  std::map<std::uint32_t, Tree> trees_;
  Instant next_look_{};
  ScanPace pace_;
};

}  // namespace shaper
