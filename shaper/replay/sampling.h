// The bins of a report as samples of its plots: one or more neighbours each, so that each has packets enough for a
// mean.
#pragma once

#include <algorithm>
#include <cstddef>

#include "shaper/replay/report_collector.h"

namespace shaper {

class Sampling {
 public:
  explicit Sampling(const ReportCollector& collected)
      : time_(collected.time()), step_(step_for(time_.size(), collected.arrivals())) {}

  [[nodiscard]] std::size_t size() const { return (time_.size() + step_ - 1) / step_; }
  /// Of a sample, in parts of the plot.
  [[nodiscard]] double begin(std::size_t sample) const { return part(sample * step_); }
  [[nodiscard]] double end(std::size_t sample) const { return part(end_bin(sample)); }

  /// Of a series, in a sample.
  [[nodiscard]] double each_second(const Series& series, std::size_t sample) const {
    double sum = 0;
    for (std::size_t bin = sample * step_; bin < end_bin(sample); ++bin) sum += series.at(bin);
    return sum / ((end(sample) - begin(sample)) * seconds_of_plot());
  }
  [[nodiscard]] double part_at(Instant at) const {
    return std::clamp(seconds(at - time_.start()) / seconds_of_plot(), 0.0, 1.0);
  }

  [[nodiscard]] Nanos length() const { return time_.width() * static_cast<std::int64_t>(time_.size()); }
  [[nodiscard]] double seconds_of_plot() const { return seconds(length()); }
  [[nodiscard]] Nanos width() const { return time_.width() * static_cast<std::int64_t>(step_); }

 private:
  static constexpr std::size_t kPackets = 100;  // in a sample, in the mean: else curves are combs ...
  static constexpr std::size_t kFewest = 20;    // ... but so many samples there are

  static std::size_t step_for(std::size_t bins, std::uint64_t packets) {
    const std::size_t wanted = bins * kPackets / static_cast<std::size_t>(std::max<std::uint64_t>(packets, 1));
    return std::max<std::size_t>(std::min(wanted, bins / kFewest), 1);
  }
  static double seconds(Nanos time) { return std::chrono::duration<double>(time).count(); }
  [[nodiscard]] std::size_t end_bin(std::size_t sample) const { return std::min((sample + 1) * step_, time_.size()); }
  [[nodiscard]] double part(std::size_t bin) const {
    return static_cast<double>(bin) / static_cast<double>(time_.size());
  }

  const TimeBins& time_;
  std::size_t step_;
};

}  // namespace shaper
