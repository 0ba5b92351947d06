// The last minute of one link, class or limit, look by look: its rate, and what it dropped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "shaper/core/units.h"
#include "shaper/model/report.h"

namespace shaper::top {

inline constexpr std::chrono::seconds kRemembered{60};

class History {
 public:
  /// `drops` are counted from the start.
  void add(Instant now, DataRate rate, const DropCounts& drops);

  /// Nothing is known from now on: it is drawn as nothing.
  void interrupt(Instant now);

  /// The last minute in `cells` equal parts, the oldest first. A part has the largest rate seen in it, or that of the
  /// look before; zero before the first one. Parts begin at fixed times, so that a peak keeps its place.
  [[nodiscard]] std::vector<std::uint64_t> rates(std::size_t cells) const;

  /// Between the last two looks, rounded up: one drop is never none.
  [[nodiscard]] DropCounts drops_per_second() const;

 private:
  struct Look {
    Instant time;
    DataRate rate;
    DropCounts drops{};
  };
  std::deque<Look> looks_;
};

}  // namespace shaper::top
