#include "shaper/live/unseen_traffic.h"

#include <fmt/format.h>

#include <fstream>
#include <optional>

#include "shaper/live/flowtables.h"
#include "shaper/model/report.h"

namespace shaper {
namespace {

/// Bridged frames meet iptables only where br_netfilter sends them there, for each family.
std::optional<std::string> hidden_by_bridge() {
  for (const char* const name : {"bridge-nf-call-iptables", "bridge-nf-call-ip6tables"}) {
    std::ifstream setting(std::string("/proc/sys/net/bridge/") + name);
    if (!setting) return "the module br_netfilter is not loaded";
    int value = 0;
    if (setting >> value && value == 0) return fmt::format("net.bridge.{} is 0", name);
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> unseen_traffic(const Policy& policy, const LinkWatch& links) {
  std::vector<std::string> lines;
  for (const LinkPolicy& link : policy.links) {
    const auto facts = links.find(link.interface);
    if (!facts) continue;
    if (!facts->port_of.empty()) {
      lines.push_back(
          fmt::format("link {}: {} is a port of the bridge {}: iptables knows its packets by the bridge's "
                      "name only, so none is shaped; name {} as the interface",
                      link.name, link.interface, facts->port_of, facts->port_of));
    }
    const auto hidden = facts->bridge ? hidden_by_bridge() : std::nullopt;
    if (hidden) {
      lines.push_back(fmt::format("link {}: {} is a bridge and {}: what it passes from port to port is not shaped",
                                  link.name, link.interface, *hidden));
    }
  }
  for (const Flowtable& flowtable : read_flowtables()) {
    // nft bounds neither name by characters that are safe on a terminal.
    lines.push_back(
        fmt::format("the flowtable {} of the nft table {} takes forwarded flows past the rules: they are "
                    "not shaped",
                    json_string(flowtable.name), json_string(flowtable.table)));
  }
  return lines;
}

}  // namespace shaper
