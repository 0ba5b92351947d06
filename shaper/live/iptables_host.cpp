#include "shaper/live/iptables_host.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

namespace shaper {

std::string_view family_name(Family family) {
  return family == Family::ipv6 ? "IPv6" : "IPv4";
}

std::string program(Family family, Backend backend, std::string_view verb) {
  const std::string_view stem = family == Family::ipv6 ? "ip6tables" : "iptables";
  return backend == Backend::host ? fmt::format("{}-{}", stem, verb)
                                  : fmt::format("{}-{}-{}", stem, name_of(backend), verb);
}

Backend other_than(Backend backend) {
  return backend == Backend::nft ? Backend::legacy : Backend::nft;
}

LegacyTable legacy_table(Family family) {
  const char* list = family == Family::ipv6 ? "/proc/net/ip6_tables_names" : "/proc/net/ip_tables_names";
  if (access(list, F_OK) != 0) return LegacyTable::missing;
  std::ifstream names{list};
  if (!names) return LegacyTable::unknown;
  for (std::string name; std::getline(names, name);) {
    if (name == "mangle") return LegacyTable::there;
  }
  return LegacyTable::missing;
}

std::optional<std::string> reason_without_ipv6(Backend backend) {
  if (access("/proc/sys/net/ipv6", F_OK) != 0) return "this kernel runs without it";
  const std::string name = program(Family::ipv6, backend, "restore");
  if (!find_program(name)) return fmt::format("there is no {}", name);
  return std::nullopt;
}

std::string without_ipv6(std::string_view reason) {
  return fmt::format("IPv6 is left out: {}", reason);
}

std::vector<Family> families(Backend backend) {
  return reason_without_ipv6(backend) ? std::vector{Family::ipv4} : std::vector{Family::ipv4, Family::ipv6};
}

bool means_no_table(std::string_view error) {
  constexpr std::array<std::string_view, 4> kWords{"do you need to insmod", "Table does not exist",
                                                   "Address family not supported", "Protocol not supported"};
  return std::ranges::any_of(kWords, [&](std::string_view words) { return error.find(words) != error.npos; });
}

}  // namespace shaper
