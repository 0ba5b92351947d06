#include "shaper/live/flowtables.h"

// In this order: see nfqueue_wire.cpp.
// clang-format off
#include <netinet/in.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
// clang-format on
#include <sys/socket.h>

#include <array>

#include "shaper/live/fd.h"
#include "shaper/live/netlink_bytes.h"

namespace shaper {
namespace {

using netlink::Bytes;

constexpr std::uint16_t kGet = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETFLOWTABLE;
constexpr std::uint16_t kNew = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWFLOWTABLE;

/// A name with the zero that ends it, if that is there.
std::string name_in(Bytes value) {
  return {value.begin(), std::find(value.begin(), value.end(), 0)};
}

Flowtable read_flowtable(Bytes attributes) {
  Flowtable flowtable;
  netlink::for_each_attribute(attributes, [&](int type, Bytes value, std::size_t) {
    if (type == NFTA_FLOWTABLE_TABLE) flowtable.table = name_in(value);
    if (type == NFTA_FLOWTABLE_NAME) flowtable.name = name_in(value);
  });
  return flowtable;
}

bool ask_for_all(int fd) {
  struct {
    nlmsghdr header{};
    nfgenmsg body{};
  } message;
  message.header.nlmsg_len = sizeof message;
  message.header.nlmsg_type = kGet;
  message.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  message.body.nfgen_family = NFPROTO_UNSPEC;
  message.body.version = NFNETLINK_V0;
  return ::send(fd, &message, sizeof message, 0) == static_cast<ssize_t>(sizeof message);
}

}  // namespace

bool parse_flowtables(Bytes datagram, std::vector<Flowtable>& flowtables) {
  return netlink::for_each_message(datagram, [&](std::uint16_t type, Bytes body) {
    if (type == NLMSG_DONE || type == NLMSG_ERROR) return false;
    if (type == kNew && body.size() >= sizeof(nfgenmsg)) {
      flowtables.push_back(read_flowtable(body.subspan(sizeof(nfgenmsg))));
    }
    return true;
  });
}

std::vector<Flowtable> read_flowtables() {
  std::vector<Flowtable> flowtables;
  const Fd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER));
  if (!fd || !ask_for_all(fd.get())) return flowtables;
  std::array<std::uint8_t, 32'768> bytes;  // the kernel fills no more in one go
  bool more = true;
  while (more) {
    // The kernel has answered inside send(), and goes on inside recv(): there is nothing to wait for.
    const ssize_t size = ::recv(fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size <= 0) break;
    more = parse_flowtables(std::span(bytes).first(static_cast<std::size_t>(size)), flowtables);
  }
  return flowtables;
}

}  // namespace shaper
