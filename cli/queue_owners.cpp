#include "cli/queue_owners.h"

#include <fmt/format.h>
#include <linux/netlink.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "cli/processes.h"
#include "shaper/live/nfqueue.h"
#include "shaper/model/plain_text.h"
#include "shaper/model/report.h"

namespace shaper::cli {
namespace {

/// Lines of /proc/net/netlink: `sk protocol port groups rmem wmem dump locks drops inode`.
std::optional<std::string> inode_of_port(std::uint32_t port) {
  constexpr std::size_t kProtocol = 1;
  constexpr std::size_t kPort = 2;
  constexpr std::size_t kInode = 9;
  std::ifstream file{"/proc/net/netlink"};
  for (std::string line; std::getline(file, line);) {
    std::istringstream words{line};
    const std::vector<std::string> field{std::istream_iterator<std::string>(words), {}};
    if (field.size() > kInode && field[kProtocol] == std::to_string(NETLINK_NETFILTER) &&
        field[kPort] == std::to_string(port)) {
      return field[kInode];
    }
  }
  return std::nullopt;
}

/// Mostly the port is the number of the process that has opened the socket, so that one is asked first.
std::optional<pid_t> process_at(std::uint32_t port) {
  const auto inode = inode_of_port(port);
  if (!inode) return std::nullopt;
  const auto has_it = [&inode](pid_t process) {
    const std::vector<std::string> sockets = sockets_of(process);
    return std::ranges::find(sockets, *inode) != sockets.end();
  };
  if (const auto likely = static_cast<pid_t>(port); has_it(likely)) return likely;
  const std::vector<pid_t> processes = all_processes();
  const auto found = std::ranges::find_if(processes, has_it);
  return found == processes.end() ? std::nullopt : std::optional{*found};
}

/// "process 812 "accept_all", port id 812".
std::string owner_at(std::uint32_t port) {
  const auto process = process_at(port);
  if (!process) return fmt::format("port id {}", port);
  std::string name = file_of(*process, "comm");
  if (name.ends_with('\n')) name.pop_back();
  return fmt::format("process {} {}, port id {}", *process, json_string(name), port);
}

std::vector<KernelQueueCounters> kernel_queues() {
  std::ifstream file{"/proc/net/netfilter/nfnetlink_queue"};
  return parse_queue_table(std::string{std::istreambuf_iterator<char>(file), {}});
}

}  // namespace

std::vector<std::string> queues_of_others(std::uint16_t last, std::optional<std::uint16_t> own) {
  std::map<std::uint32_t, std::vector<std::uint16_t>> by_port;
  for (const KernelQueueCounters& queue : kernel_queues()) by_port[queue.port].push_back(queue.number);
  std::vector<std::string> lines;
  for (auto& [port, numbers] : by_port) {
    if (own && std::ranges::find(numbers, *own) != numbers.end()) continue;
    std::erase_if(numbers, [last](std::uint16_t number) { return number < kFirstQueue || number > last; });
    if (numbers.empty()) continue;
    const std::string which = numbers.size() == 1 ? fmt::format("queue {} is", numbers.front())
                                                  : fmt::format("{} queues from {} to {} are", numbers.size(),
                                                                std::ranges::min(numbers), std::ranges::max(numbers));
    lines.push_back(fmt::format("{} left to another program: {}", which, owner_at(port)));
  }
  return lines;
}

}  // namespace shaper::cli
