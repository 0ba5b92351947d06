#include "shaper/model/owner_keys.h"

#include <algorithm>

namespace shaper {
namespace {

void add_pids(const std::vector<Match>& matches, std::vector<std::uint32_t>& pids) {
  for (const Match& match : matches) {
    pids.insert(pids.end(), match.pid.begin(), match.pid.end());
    add_pids(match.none_of, pids);
  }
}

bool any_asks(const std::vector<Match>& matches) {
  return std::any_of(matches.begin(), matches.end(), [](const Match& match) { return asks_owner(match); });
}

bool asks_owner(EachBy by) {
  return is_of_owner(by) && by != EachBy::user;
}

}  // namespace

bool asks_owner(const Match& match) {
  return match.asks_owner() || any_asks(match.none_of);
}

bool needs_owners(const Policy& policy) {
  const auto class_does = [](const ClassPolicy& cls) {
    return (cls.each && asks_owner(cls.each->by)) || any_asks(cls.match);
  };
  const auto limit_does = [](const LimitPolicy& limit) {
    return (limit.by && asks_owner(limit.by->by)) || any_asks(limit.match);
  };
  return policy.owners || std::any_of(policy.classes.begin(), policy.classes.end(), class_does) ||
         std::any_of(policy.limits.begin(), policy.limits.end(), limit_does);
}

std::vector<std::uint32_t> watched_pids(const Policy& policy) {
  std::vector<std::uint32_t> pids;
  for (const ClassPolicy& cls : policy.classes) add_pids(cls.match, pids);
  for (const LimitPolicy& limit : policy.limits) add_pids(limit.match, pids);
  std::sort(pids.begin(), pids.end());
  pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
  return pids;
}

}  // namespace shaper
