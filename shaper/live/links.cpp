#include "shaper/live/links.h"

#include <net/if.h>
#include <netlink/cache.h>
#include <netlink/errno.h>
#include <netlink/netlink.h>
#include <netlink/route/link.h>
#include <netlink/route/rtnl.h>
#include <netlink/socket.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>

namespace shaper {
namespace {

constexpr int kAttempts = 3;  // a dump that a change interrupts is to be repeated

struct FreeCache {
  void operator()(nl_cache* cache) const { nl_cache_free(cache); }
};

[[noreturn]] void fail(const char* call, int error) {
  throw std::runtime_error(std::string(call) + ": " + nl_geterror(error));
}

/// Empties the socket. True if anything was in it, lost notifications included.
bool drain(int fd) {
  bool any = false;
  std::array<char, 16> start;  // what a notification says is not read, the rest of it may go
  while (true) {
    if (::recv(fd, start.data(), start.size(), MSG_DONTWAIT) >= 0 || errno == ENOBUFS) {
      any = true;
    } else if (errno != EINTR) {
      return any;
    }
  }
}

bool is_bridge(rtnl_link* link) {
  const char* const type = rtnl_link_get_type(link);
  return type != nullptr && std::string_view(type) == "bridge";
}

}  // namespace

void LinkWatch::Close::operator()(nl_sock* socket) const {
  nl_socket_free(socket);
}

LinkWatch::Socket LinkWatch::open() {
  Socket socket(nl_socket_alloc());
  if (!socket) throw std::runtime_error("nl_socket_alloc: out of memory");
  const int error = nl_connect(socket.get(), NETLINK_ROUTE);
  if (error < 0) fail("nl_connect(NETLINK_ROUTE)", error);
  return socket;
}

LinkWatch::LinkWatch() : notifications_(open()), questions_(open()) {
  // First the notifications, then the question: what changes in between is asked once more.
  int error = nl_socket_add_memberships(notifications_.get(), RTNLGRP_LINK, 0);
  if (error < 0) fail("nl_socket_add_memberships(RTNLGRP_LINK)", error);
  error = nl_socket_set_nonblocking(notifications_.get());
  if (error < 0) fail("nl_socket_set_nonblocking", error);
  error = read_links(links_);
  if (error < 0) fail("rtnl_link_alloc_cache", error);
}

int LinkWatch::fd() const {
  return nl_socket_get_fd(notifications_.get());
}

int LinkWatch::read_links(Links& links) {
  nl_cache* raw = nullptr;
  int error = 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    error = rtnl_link_alloc_cache(questions_.get(), AF_UNSPEC, &raw);
    if (error != -NLE_DUMP_INTR) break;
  }
  if (error < 0) return error;
  const std::unique_ptr<nl_cache, FreeCache> cache(raw);
  std::map<std::string, std::uint32_t> masters;
  for (nl_object* object = nl_cache_get_first(raw); object != nullptr; object = nl_cache_get_next(object)) {
    auto* const link = reinterpret_cast<rtnl_link*>(object);
    const char* const name = rtnl_link_get_name(link);
    if (name == nullptr) continue;
    LinkFacts facts;
    facts.index = static_cast<std::uint32_t>(rtnl_link_get_ifindex(link));
    facts.mtu = rtnl_link_get_mtu(link);
    facts.up = (rtnl_link_get_flags(link) & IFF_UP) != 0;
    facts.bridge = is_bridge(link);
    links.insert_or_assign(name, facts);
    if (const int master = rtnl_link_get_master(link); master > 0) masters[name] = static_cast<std::uint32_t>(master);
  }
  // A bond or a VRF has ports, too; they are no matter here.
  for (const auto& [port, index] : masters) {
    for (const auto& [name, facts] : links) {
      if (facts.bridge && facts.index == index) links[port].port_of = name;
    }
  }
  return 0;
}

std::vector<std::string> LinkWatch::receive() {
  std::vector<std::string> changed;
  if (drain(fd())) stale_ = true;
  if (!stale_) return changed;
  Links now;
  if (read_links(now) < 0) return changed;
  for (const auto& [name, facts] : now) {
    const auto before = links_.find(name);
    if (before == links_.end() || before->second != facts) changed.push_back(name);
  }
  for (const auto& [name, facts] : links_) {
    if (!now.contains(name)) changed.push_back(name);
  }
  std::sort(changed.begin(), changed.end());
  links_ = std::move(now);
  stale_ = false;
  return changed;
}

std::optional<LinkFacts> LinkWatch::find(std::string_view name) const {
  const auto found = links_.find(name);
  if (found == links_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::string> LinkWatch::name_of(std::uint32_t index) const {
  for (const auto& [name, facts] : links_) {
    if (facts.index == index) return name;
  }
  return std::nullopt;
}

}  // namespace shaper
