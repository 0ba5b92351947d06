// Reports as Prometheus text (exposition format 0.0.4), for `shaper metrics` and whoever is scraped.
//
// Every name begins with shaper_. Bytes, seconds and bytes per second; what is counted ends in _total and is never a
// mean. There is a series for each link, class, limit and queue, and none for a flow or a key. What is not known is
// absent, not zero. docs/metrics.md lists them all.
#pragma once

#include <cstddef>
#include <string>

#include "shaper/model/report.h"

namespace shaper {

/// Histograms of delay are told of so many classes, the first ones: each has 15 lines.
inline constexpr std::size_t kMostDelayHistograms = 1000;

/// `cluster` is null where the policy has no limit over several hosts.
[[nodiscard]] std::string metrics_text(const StatusReport& status, const ClusterReport* cluster);

}  // namespace shaper
