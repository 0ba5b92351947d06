// A stand-in for whoever hands out a cluster limit: it has one bucket and gives what it earns to those who wait.
//
// As the real one it asks each host (here: each key) for its demand at a fixed period, deducts what it gives before it
// gives it, and lets it be spent for three periods.
#pragma once

#include <algorithm>
#include <map>

#include "tests/sim.h"

namespace shaper::sim {

class Granter {
 public:
  Granter(LimitIndex limit, DataRate rate, Nanos period, Instant now)
      : limit_{limit}, rate_{rate}, period_{period}, last_{now} {}

  /// Runs the simulation for that long, with a look at the demand in every period.
  void run(Sim& sim, Nanos time) {
    for (const Instant end = sim.now() + time; sim.now() < end && sim.broken().empty();) {
      give(sim);
      sim.run_for(std::min(period_, end - sim.now()));
    }
  }

  /// Gives everybody what he asks for, or an even part of what is there.
  void give(Sim& sim) {
    earned_ += bytes_in(rate_, sim.now() - last_);
    last_ = sim.now();
    std::vector<Demand> demands = sim.demand();
    std::erase_if(demands, [this](const Demand& entry) { return entry.from.limit != limit_; });
    std::sort(demands.begin(), demands.end(), [this](const Demand& a, const Demand& b) { return wish(a) < wish(b); });
    ByteCount there = earned_ - given_;
    // What nobody asks for is not saved for more than a few periods.
    there = std::min(there, ByteCount{4 * bytes_in(rate_, period_).value + 3'000});
    for (std::size_t n = 0; n < demands.size(); ++n) {
      const ByteCount part{there.value / (demands.size() - n)};
      const ByteCount bytes = std::min(wish(demands[n]), part);
      seen_[bucket_key(demands[n].from.key)] = demands[n].arrived;
      if (bytes == ByteCount{}) continue;
      there -= bytes;
      given_ += bytes;
      sim.grant({demands[n].from, bytes, sim.now() + 3 * period_, rate_});
    }
  }

  [[nodiscard]] ByteCount given() const { return given_; }

 private:
  /// What waits, and as much again as came in the last period, less what is left.
  [[nodiscard]] ByteCount wish(const Demand& entry) const {
    const auto before = seen_.find(bucket_key(entry.from.key));
    const ByteCount came = entry.arrived - (before == seen_.end() ? ByteCount{} : before->second);
    const ByteCount wanted = entry.waiting + came;
    return wanted > entry.left ? wanted - entry.left : ByteCount{};
  }

  LimitIndex limit_;
  DataRate rate_;
  Nanos period_;
  Instant last_;
  ByteCount earned_;
  ByteCount given_;
  std::map<BucketKey, ByteCount> seen_;  // arrivals told of at the last look
};

}  // namespace shaper::sim
