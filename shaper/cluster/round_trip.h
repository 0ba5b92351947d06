// How long Redis takes to answer, and the period, the timeout and the lease that follow from it.
//
// One for each connection, fed by whoever has it: every answer, also a late one, and every timeout. The estimate is
// taken from the last hundred answers and nothing older, so it goes down again as it went up. Up it goes within a few
// answers: until then every grant would come after its end. While nothing comes in time the timeout doubles: else a
// round trip longer than the first timeout would never be measured.
#pragma once

#include <algorithm>
#include <array>

#include "shaper/core/units.h"

namespace shaper {

class RoundTrip {
 public:
  static constexpr Nanos kLeastTimeout = std::chrono::milliseconds{50};
  static constexpr Nanos kLongestTimeout = std::chrono::seconds{2};

  /// Hosts starve with a longer period at small rates.
  static constexpr Nanos kLongestInterval = std::chrono::milliseconds{500};

  void measured(Nanos time) {
    times_[next_++ % times_.size()] = time;
    count_ = std::min(count_ + 1, times_.size());
    lost_ = 0;
    estimate();
  }
  void timed_out() { lost_ = std::min(lost_ + 1, kMostDoublings); }

  /// The median of all or of the latest, whichever is longer; zero before the first answer.
  [[nodiscard]] Nanos typical() const { return typical_; }
  /// Only one of a hundred takes longer.
  [[nodiscard]] Nanos slow() const { return slow_; }

  /// T: `least`, or one round trip where that is longer.
  [[nodiscard]] Nanos interval(Nanos least) const { return std::max(least, std::min(typical_, kLongestInterval)); }
  [[nodiscard]] Nanos timeout() const {
    return std::min(std::max(kLeastTimeout, 4 * slow_) * (1 << lost_), kLongestTimeout);
  }

 private:
  static constexpr unsigned kMostDoublings = 5;

  static constexpr std::size_t kLatest = 9;

  void estimate() {
    std::array<Nanos, 100> all = times_;
    std::array<Nanos, kLatest> latest{};
    const std::size_t few = std::min(count_, kLatest);
    for (std::size_t i = 0; i < few; ++i) latest[i] = times_[(next_ - 1 - i) % times_.size()];
    typical_ = std::max(smallest_but(all, count_, (count_ - 1) / 2), smallest_but(latest, few, (few - 1) / 2));
    slow_ = smallest_but(all, count_, (count_ * 99 - 1) / 100);
  }

  /// Of the first `count` times the one that `index` others are not above.
  template <std::size_t kSize>
  static Nanos smallest_but(std::array<Nanos, kSize>& times, std::size_t count, std::size_t index) {
    const auto nth = times.begin() + static_cast<std::ptrdiff_t>(index);
    std::nth_element(times.begin(), nth, times.begin() + static_cast<std::ptrdiff_t>(count));
    return *nth;
  }

  std::array<Nanos, 100> times_{};
  std::size_t next_ = 0;
  std::size_t count_ = 0;
  unsigned lost_ = 0;  // timeouts since the last answer
  Nanos typical_{0};
  Nanos slow_{0};
};

}  // namespace shaper
