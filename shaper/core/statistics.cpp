#include "shaper/core/statistics.h"

#include <algorithm>

namespace shaper {

Nanos DelayHistogram::upper_bound(std::size_t bucket) {
  const unsigned octave = static_cast<unsigned>(bucket >> kSubBits);
  if (octave == 0) return Nanos{static_cast<std::int64_t>((bucket + 1) * 1000)};
  const unsigned shift = octave - 1;
  const std::uint64_t first = (bucket - (static_cast<std::size_t>(shift) << kSubBits)) << shift;
  return Nanos{static_cast<std::int64_t>((first + (std::uint64_t{1} << shift)) * 1000)};
}

DelaySummary DelayHistogram::summary(std::uint64_t packets) const {
  std::uint64_t waited = 0;
  for (const std::uint32_t count : counts_) waited += count;
  const std::uint64_t at_once = packets > waited ? packets - waited : 0;
  const std::uint64_t total = at_once + waited;

  const auto percentile = [&](std::uint64_t percent) {
    const std::uint64_t rank = (total * percent + 99) / 100;
    std::uint64_t seen = at_once;
    if (seen >= rank) return Nanos{0};
    for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
      seen += counts_[bucket];
      if (seen >= rank) return std::min(upper_bound(bucket), max_);
    }
    return max_;
  };
  return {percentile(50), percentile(90), percentile(99), max_};
}

}  // namespace shaper
