// Which process holds a socket, by the socket's inode.
//
// Looked for where it is likely first: where it was the last time, in processes that were found lately (who opens many
// short connections is found at once), in the cgroup that the socket was made in, then in all processes. All that are
// wanted share a search, and each of these places is searched at most as often as takes a quarter of one processor. Of
// several holders it is the oldest in the first place where there is one.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "shaper/live/cgroup_tree.h"
#include "shaper/live/descriptor_scan.h"
#include "shaper/live/process_facts.h"
#include "shaper/live/scan_pace.h"

namespace shaper {

class ProcessFinder {
 public:
  /// `is_open(inode)`: whether a process still holds the socket; asked before a search through all of them.
  ProcessFinder(const CgroupTree& cgroups, std::function<bool(std::uint64_t)> is_open);

  /// Where it was the last time, if that still is so.
  [[nodiscard]] std::optional<ProcessFacts> known(std::uint64_t inode);

  /// From now on it is looked for; `cgroup`: the path of the one that it was made in, or empty.
  void want(std::uint64_t inode, const std::string& cgroup);

  struct Found {
    std::uint64_t inode = 0;
    std::optional<ProcessFacts> process;  ///< nothing: none holds it
  };

  /// Searches for about so long at most. Returns those that need not be looked for any longer.
  [[nodiscard]] std::vector<Found> search(Nanos budget);
  /// When to call search() again; nothing: nothing is wanted.
  [[nodiscard]] std::optional<Instant> next() const;

  /// Searches so far, each place counted.
  [[nodiscard]] std::uint64_t searches() const { return searches_; }

 private:
  static constexpr std::size_t kLately = 0;
  static constexpr std::size_t kCgroup = 1;
  static constexpr std::size_t kEverywhere = 2;

  struct Place {
    std::map<std::uint64_t, std::string> wanted;  // the cgroup, by inode
    std::optional<DescriptorScan> scan;
    ScanPace pace;
  };

  struct Holder {
    ProcessId process;
    int descriptor = -1;
  };

  void begin(std::size_t place, std::vector<Found>& found);
  void finish(std::size_t place, std::vector<Found>& found);
  [[nodiscard]] std::vector<std::uint32_t> processes_of(std::size_t place) const;
  void remember(std::uint64_t inode, const SocketHolder& holder);

  const CgroupTree& cgroups_;
  std::function<bool(std::uint64_t)> is_open_;
  std::array<Place, 3> places_;
  std::uint64_t searches_ = 0;
  std::unordered_map<std::uint64_t, Holder> holders_;
  std::deque<std::uint64_t> order_;   // of holders_, the latest last
  std::deque<std::uint32_t> lately_;  // numbers of processes, the latest first
};

}  // namespace shaper
