// Finds the owners of flows: asks go in, answers come out, one for each ask, within a second, mostly within some
// milliseconds. Nothing in here waits but for an engine's names (container_names.h); what takes long is done in steps.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "shaper/live/cgroup_tree.h"
#include "shaper/live/container_names.h"
#include "shaper/live/containers.h"
#include "shaper/live/owner_messages.h"
#include "shaper/live/process_finder.h"
#include "shaper/live/process_trees.h"
#include "shaper/live/socket_diag.h"

namespace shaper {

class OwnerFinder {
 public:
  /// Further asks are answered at once, with what is known at once.
  static constexpr std::size_t kMostWaiting = 4096;

  /// Throws std::system_error.
  explicit OwnerFinder(ContainerNames::Sources names = {});
  OwnerFinder(const OwnerFinder&) = delete;
  OwnerFinder& operator=(const OwnerFinder&) = delete;

  void ask(std::span<const OwnerAsk> asks);
  /// Works for some milliseconds; returns what is answered.
  [[nodiscard]] std::vector<OwnerAnswer> work();
  /// When to call work() again; nothing: nobody waits.
  [[nodiscard]] std::optional<Instant> next() const;

  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
  [[nodiscard]] ProcessTrees& trees() { return trees_; }
  [[nodiscard]] const ProcessFinder& processes() const { return processes_; }
  [[nodiscard]] const CgroupTree& cgroups() const { return cgroups_; }

 private:
  struct Waiting {
    OwnerAsk ask;
    Instant until;
    std::uint64_t walk = 0;  // the latest one when it was asked
    std::uint64_t look = 0;
    std::optional<SocketFacts> socket;
    bool has_cgroup = false;  // known, or known to be unknown
    bool has_process = false;
    Owner owner;
  };
  using ProcessByInode = std::map<std::uint64_t, std::optional<ProcessFacts>>;

  /// Each of these returns whether it is done; else it says in a member below what must happen first.
  bool find_cgroup(Waiting& flow);
  bool find_container(Waiting& flow);
  bool find_process(Waiting& flow, const ProcessByInode& found);
  bool find_all(Waiting& flow, const ProcessByInode& found);
  void set_process(Owner& owner, const ProcessFacts& process);
  void do_what_is_missing();
  void begin(const OwnerAsk& ask);
  [[nodiscard]] bool is_open(std::uint64_t inode);

  SocketDiag sockets_;
  CgroupTree cgroups_;
  ContainerNames names_;
  ContainerAddresses addresses_;
  ProcessFinder processes_;
  ProcessTrees trees_;

  std::list<Waiting> waiting_;
  std::vector<OwnerAnswer> answers_;
  std::map<std::uint64_t, OwnerAsk> by_inode_;  // one that waits for this socket's process
  bool wants_walk_ = false;
  bool wants_look_ = false;
  std::set<std::string> wants_names_;
};

}  // namespace shaper
