// A search through the descriptors of some processes for some sockets, by inode; in steps, so that other work goes on.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "shaper/core/units.h"
#include "shaper/live/process_facts.h"

namespace shaper {

/// Who holds a socket, and as which descriptor.
struct SocketHolder {
  ProcessFacts process;
  int descriptor = -1;
};

class DescriptorScan {
 public:
  DescriptorScan(std::vector<std::uint32_t> processes, std::set<std::uint64_t> inodes);

  /// Searches until then; true: it is over.
  bool step(Instant until);

  /// The oldest holder of each that was found.
  [[nodiscard]] const std::map<std::uint64_t, SocketHolder>& found() const { return found_; }
  [[nodiscard]] const std::set<std::uint64_t>& inodes() const { return inodes_; }
  /// Time spent in steps.
  [[nodiscard]] Nanos cost() const { return cost_; }

 private:
  void look_into(std::uint32_t pid);

  std::vector<std::uint32_t> processes_;
  std::set<std::uint64_t> inodes_;
  std::size_t next_ = 0;
  std::map<std::uint64_t, SocketHolder> found_;
  Nanos cost_{0};
};

/// The inode of the socket behind a descriptor of the process whose folder this is; 0: it is none, or cannot be read.
[[nodiscard]] std::uint64_t socket_inode(int folder, const char* path);

}  // namespace shaper
