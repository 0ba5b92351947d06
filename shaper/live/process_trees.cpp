#include "shaper/live/process_trees.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "shaper/live/clock.h"
#include "shaper/model/plain_text.h"

namespace shaper {
namespace {

constexpr std::chrono::seconds kBetweenLooks{1};
constexpr std::size_t kMostMembers = 16'384;
constexpr int kDeepest = 64;  // generations that are climbed at once

void add(std::set<ProcessId>& members, const ProcessId& process) {
  if (members.size() < kMostMembers) members.insert(process);
}

bool is_in_group_of(std::uint32_t number, const ProcessFacts& process) {
  return process.group == number || process.session == number;
}

}  // namespace

void ProcessTrees::follow(std::span<const std::uint32_t> numbers) {
  std::erase_if(trees_, [&](const auto& entry) {
    return std::find(numbers.begin(), numbers.end(), entry.first) == numbers.end();
  });
  for (const std::uint32_t number : numbers) {
    Tree& tree = trees_[number];
    if (!tree.members.empty()) continue;
    tree.told_gone = false;
    const auto process = process_standing(open_process(number));
    if (process && !process->ended) tree.members.insert(process->id);
  }
  if (!empty()) look();
}

void ProcessTrees::look() {
  const Instant start = monotonic_now();
  Standing standing;
  for_each_process([&](std::uint32_t pid) {
    const auto facts = process_standing(open_process(pid));
    if (facts && !facts->ended) standing.emplace(pid, *facts);
  });
  for (auto& [number, tree] : trees_) renew(number, tree, standing);
  const Instant now = monotonic_now();
  pace_.over(now, now - start);
  next_look_ = std::max(start + kBetweenLooks, pace_.next());
}

/// A parent may have ended since it was read as that: then it was still a member at the look before.
void ProcessTrees::renew(std::uint32_t number, Tree& tree, const Standing& standing) {
  if (tree.members.empty()) return;            // the number may be somebody else's by now
  std::map<std::uint32_t, ProcessId> parents;  // that are members, by pid
  std::set<ProcessId> members;
  for (const ProcessId& member : tree.members) {
    const auto now = standing.find(member.pid);
    if (now == standing.end()) {
      parents[member.pid] = member;
    } else if (now->second.id == member) {
      parents[member.pid] = member;
      members.insert(member);
    }
  }
  for (bool more = true; more;) {
    more = false;
    for (const auto& [pid, facts] : standing) {
      if (members.contains(facts.id)) continue;
      const auto parent = parents.find(facts.parent);
      const bool child = parent != parents.end() && parent->second.started <= facts.id.started;
      if (!child && !is_in_group_of(number, facts)) continue;
      if (members.size() == kMostMembers) break;
      members.insert(facts.id);
      more = parents.emplace(pid, facts.id).second;
    }
  }
  tree.members = std::move(members);
}

std::vector<std::uint32_t> ProcessTrees::take_gone() {
  std::vector<std::uint32_t> gone;
  for (auto& [number, tree] : trees_) {
    if (tree.members.empty() && !std::exchange(tree.told_gone, true)) gone.push_back(number);
  }
  return gone;
}

std::vector<std::uint32_t> ProcessTrees::lineage(const ProcessFacts& process) {
  std::vector<std::uint32_t> numbers;
  if (empty()) return numbers;
  std::vector<ProcessFacts> line{process};
  while (line.back().parent != 0 && line.size() < kDeepest) {
    const auto parent = process_standing(open_process(line.back().parent));
    if (!parent || line.back().id.started < parent->id.started) break;
    line.push_back(*parent);
  }
  for (auto& [number, tree] : trees_) {
    const auto member = std::find_if(
        line.begin(), line.end(), [&, &its = tree](const ProcessFacts& each) { return its.members.contains(each.id); });
    if (member == line.end()) {
      if (tree.members.empty() || !is_in_group_of(number, process)) continue;
      add(tree.members, process.id);
      numbers.push_back(number);
      continue;
    }
    numbers.push_back(number);
    for (auto descendant = line.begin(); descendant <= member; ++descendant) add(tree.members, descendant->id);
  }
  return numbers;
}

std::string ProcessTrees::text() const {
  std::string text;
  for (const auto& [number, tree] : trees_) {
    for (const ProcessId& member : tree.members) text += fmt::format("{} {} {}\n", number, member.pid, member.started);
  }
  return text;
}

void ProcessTrees::take_up(std::string_view text) {
  while (!text.empty()) {
    std::string_view line = take_line(text);
    const auto number = parse_number<std::uint32_t>(take_word(line));
    const auto pid = parse_number<std::uint32_t>(take_word(line));
    const auto started = parse_number<std::uint64_t>(line);
    if (number && pid && started) trees_[*number].members.insert({*started, *pid});
  }
}

}  // namespace shaper
