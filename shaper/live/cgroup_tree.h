// The cgroups of cgroup2: path by id. The id of a cgroup is the number of its folder's inode (fs/kernfs), and no other
// one ever has it: a service that starts anew has a new one under the old path.
//
// An unknown id makes us walk the tree; a path stays known when its cgroup is gone, for sockets outlive it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "shaper/live/fd.h"
#include "shaper/live/scan_pace.h"

namespace shaper {

/// Where cgroup2 is mounted, by the text of a process's mountinfo (proc(5)): the mount that shows the most.
[[nodiscard]] std::optional<std::string> cgroup2_mount(std::string_view mountinfo);

class CgroupTree {
 public:
  /// Without cgroup2 no path is ever known.
  CgroupTree();

  [[nodiscard]] bool mounted() const { return static_cast<bool>(root_); }

  /// From the root of cgroup2, with a leading '/'; nothing: unknown so far.
  [[nodiscard]] const std::string* path(std::uint64_t id) const;

  [[nodiscard]] const ScanPace& pace() const { return pace_; }
  /// Reads all cgroups that are there, 65,536 at most.
  void walk();

  /// Those that were there at the latest walk, a parent before what is in it.
  [[nodiscard]] const std::vector<std::string>& paths() const { return paths_; }

  /// The processes in a cgroup, without those below it.
  [[nodiscard]] std::vector<std::uint32_t> processes(const std::string& path) const;

  [[nodiscard]] std::uint64_t walks() const { return walk_; }

 private:
  struct Known {
    std::string path;
    std::uint64_t walk = 0;  // that saw it last
  };

  void visit(std::uint64_t id, const std::string& path);
  void forget_old();

  Fd root_;
  std::unordered_map<std::uint64_t, Known> known_;
  std::vector<std::string> paths_;
  std::uint64_t walk_ = 0;
  ScanPace pace_;
};

}  // namespace shaper
