#include "shaper/live/containers.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "shaper/live/clock.h"
#include "shaper/live/folder.h"
#include "shaper/live/own_addresses.h"
#include "shaper/model/address_text.h"
#include "shaper/model/plain_text.h"

namespace shaper {
namespace {

constexpr std::size_t kIdLength = 64;
constexpr std::array<std::string_view, 5> kPrefixes{"libpod-", "docker-", "cri-containerd-", "crio-", ""};
constexpr std::string_view kScope = ".scope";

constexpr std::chrono::milliseconds kBetweenLooks{200};
constexpr std::chrono::seconds kLookHolds{5};  // an address may go to another container
constexpr std::size_t kLongestTable = 1 << 20;

std::string_view id_in(std::string_view component) {
  if (component.ends_with(kScope)) component.remove_suffix(kScope.size());
  for (const std::string_view prefix : kPrefixes) {
    if (!component.starts_with(prefix)) continue;
    const std::string_view id = component.substr(prefix.size());
    if (id.size() == kIdLength && id.find_first_not_of("0123456789abcdef") == std::string_view::npos) return id;
  }
  return {};
}

bool is_loopback_or_link_local(Family family, const Address& address) {
  if (family == Family::ipv4) return address[0] == 127 || (address[0] == 169 && address[1] == 254);
  return (address[0] == 0xfe && (address[1] & 0xc0) == 0x80) || address == parse_address("::1")->second;
}

void add(std::vector<Address>& addresses, const std::optional<std::pair<Family, Address>>& parsed) {
  if (parsed && !is_loopback_or_link_local(parsed->first, parsed->second)) addresses.push_back(parsed->second);
}

/// `fd000000000000000000000000000002` as `fd00:0000:…`.
std::string with_colons(std::string_view digits) {
  std::string text;
  for (std::size_t at = 0; at < digits.size(); at += 4) {
    if (at != 0) text += ':';
    text += digits.substr(at, 4);
  }
  return text;
}

std::string network_of(int folder) {
  std::array<char, 64> bytes;
  const ssize_t length = ::readlinkat(folder, "ns/net", bytes.data(), bytes.size());
  return length <= 0 ? "" : std::string(bytes.data(), static_cast<std::size_t>(length));
}

}  // namespace

std::string container_of(std::string_view cgroup) {
  while (!cgroup.empty()) {
    const std::size_t end = std::min(cgroup.find('/'), cgroup.size());
    if (const std::string_view id = id_in(cgroup.substr(0, end)); !id.empty()) return std::string(id);
    cgroup.remove_prefix(std::min(end + 1, cgroup.size()));
  }
  return "";
}

/// In fib_trie an address stands one line above "/32 host LOCAL", behind "|-- ".
std::vector<Address> local_addresses(std::string_view fib_trie, std::string_view if_inet6) {
  constexpr std::string_view kLeaf = "|-- ";
  std::vector<Address> addresses;
  std::string_view leaf;
  while (!fib_trie.empty()) {
    const std::string_view line = take_line(fib_trie);
    if (const std::size_t at = line.find(kLeaf); at != std::string_view::npos) leaf = line.substr(at + kLeaf.size());
    if (line.ends_with("/32 host LOCAL")) add(addresses, parse_address(leaf));
  }
  while (!if_inet6.empty()) {
    std::string_view line = take_line(if_inet6);
    add(addresses, parse_address(with_colons(take_word(line))));
  }
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());  // fib_trie has each twice
  return addresses;
}

bool ContainerAddresses::fresh() const {
  return monotonic_now() - looked_ < kLookHolds;
}

const std::string* ContainerAddresses::cgroup_at(const Address& address) const {
  const auto found = located_.find(address);
  if (found == located_.end() || !fresh()) return nullptr;
  const auto process = process_standing(open_process(found->second.process.pid));
  const bool runs = process && process->id == found->second.process && !process->ended;
  return runs ? &found->second.cgroup : nullptr;
}

bool ContainerAddresses::is_ours(const Address& address) const {
  return fresh() && ours_.contains(address);
}

/// One process of a container is enough: where it has several cgroups, of the first one that has any.
void ContainerAddresses::look() {
  const Instant start = monotonic_now();
  cgroups_.walk();
  ours_ = own_addresses();
  located_.clear();
  const std::string network = network_of(open_folder(AT_FDCWD, "/proc/self").get());
  std::set<std::string> done;
  for (const std::string& cgroup : cgroups_.paths()) {
    const std::string id = container_of(cgroup);
    if (id.empty() || done.contains(id)) continue;
    for (const std::uint32_t pid : cgroups_.processes(cgroup)) {
      const Fd folder = open_process(pid);
      const auto facts = process_standing(folder);
      if (!facts || facts->ended) continue;
      if (network_of(folder.get()) != network) locate(cgroup, folder, facts->id);
      done.insert(id);
      break;
    }
  }
  ++looks_;
  looked_ = monotonic_now();
  pace_.over(looked_, looked_ - start);
  next_look_ = std::max(start + kBetweenLooks, pace_.next());
}

void ContainerAddresses::locate(const std::string& cgroup, const Fd& folder, const ProcessId& process) {
  const std::string fib_trie = read_text(folder.get(), "net/fib_trie", kLongestTable);
  const std::string if_inet6 = read_text(folder.get(), "net/if_inet6", kLongestTable);
  for (const Address& address : local_addresses(fib_trie, if_inet6)) {
    located_.emplace(address, Located{cgroup, process});
  }
}

}  // namespace shaper
