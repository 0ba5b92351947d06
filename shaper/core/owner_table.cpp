#include "shaper/core/owner_table.h"

namespace shaper {

OwnerTable::Place OwnerTable::place_of(const Owner& owner) {
  if (!owner.container_name.empty()) return {{}, owner.container_name};
  if (!owner.container.empty()) return {{}, owner.container.substr(0, 12)};
  return {owner.cgroup.empty() ? "unknown" : owner.cgroup, {}};
}

/// Those whose flows are gone make room for others.
OwnerRef::Sum& OwnerTable::sum_of(const Owner& owner) {
  Place place = place_of(owner);
  if (sums_.size() >= kMostTotals && !sums_.contains(place)) {
    std::erase_if(sums_, [](const auto& each) { return each.second.owners == 0; });
    if (sums_.size() >= kMostTotals) place = {"other", {}};
  }
  OwnerRef::Sum& sum = sums_[place];
  sum.total.cgroup = place.first;
  sum.total.container = place.second;
  return sum;
}

std::vector<OwnerTotal> OwnerTable::totals() const {
  std::vector<OwnerTotal> totals;
  for (const auto& [place, sum] : sums_) totals.push_back(sum.total);
  return totals;
}

}  // namespace shaper
