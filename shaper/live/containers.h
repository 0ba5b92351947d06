// Containers of podman, docker and the engines of Kubernetes: which one a cgroup belongs to, and which one has an
// address on a bridge, where its packets are forwarded and have no socket here.
//
// The id stands in the cgroup's path. Who may make cgroups may call them like those of a container.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "shaper/core/packet.h"
#include "shaper/live/cgroup_tree.h"
#include "shaper/live/process_facts.h"

namespace shaper {

/// The id in a cgroup's path (`libpod-ID.scope`, `libpod-ID`, `docker-ID.scope`, `cri-containerd-ID.scope`,
/// `crio-ID.scope`, `ID`), the outermost one; empty: it is of no container.
[[nodiscard]] std::string container_of(std::string_view cgroup);

/// The addresses of a network namespace, but loopback and link-local ones, from the texts of fib_trie and if_inet6 in
/// /proc/PID/net.
[[nodiscard]] std::vector<Address> local_addresses(std::string_view fib_trie, std::string_view if_inet6);

/// Which container has which address: those in a network namespace other than ours.
class ContainerAddresses {
 public:
  explicit ContainerAddresses(CgroupTree& cgroups) : cgroups_(cgroups) {}

  /// The cgroup of the container that has this address, by a look that is not long past, if it still runs; nothing:
  /// none has, or look() must find out.
  [[nodiscard]] const std::string* cgroup_at(const Address& address) const;

  /// Whether this host had it at that look.
  [[nodiscard]] bool is_ours(const Address& address) const;

  /// Reads the addresses of all containers, and ours.
  void look();
  /// When to look again: 0.2 s after the latest look, or later where that takes more than a quarter of one processor.
  [[nodiscard]] Instant next_look() const { return next_look_; }
  [[nodiscard]] std::uint64_t looks() const { return looks_; }

 private:
  struct Located {
    std::string cgroup;
    ProcessId process;  // one in it
  };

  [[nodiscard]] bool fresh() const;
  void locate(const std::string& cgroup, const Fd& folder, const ProcessId& process);

  CgroupTree& cgroups_;
  std::map<Address, Located> located_;
  std::set<Address> ours_;
  std::uint64_t looks_ = 0;
  Instant looked_{};
  Instant next_look_{};
  ScanPace pace_;
};

}  // namespace shaper
