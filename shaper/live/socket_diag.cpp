#include "shaper/live/socket_diag.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <memory>

#include "shaper/live/clock.h"
#include "shaper/live/netlink_bytes.h"
#include "shaper/live/own_addresses.h"
#include "shaper/live/system_call.h"

namespace shaper {
namespace {

/// The kernel's state of a connection whose handshake is not over (include/net/tcp_states.h).
constexpr std::uint8_t kNewSynReceived = 12;

constexpr std::size_t kMostInterfaces = 32;
constexpr std::chrono::seconds kInterfacesHold{1};

struct Question {
  nlmsghdr header{};
  inet_diag_req_v2 request{};
};

void put(std::uint32_t (&words)[4], const Address& address) {
  std::memcpy(words, address.data(), address.size());
}

/// UDP takes the two sides the other way round (net/ipv4/udp_diag.c).
inet_diag_sockid socket_of(const OwnerAsk& flow, std::uint32_t interface) {
  const bool swapped = flow.protocol != kTcp;
  inet_diag_sockid id{};
  put(id.idiag_src, swapped ? flow.remote : flow.local);
  put(id.idiag_dst, swapped ? flow.local : flow.remote);
  id.idiag_sport = htons(swapped ? flow.remote_port : flow.local_port);
  id.idiag_dport = htons(swapped ? flow.local_port : flow.remote_port);
  id.idiag_if = interface;
  id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return id;
}

bool has_sockets(const OwnerAsk& flow) {
  return flow.family != Family::other && flow.local_port != 0 &&
         (flow.protocol == kTcp || flow.protocol == kUdp || flow.protocol == kUdpLite);
}

/// No process can have closed it: it waits in the queue of a listener.
bool waits_for_accept(std::uint8_t state) {
  return state == TCP_SYN_RECV || state == kNewSynReceived || state == TCP_ESTABLISHED || state == TCP_CLOSE_WAIT;
}

}  // namespace

struct SocketDiag::Found {
  SocketFacts facts;
  std::uint8_t state = 0;
};

SocketDiag::SocketDiag()
    : socket_(
          require(::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG), "socket(NETLINK_SOCK_DIAG)")) {
  // The kernel answers before send() returns; this only keeps a kernel that does not from stopping us.
  const timeval patience{0, 100'000};
  require(::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), "setsockopt");
}

std::optional<SocketFacts> SocketDiag::find(const OwnerAsk& flow) {
  if (!has_sockets(flow)) return std::nullopt;
  auto found = look_up(flow);
  if (!found) return std::nullopt;
  SocketFacts facts = found->facts;
  if (facts.inode == 0 && flow.protocol == kTcp && waits_for_accept(found->state)) {
    OwnerAsk listener = flow;
    listener.remote = {};
    listener.remote_port = 0;
    if (const auto its = look_up(listener); its && its->state == TCP_LISTEN) return its->facts;
  }
  // Such a socket says 0, root, where it has lost who made it.
  if (facts.inode == 0 && facts.user == 0U) facts.user.reset();
  return facts;
}

/// A socket that is bound to an interface is found only by that. Those of a forwarded flow are not looked for.
std::optional<SocketDiag::Found> SocketDiag::look_up(const OwnerAsk& flow) {
  if (auto found = look_up(flow, 0)) return found;
  read_interfaces();
  if (!addresses_.contains(flow.local)) return std::nullopt;
  for (const std::uint32_t interface : interfaces_) {
    if (auto found = look_up(flow, interface)) return found;
  }
  return std::nullopt;
}

std::optional<SocketDiag::Found> SocketDiag::look_up(const OwnerAsk& flow, std::uint32_t interface) {
  Question question;
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  question.header.nlmsg_seq = ++sequence_;
  question.request.sdiag_family = flow.family == Family::ipv4 ? AF_INET : AF_INET6;
  question.request.sdiag_protocol = flow.protocol;
  question.request.idiag_states = ~0U;
  question.request.id = socket_of(flow, interface);
  if (::send(socket_.get(), &question, sizeof question, 0) < 0) return std::nullopt;
  return receive();
}

/// The kernel puts the cgroup behind every whole socket, asked or not.
std::optional<SocketDiag::Found> SocketDiag::receive() {
  alignas(nlmsghdr) std::array<std::uint8_t, 8192> bytes;
  while (true) {
    const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < static_cast<ssize_t>(sizeof(nlmsghdr))) return std::nullopt;
    const netlink::Bytes datagram(bytes.data(), static_cast<std::size_t>(count));
    if (netlink::read<nlmsghdr>(datagram).nlmsg_seq != sequence_) continue;  // too late an answer
    std::optional<Found> found;
    netlink::for_each_message(datagram, [&](std::uint16_t type, netlink::Bytes body) {
      if (type != SOCK_DIAG_BY_FAMILY || body.size() < sizeof(inet_diag_msg)) return true;
      const auto message = netlink::read<inet_diag_msg>(body);
      found = Found{{message.idiag_inode, message.idiag_uid, 0}, message.idiag_state};
      netlink::for_each_attribute(netlink::behind(body, sizeof message),
                                  [&](unsigned attribute, netlink::Bytes value, std::size_t) {
                                    if (attribute != INET_DIAG_CGROUP_ID || value.size() < sizeof(std::uint64_t))
                                      return;
                                    found->facts.cgroup = netlink::read<std::uint64_t>(value);
                                  });
      return true;
    });
    return found;
  }
}

void SocketDiag::read_interfaces() {
  const Instant now = monotonic_now();
  if (interfaces_at_ && now - *interfaces_at_ < kInterfacesHold) return;
  interfaces_at_ = now;
  addresses_ = own_addresses();
  interfaces_.clear();
  const std::unique_ptr<struct if_nameindex[], void (*)(struct if_nameindex*)> all(::if_nameindex(), if_freenameindex);
  for (const struct if_nameindex* each = all.get(); each != nullptr && each->if_index != 0; ++each) {
    if (interfaces_.size() < kMostInterfaces) interfaces_.push_back(each->if_index);
  }
}

}  // namespace shaper
