#include "cli/top/history.h"

#include <algorithm>

namespace shaper::top {

void History::add(Instant now, DataRate rate, const DropCounts& drops) {
  looks_.push_back({now, rate, drops});
  // One that is older still tells what was at the beginning of the minute.
  while (looks_.size() > 2 && looks_[1].time + kRemembered <= now) looks_.pop_front();
}

void History::interrupt(Instant now) {
  if (!looks_.empty()) add(now, {}, looks_.back().drops);
}

std::vector<std::uint64_t> History::rates(std::size_t cells) const {
  std::vector<std::uint64_t> rates(cells, 0);
  if (cells == 0 || looks_.empty()) return rates;
  const Nanos width = Nanos{kRemembered} / static_cast<Nanos::rep>(cells);
  const auto part = [&](Instant time) { return time.time_since_epoch() / width; };
  const auto first = part(looks_.back().time) - static_cast<Nanos::rep>(cells) + 1;
  std::vector<bool> seen(cells, false);
  std::uint64_t before = 0;
  for (const Look& look : looks_) {
    const auto place = part(look.time) - first;
    if (place < 0) {
      before = look.rate.bits_per_second;
      continue;
    }
    const auto cell = static_cast<std::size_t>(place);
    rates[cell] = std::max(rates[cell], look.rate.bits_per_second);
    seen[cell] = true;
  }
  for (std::size_t cell = 0; cell < cells; ++cell) {
    if (!seen[cell]) rates[cell] = before;
    before = rates[cell];
  }
  return rates;
}

DropCounts History::drops_per_second() const {
  DropCounts drops{};
  if (looks_.size() < 2) return drops;
  const Look& last = looks_.back();
  const Look& before = looks_[looks_.size() - 2];
  const auto elapsed = static_cast<std::uint64_t>(std::max(last.time - before.time, Nanos{1}).count());
  for (std::size_t reason = 0; reason < drops.size(); ++reason) {
    if (last.drops[reason] <= before.drops[reason]) continue;  // fewer: another worker counts
    const Uint128 count = Uint128{last.drops[reason] - before.drops[reason]} * std::nano::den;
    drops[reason] = static_cast<std::uint64_t>((count + elapsed - 1) / elapsed);
  }
  return drops;
}

}  // namespace shaper::top
