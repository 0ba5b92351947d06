#include "shaper/live/process_finder.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "shaper/live/clock.h"

namespace shaper {
namespace {

constexpr std::size_t kMostHolders = 8192;
constexpr std::size_t kMostLately = 8;

}  // namespace

ProcessFinder::ProcessFinder(const CgroupTree& cgroups, std::function<bool(std::uint64_t)> is_open)
    : cgroups_(cgroups), is_open_(std::move(is_open)) {}

std::optional<ProcessFacts> ProcessFinder::known(std::uint64_t inode) {
  const auto holder = holders_.find(inode);
  if (holder == holders_.end()) return std::nullopt;
  const Fd folder = open_process(holder->second.process.pid);
  const std::string path = fmt::format("fd/{}", holder->second.descriptor);
  auto facts = process_facts(folder);
  if (facts && facts->id == holder->second.process && socket_inode(folder.get(), path.c_str()) == inode) return facts;
  holders_.erase(holder);
  return std::nullopt;
}

void ProcessFinder::want(std::uint64_t inode, const std::string& cgroup) {
  for (const Place& place : places_) {
    if (place.wanted.contains(inode)) return;
  }
  places_[kLately].wanted.emplace(inode, cgroup);
}

std::vector<ProcessFinder::Found> ProcessFinder::search(Nanos budget) {
  std::vector<Found> found;
  const Instant until = monotonic_now() + budget;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    Place& place = places_[i];
    if (!place.scan && !place.wanted.empty() && place.pace.ready(monotonic_now())) begin(i, found);
    if (place.scan && place.scan->step(until)) finish(i, found);
  }
  return found;
}

void ProcessFinder::begin(std::size_t place, std::vector<Found>& found) {
  auto& wanted = places_[place].wanted;
  if (place == kEverywhere) {
    std::erase_if(wanted, [&](const auto& entry) {
      if (is_open_(entry.first)) return false;
      found.push_back({entry.first, std::nullopt});
      return true;
    });
  }
  if (wanted.empty()) return;
  std::set<std::uint64_t> inodes;
  for (const auto& [inode, cgroup] : wanted) inodes.insert(inodes.end(), inode);
  places_[place].scan.emplace(processes_of(place), std::move(inodes));
  ++searches_;
}

std::vector<std::uint32_t> ProcessFinder::processes_of(std::size_t place) const {
  std::vector<std::uint32_t> processes;
  if (place == kLately) {
    processes.assign(lately_.begin(), lately_.end());
  } else if (place == kCgroup) {
    std::set<std::string> cgroups;
    for (const auto& [inode, cgroup] : places_[place].wanted) cgroups.insert(cgroup);
    for (const std::string& cgroup : cgroups) {
      if (cgroup.empty() || cgroup == "/") continue;  // the root's processes are nearly all, or the kernel's own
      const auto its = cgroups_.processes(cgroup);
      processes.insert(processes.end(), its.begin(), its.end());
    }
  } else {
    for_each_process([&](std::uint32_t pid) { processes.push_back(pid); });
  }
  // Who has just started may end soon; the numbers say mostly who that is.
  if (place != kLately) std::sort(processes.begin(), processes.end(), std::greater<>());
  return processes;
}

/// What came meanwhile is for the next search.
void ProcessFinder::finish(std::size_t place, std::vector<Found>& found) {
  Place& here = places_[place];
  for (const std::uint64_t inode : here.scan->inodes()) {
    auto wanted = here.wanted.extract(inode);
    const auto holder = here.scan->found().find(inode);
    if (holder != here.scan->found().end()) {
      remember(inode, holder->second);
      found.push_back({inode, holder->second.process});
    } else if (place == kEverywhere) {
      found.push_back({inode, std::nullopt});
    } else {
      places_[place + 1].wanted.insert(std::move(wanted));
    }
  }
  here.pace.over(monotonic_now(), here.scan->cost());
  here.scan.reset();
}

void ProcessFinder::remember(std::uint64_t inode, const SocketHolder& holder) {
  const std::uint32_t pid = holder.process.id.pid;
  if (holders_.insert_or_assign(inode, Holder{holder.process.id, holder.descriptor}).second) order_.push_back(inode);
  while (order_.size() > kMostHolders) {
    holders_.erase(order_.front());
    order_.pop_front();
  }
  std::erase(lately_, pid);
  lately_.push_front(pid);
  if (lately_.size() > kMostLately) lately_.pop_back();
}

std::optional<Instant> ProcessFinder::next() const {
  std::optional<Instant> next;
  for (const Place& place : places_) {
    if (place.wanted.empty()) continue;
    const Instant at = place.scan ? Instant{} : place.pace.next();
    next = next ? std::min(*next, at) : at;
  }
  return next;
}

}  // namespace shaper
