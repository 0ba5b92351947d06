#include "shaper/live/owner_abilities.h"

#include <cap-ng.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cctype>
#include <optional>
#include <system_error>

#include "shaper/live/cgroup_tree.h"
#include "shaper/live/fd.h"
#include "shaper/live/socket_diag.h"
#include "shaper/live/system_call.h"

namespace shaper {
namespace {

constexpr const char* kAll = "cgroup, unit, process, pid, container";
constexpr const char* kByCgroup = "cgroup, unit, container";
constexpr const char* kByProcess = "process, pid";

/// What the kernel tells about a socket of ours; nothing: it finds none.
std::optional<SocketFacts> facts_of_own_socket(int type, std::uint8_t protocol) {
  const Fd socket(require(::socket(AF_INET, type | SOCK_CLOEXEC, 0), "socket"));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  require(::bind(socket.get(), plain, size), "bind");
  if (type == SOCK_STREAM) require(::listen(socket.get(), 1), "listen");
  require(::getsockname(socket.get(), plain, &size), "getsockname");
  OwnerAsk ask;
  ask.family = Family::ipv4;
  ask.protocol = protocol;
  ask.local = {127, 0, 0, 1};  // any will do
  ask.local_port = ntohs(address.sin_port);
  return SocketDiag().find(ask);
}

void try_sockets(std::vector<std::string>& lacks) {
  bool cgroups = true;
  try {
    const auto tcp = facts_of_own_socket(SOCK_STREAM, kTcp);
    const auto udp = facts_of_own_socket(SOCK_DGRAM, kUdp);
    if (!tcp) lacks.push_back(fmt::format("{}: this kernel does not tell about TCP sockets (CONFIG_INET_DIAG)", kAll));
    if (!udp)
      lacks.push_back(fmt::format("{}: this kernel does not tell about UDP sockets (CONFIG_INET_UDP_DIAG)", kAll));
    for (const auto& facts : {tcp, udp}) cgroups &= !facts || facts->cgroup != 0;
  } catch (const std::system_error& error) {
    lacks.push_back(fmt::format("{}: the kernel cannot be asked about sockets: {}", kAll, error.what()));
  }
  if (!cgroups) {
    lacks.push_back(
        fmt::format("{}: this kernel does not tell the cgroups of sockets (Linux 5.8 or later does)", kByCgroup));
  }
}

}  // namespace

std::vector<std::string> kernel_owner_limits() {
  std::vector<std::string> lacks;
  try_sockets(lacks);
  if (!CgroupTree().mounted()) lacks.push_back(fmt::format("{}: no cgroup2 is mounted", kByCgroup));
  return lacks;
}

std::vector<std::string> owner_limits() {
  std::vector<std::string> lacks = kernel_owner_limits();
  if (capng_get_caps_process() != 0) return lacks;
  for (const unsigned capability : std::array<unsigned, 2>{CAP_SYS_PTRACE, CAP_DAC_OVERRIDE}) {
    if (capng_have_capability(CAPNG_EFFECTIVE, capability) != 0) continue;
    std::string name = capng_capability_to_name(capability);
    for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    lacks.push_back(fmt::format("{}: CAP_{} is missing", kByProcess, name));
  }
  return lacks;
}

}  // namespace shaper
