// The socket that a flow belongs to, by an exact look-up in the kernel (sock_diag(7), net/ipv4/inet_diag.c and
// udp_diag.c): a few microseconds, however many sockets there are. Sockets of this network namespace.
//
// The kernel's look-up goes by the same rules as its delivery of packets, so it also finds an unconnected UDP socket,
// a listener, and an IPv6 socket that serves IPv4.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "shaper/core/units.h"
#include "shaper/live/fd.h"
#include "shaper/live/owner_messages.h"

namespace shaper {

struct SocketFacts {
  std::uint64_t inode = 0;            ///< of the socket, as /proc/PID/fd names it; 0: no process holds it
  std::optional<std::uint32_t> user;  ///< who made it; nothing: the kernel does not know it any more
  std::uint64_t cgroup = 0;           ///< id of the cgroup that it was made in; 0: the kernel does not say

  friend bool operator==(const SocketFacts&, const SocketFacts&) = default;
};

class SocketDiag {
 public:
  /// Throws std::system_error.
  SocketDiag();

  /// Nothing: there is no such socket. A connection that was not accepted yet has the inode of its listener.
  [[nodiscard]] std::optional<SocketFacts> find(const OwnerAsk& flow);

 private:
  struct Found;
  [[nodiscard]] std::optional<Found> look_up(const OwnerAsk& flow);
  [[nodiscard]] std::optional<Found> look_up(const OwnerAsk& flow, std::uint32_t interface);
  [[nodiscard]] std::optional<Found> receive();
  void read_interfaces();

  Fd socket_;
  std::uint32_t sequence_ = 0;
  std::set<Address> addresses_;            // of this host
  std::vector<std::uint32_t> interfaces_;  // that a socket may be bound to
  std::optional<Instant> interfaces_at_;
};

}  // namespace shaper
