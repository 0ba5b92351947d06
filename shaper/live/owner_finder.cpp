#include "shaper/live/owner_finder.h"

#include <algorithm>
#include <utility>

#include "shaper/live/clock.h"

namespace shaper {
namespace {

constexpr std::chrono::milliseconds kPatience{700};
constexpr std::chrono::milliseconds kStep{2};

}  // namespace

OwnerFinder::OwnerFinder(ContainerNames::Sources names)
    : names_(std::move(names)),
      addresses_(cgroups_),
      processes_(cgroups_, [this](std::uint64_t inode) { return is_open(inode); }) {}

void OwnerFinder::ask(std::span<const OwnerAsk> asks) {
  for (const OwnerAsk& each : asks) begin(each);
}

void OwnerFinder::begin(const OwnerAsk& ask) {
  Waiting flow;
  flow.ask = ask;
  flow.until = monotonic_now() + kPatience;
  flow.walk = cgroups_.walks();
  flow.look = addresses_.looks();
  flow.socket = sockets_.find(ask);
  if (flow.socket) flow.owner.user = flow.socket->user;
  if (find_all(flow, {}) || waiting_.size() >= kMostWaiting) {
    answers_.push_back({ask.id, std::move(flow.owner)});
  } else {
    waiting_.push_back(std::move(flow));
  }
}

bool OwnerFinder::find_all(Waiting& flow, const ProcessByInode& found) {
  if (!find_cgroup(flow)) return false;  // a process is looked for there
  const bool container = find_container(flow);
  return find_process(flow, found) && container;
}

bool OwnerFinder::find_cgroup(Waiting& flow) {
  if (flow.has_cgroup) return true;
  if (flow.socket) {
    const std::string* path = flow.socket->cgroup == 0 ? nullptr : cgroups_.path(flow.socket->cgroup);
    if (path != nullptr) flow.owner.cgroup = *path;
    flow.has_cgroup = path != nullptr || flow.socket->cgroup == 0 || cgroups_.walks() != flow.walk;
    wants_walk_ |= !flow.has_cgroup;
  } else {
    const std::string* path = addresses_.cgroup_at(flow.ask.local);
    if (path != nullptr) flow.owner.cgroup = *path;
    flow.has_cgroup = path != nullptr || addresses_.looks() != flow.look || addresses_.is_ours(flow.ask.local);
    wants_look_ |= !flow.has_cgroup;
  }
  if (!cgroups_.mounted()) flow.has_cgroup = true;
  if (flow.has_cgroup) flow.owner.container = container_of(flow.owner.cgroup);
  return flow.has_cgroup;
}

bool OwnerFinder::find_container(Waiting& flow) {
  Owner& owner = flow.owner;
  if (owner.container.empty() || !owner.container_name.empty()) return true;
  const auto name = names_.find(owner.container);
  if (name) owner.container_name = *name;
  if (!name) wants_names_.insert(owner.container);
  return name.has_value();
}

bool OwnerFinder::find_process(Waiting& flow, const ProcessByInode& found) {
  if (flow.has_process || !flow.socket || flow.socket->inode == 0) return true;
  const std::uint64_t inode = flow.socket->inode;
  if (const auto result = found.find(inode); result != found.end()) {
    if (result->second) set_process(flow.owner, *result->second);
    flow.has_process = true;
  } else if (!by_inode_.contains(inode)) {
    const auto process = processes_.known(inode);
    if (process) set_process(flow.owner, *process);
    flow.has_process = process.has_value();
    if (!process) processes_.want(inode, flow.owner.cgroup);
    if (!process) by_inode_.emplace(inode, flow.ask);
  }
  return flow.has_process;
}

void OwnerFinder::set_process(Owner& owner, const ProcessFacts& process) {
  owner.process = process.name;
  owner.pid = process.id.pid;
  owner.started = process.id.started;
  owner.lineage = trees_.lineage(process);
}

/// Whether a process still holds the flow's socket. It may be another one by now: that of an accepted connection.
bool OwnerFinder::is_open(std::uint64_t inode) {
  const auto flow = by_inode_.find(inode);
  if (flow == by_inode_.end()) return false;
  const auto socket = sockets_.find(flow->second);
  return socket && socket->inode != 0;
}

void OwnerFinder::do_what_is_missing() {
  const Instant now = monotonic_now();
  if (wants_look_ && now >= addresses_.next_look()) {
    addresses_.look();
  } else if (wants_walk_ && cgroups_.pace().ready(now)) {
    cgroups_.walk();
  }
  if (!wants_names_.empty() && names_.pace().ready(now)) names_.learn(wants_names_);
}

std::vector<OwnerAnswer> OwnerFinder::work() {
  do_what_is_missing();
  ProcessByInode found;
  for (auto& [inode, process] : processes_.search(kStep)) {
    found.emplace(inode, std::move(process));
    by_inode_.erase(inode);
  }
  wants_look_ = wants_walk_ = false;
  wants_names_.clear();
  const Instant now = monotonic_now();
  std::erase_if(waiting_, [&](Waiting& flow) {
    if (!find_all(flow, found) && now < flow.until) return false;
    answers_.push_back({flow.ask.id, std::move(flow.owner)});
    return true;
  });
  return std::exchange(answers_, {});
}

std::optional<Instant> OwnerFinder::next() const {
  if (!answers_.empty()) return Instant{};
  if (waiting_.empty()) return std::nullopt;
  Instant next = waiting_.front().until;
  if (const auto search = processes_.next()) next = std::min(next, *search);
  if (wants_look_) next = std::min(next, addresses_.next_look());
  if (wants_walk_) next = std::min(next, cgroups_.pace().next());
  if (!wants_names_.empty()) next = std::min(next, names_.pace().next());
  return next;
}

}  // namespace shaper
