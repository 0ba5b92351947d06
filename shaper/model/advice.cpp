#include "shaper/model/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "shaper/model/units_text.h"

namespace shaper {
namespace {

constexpr std::uint64_t kTooManyPercent = 5;
/// Of so few packets a share says nothing.
constexpr std::uint64_t kFewPackets = 100;
constexpr std::size_t kMostLines = 10;

struct Dropper {
  const ClassSnapshot* of;
  std::uint64_t dropped;
};

/// The rates of its own that such a class obeys, as one has to write them: those that a policer drops for.
std::vector<std::string> own_rates(const Policy& policy, const ClassPolicy& cls) {
  std::vector<std::string> rates;
  if (cls.limit()) rates.emplace_back("its ceil");
  if (cls.each) rates.emplace_back("the rate of its each");
  for (const LimitIndex limit : cls.limits) rates.push_back("limit " + policy.limits.at(limit).name);
  return rates;
}

std::string rates_of(const Policy& policy, const ClassPolicy& cls) {
  std::vector<std::string> rates = own_rates(policy, cls);
  if (policy.links.at(cls.link).rate) rates.push_back("the rate of link " + policy.links.at(cls.link).name);
  return fmt::format("{}", fmt::join(rates, " or "));
}

std::string policed_text(const Policy& policy, const ClassPolicy& cls) {
  return fmt::format("raise {}, write over = \"delay\", or give it a burst of {} or more",
                     fmt::join(own_rates(policy, cls), " or "), format_time(kAdvisedPolicerBurst));
}

std::string remedy(const Policy& policy, const ClassPolicy& cls, DropReason reason) {
  switch (reason) {
    case DropReason::policed:
      return policed_text(policy, cls);
    case DropReason::backlog:
      return fmt::format("more comes than {} lets through: raise it, or its backlog for short bursts",
                         rates_of(policy, cls));
    case DropReason::max_delay:
      return fmt::format("packets wait longer than max_delay: raise {}, or write aqm = true", rates_of(policy, cls));
    case DropReason::aqm:
      return fmt::format("its flows do not slow down enough, or are too many: raise {}", rates_of(policy, cls));
    case DropReason::held:
      return "the kernel queue holds all that it may: those senders do not slow down; police them by over = \"drop\"";
    case DropReason::refused:
      break;
  }
  return "Redis does not answer: without_redis = \"degrade\" would let this host's share pass";
}

}  // namespace

std::vector<std::string> drop_advice(const Policy& policy, const CoreSnapshot& snapshot) {
  std::vector<Dropper> droppers;
  for (const ClassSnapshot& cls : snapshot.classes) {
    const auto& drops = cls.recent.drops;
    const std::uint64_t dropped = std::accumulate(drops.begin(), drops.end(), std::uint64_t{0});
    const std::uint64_t all = dropped + cls.recent.sent;
    if (all >= kFewPackets && Uint128{dropped} * 100 > Uint128{all} * kTooManyPercent)
      droppers.push_back({&cls, dropped});
  }
  std::stable_sort(droppers.begin(), droppers.end(),
                   [](const Dropper& a, const Dropper& b) { return a.dropped > b.dropped; });
  if (droppers.size() > kMostLines) droppers.resize(kMostLines);
  std::vector<std::string> lines;
  for (const auto& [of, dropped] : droppers) {
    const ClassPolicy& cls = policy.classes.at(of->index);
    const auto& drops = of->recent.drops;
    const auto reason = static_cast<std::size_t>(std::max_element(drops.begin(), drops.end()) - drops.begin());
    lines.push_back(fmt::format("class {} on {} dropped {} of {} packets in the last minute ({}): {}", cls.name,
                                policy.links.at(cls.link).name, dropped, dropped + of->recent.sent,
                                kDropReasonNames[reason], remedy(policy, cls, static_cast<DropReason>(reason))));
  }
  return lines;
}

}  // namespace shaper
