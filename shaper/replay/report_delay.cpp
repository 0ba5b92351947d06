// How long packets waited, as the part of them that waited no longer than so long.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "shaper/replay/report_parts.h"

namespace shaper {
namespace {

constexpr double kShortest = 1e4;  // nanoseconds: what is below stands at the left edge

/// Decades from kShortest on.
class LogAxis {
 public:
  explicit LogAxis(Nanos most) {
    for (decades_ = 1; kShortest * std::pow(10, decades_) < static_cast<double>(most.count());) ++decades_;
  }

  [[nodiscard]] double part(Nanos delay) const {
    const double ratio = std::max(static_cast<double>(delay.count()), kShortest) / kShortest;
    return std::log10(ratio) / decades_;
  }
  [[nodiscard]] Axis axis() const {
    constexpr std::array kLabels{"10 us", "100 us", "1 ms", "10 ms", "100 ms", "1 s", "10 s", "100 s"};
    Axis axis{1, "", {}};
    for (int i = 0; i <= decades_ && i < static_cast<int>(kLabels.size()); ++i) {
      axis.ticks.push_back({static_cast<double>(i) / decades_, kLabels.at(static_cast<std::size_t>(i))});
    }
    return axis;
  }

 private:
  int decades_ = 1;
};

/// Stairs from those that did not wait to all.
Curve distribution(const ClassHistory& of, std::uint64_t sent, const LogAxis& x) {
  std::uint64_t waited = 0;
  of.delays.each([&](Nanos, std::uint64_t packets) { waited += packets; });
  const double all = static_cast<double>(std::max(sent, waited));
  double so_far = all - static_cast<double>(waited);
  Curve curve{{0, so_far / all}};
  of.delays.each([&](Nanos delay, std::uint64_t packets) {
    curve.emplace_back(x.part(delay), so_far / all);
    so_far += static_cast<double>(packets);
    curve.emplace_back(x.part(delay), so_far / all);
  });
  curve.emplace_back(1, 1);
  return curve;
}

}  // namespace

std::string delay_plot(const ReplayReport& report) {
  const ReportCollector& collected = report.collected;
  Nanos most{0};
  for (const ClassReport& row : report.figures.status.classes) most = std::max(most, row.delay.max);
  if (most == Nanos{0}) return "<p>No packet waited.</p>\n";
  const LogAxis x(most);
  Axis y{1, "%", {}};
  for (int percent = 0; percent <= 100; percent += 25) y.ticks.push_back({percent / 100.0, std::to_string(percent)});
  HtmlPlot plot("Packets that waited no longer than", x.axis(), y);
  const std::vector<std::size_t> shown = shown_classes(collected);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const ClassHistory& of = collected.classes()[shown[i]];
    for (const ClassReport& row : report.figures.status.classes) {
      if (row.name != of.name || row.link != of.link || row.sent_packets == 0) continue;
      plot.line(distribution(of, row.sent_packets, x), fmt::format("s{}", i));
      plot.key(class_words(collected, shown[i]), fmt::format("line s{}", i));
    }
  }
  return "<div class=\"wide\">" + plot.html() + "</div>\n";
}

}  // namespace shaper
