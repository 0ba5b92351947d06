#include "shaper/live/descriptor_scan.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "shaper/live/clock.h"
#include "shaper/live/folder.h"
#include "shaper/model/plain_text.h"

namespace shaper {

/// The link reads "socket:[INODE]".
std::uint64_t socket_inode(int folder, const char* path) {
  constexpr std::string_view kStart = "socket:[";
  std::array<char, 64> bytes;
  const ssize_t length = ::readlinkat(folder, path, bytes.data(), bytes.size());
  if (length <= 0) return 0;
  std::string_view link(bytes.data(), static_cast<std::size_t>(length));
  if (!link.starts_with(kStart) || !link.ends_with(']')) return 0;
  link.remove_prefix(kStart.size());
  link.remove_suffix(1);
  return parse_number<std::uint64_t>(link).value_or(0);
}

DescriptorScan::DescriptorScan(std::vector<std::uint32_t> processes, std::set<std::uint64_t> inodes)
    : processes_(std::move(processes)), inodes_(std::move(inodes)) {}

bool DescriptorScan::step(Instant until) {
  const Instant start = monotonic_now();
  Instant now = start;
  while (next_ < processes_.size() && now < until) {
    look_into(processes_[next_++]);
    now = monotonic_now();
  }
  cost_ += now - start;
  return next_ == processes_.size();
}

void DescriptorScan::look_into(std::uint32_t pid) {
  Fd descriptors = open_folder(AT_FDCWD, fmt::format("/proc/{}/fd", pid).c_str());
  const int at = descriptors.get();
  std::optional<ProcessFacts> facts;  // read when a socket is found
  for_each_entry(std::move(descriptors), [&](const dirent& entry) {
    const std::uint64_t inode = socket_inode(at, entry.d_name);
    if (inode == 0 || !inodes_.contains(inode)) return true;
    if (!facts) facts = process_facts(open_folder(at, ".."));
    if (!facts) return false;  // it has just ended
    const auto before = found_.find(inode);
    if (before == found_.end() || facts->id < before->second.process.id) {
      found_.insert_or_assign(inode, SocketHolder{*facts, parse_number<int>(entry.d_name).value_or(-1)});
    }
    return true;
  });
}

}  // namespace shaper
