// Sums over time in a bounded number of bins of equal width.
//
// All series of a report share one axis. When time runs beyond its last bin, the bins double in width and every series
// adds up its neighbours: as much memory for a day as for a second. For eyes only, so sums are floating point; those of
// whole numbers are exact up to 2^53.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "shaper/core/units.h"

namespace shaper {

class Series {
 public:
  void add(std::size_t bin, double amount) {
    if (bin >= sums_.size()) sums_.resize(bin + 1);
    sums_[bin] += amount;
  }
  void add(const Series& other) {
    for (std::size_t bin = 0; bin < other.sums_.size(); ++bin) add(bin, other.sums_[bin]);
  }

  /// The bins are twice as wide from now on.
  void fold() {
    for (std::size_t bin = 0; bin < sums_.size(); ++bin) {
      const double sum = std::exchange(sums_[bin], 0);
      sums_[bin / 2] += sum;
    }
    sums_.resize((sums_.size() + 1) / 2);
  }

  /// Zero behind the last bin that has something.
  [[nodiscard]] double at(std::size_t bin) const { return bin < sums_.size() ? sums_[bin] : 0; }
  [[nodiscard]] double sum() const { return std::accumulate(sums_.begin(), sums_.end(), 0.0); }

 private:
  std::vector<double> sums_;
};

class TimeBins {
 public:
  static constexpr std::size_t kMost = 400;

  explicit TimeBins(Instant start) : start_(start), end_(start) {}

  /// Time has come to `now`; the answer is how often every series is to be folded.
  [[nodiscard]] int reach(Instant now) {
    end_ = std::max(end_, now);
    int folds = 0;
    for (; (end_ - start_) / width_ >= static_cast<std::int64_t>(kMost); ++folds) width_ *= 2;
    return folds;
  }

  /// The bin of a time that was reached; what was before the start counts as the start.
  [[nodiscard]] std::size_t index(Instant at) const {
    return static_cast<std::size_t>((std::max(at, start_) - start_) / width_);
  }
  [[nodiscard]] Instant begin_of(std::size_t bin) const { return start_ + static_cast<std::int64_t>(bin) * width_; }

  [[nodiscard]] Instant start() const { return start_; }
  [[nodiscard]] Instant end() const { return end_; }
  [[nodiscard]] Nanos width() const { return width_; }
  [[nodiscard]] std::size_t size() const { return index(end_) + 1; }

 private:
  Instant start_;
  Instant end_;
  Nanos width_ = std::chrono::milliseconds{1};
};

}  // namespace shaper
