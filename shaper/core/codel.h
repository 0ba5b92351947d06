// CoDel, RFC 8289, for one flow queue: tells for the packet at its head, when that is about to leave, whether the queue
// has been standing too long.
//
// The sojourn time of a queue that is only a burst falls below `target` within an `interval`; one that never does is a
// standing queue, and signals then come ever faster until it is gone. It is asked again for the next head after a drop.
// At low rates a frame alone takes longer than 5 ms: target and interval grow with it, as in tc-cake(8).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "shaper/core/units.h"

namespace shaper {

struct CodelParameters {
  Nanos target = std::chrono::milliseconds{5};
  Nanos interval = std::chrono::milliseconds{100};

  /// For queues that a rate serves whose full frame takes `frame_time`.
  static constexpr CodelParameters scaled(Nanos frame_time) {
    CodelParameters parameters;
    const Nanos target = std::max(parameters.target, frame_time * 3 / 2);
    parameters.interval += target - parameters.target;
    parameters.target = target;
    return parameters;
  }
};

class Codel {
 public:
  /// Whether the head, which has waited for `sojourn`, is to be dropped or marked. `alone`: the queue holds no more
  /// than a full frame; that is never too much.
  [[nodiscard]] bool signals(const CodelParameters& parameters, Nanos sojourn, bool alone, Instant now) {
    if (sojourn < parameters.target || alone) {
      above_until_.reset();
      signalling_ = false;
      return false;
    }
    if (!above_until_) above_until_ = now + parameters.interval;
    if (now < *above_until_) {
      signalling_ = false;
      return false;
    }
    if (signalling_) {
      if (now < next_) return false;
      ++count_;
      next_ += spacing(parameters.interval, count_);
      return true;
    }
    signalling_ = true;
    // Where it was signalling not long ago, go on about there.
    const std::uint32_t sent = count_ - count_before_;
    count_ = sent > 1 && now - next_ < 16 * parameters.interval ? sent : 1;
    count_before_ = count_;
    next_ = now + spacing(parameters.interval, count_);
    return true;
  }

 private:
  /// interval / sqrt(count), rounded to the precision of a 16-bit fraction.
  static constexpr Nanos spacing(Nanos interval, std::uint32_t count) {
    std::uint64_t root = 0;  // of count x 2^32: below 2^32
    for (std::uint64_t bit = std::uint64_t{1} << 31; bit != 0; bit >>= 1) {
      const std::uint64_t larger = root | bit;
      if (larger * larger <= std::uint64_t{count} << 32) root = larger;
    }
    const Uint128 scaled = static_cast<Uint128>(interval.count()) << 16;
    return Nanos{static_cast<std::int64_t>(scaled / root)};
  }

  std::optional<Instant> above_until_;  // since an interval before, no head was below the target
  Instant next_;                        // signal
  std::uint32_t count_ = 0;             // of signals in this row
  std::uint32_t count_before_ = 0;
  bool signalling_ = false;
};

}  // namespace shaper
