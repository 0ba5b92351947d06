#include "shaper/live/own_addresses.h"

#include <ifaddrs.h>
#include <netinet/in.h>

#include <cstring>
#include <memory>

namespace shaper {

std::set<Address> own_addresses() {
  std::set<Address> addresses;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return addresses;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(first, ::freeifaddrs);
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    Address address{};
    if (each->ifa_addr->sa_family == AF_INET) {
      const auto& ipv4 = *reinterpret_cast<const sockaddr_in*>(each->ifa_addr);
      std::memcpy(address.data(), &ipv4.sin_addr, sizeof ipv4.sin_addr);
    } else if (each->ifa_addr->sa_family == AF_INET6) {
      const auto& ipv6 = *reinterpret_cast<const sockaddr_in6*>(each->ifa_addr);
      std::memcpy(address.data(), &ipv6.sin6_addr, sizeof ipv6.sin6_addr);
    } else {
      continue;
    }
    addresses.insert(address);
  }
  return addresses;
}

}  // namespace shaper
