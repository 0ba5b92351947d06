#include "shaper/core/guard.h"

#include <algorithm>
#include <utility>

namespace shaper {
namespace {

ClassPolicy guard_of_link(const Policy& policy, LinkIndex link) {
  ClassPolicy guard;
  guard.name = kGuardClass;
  guard.link = link;
  guard.is_guard = true;
  guard.rate = guard.ceil = kGuardRate;
  guard.burst = kGuardBurst;
  guard.priority = 0;
  guard.fair = Fair::flow;
  // The rules that set CE are installed only where a class of the policy may ask for them.
  guard.ecn = std::any_of(policy.classes.begin(), policy.classes.end(), [&](const ClassPolicy& cls) {
    return cls.link == link && cls.aqm && cls.ecn && policy.smallest_rate(cls);
  });
  return guard;
}

}  // namespace

void set_guard_ports(Policy& policy, std::vector<std::uint16_t> ports) {
  std::erase(ports, 0);  // that of a packet without ports
  std::sort(ports.begin(), ports.end());
  ports.erase(std::unique(ports.begin(), ports.end()), ports.end());
  policy.guard_ports = std::move(ports);

  std::erase_if(policy.classes, [](const ClassPolicy& cls) { return cls.is_guard; });
  if (policy.guard_ports.empty()) return;
  for (std::size_t link = 0; link < policy.links.size(); ++link) {
    if (policy.links[link].guard) policy.classes.push_back(guard_of_link(policy, static_cast<LinkIndex>(link)));
  }
}

}  // namespace shaper
