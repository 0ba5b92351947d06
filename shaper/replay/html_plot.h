// One plot of a report page: an SVG that stretches to the room it has, with its axes' labels as text beside it, so that
// they are readable at any width. Curves are given in parts of the plot: (0, 0) is its lower left, (1, 1) its upper
// right.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shaper/core/units.h"
#include "shaper/model/text_table.h"

namespace shaper {

/// `text` in HTML, between tags or in a quoted attribute. Control characters become U+FFFD.
[[nodiscard]] std::string html_escape(std::string_view text);

/// Where on an axis a label stands.
struct Tick {
  double at = 0;
  std::string label;
};

/// From zero to a round number at `most` or above.
struct Axis {
  double most = 1;
  std::string unit;
  std::vector<Tick> ticks;

  [[nodiscard]] double part(double value) const { return value / most; }
};

/// Of values in the smallest of `units`, labelled in the largest that `most` fills.
[[nodiscard]] Axis linear_axis(double most, const ColumnUnits& units);
/// From zero to exactly `length`.
[[nodiscard]] Axis time_axis(Nanos length);

using Curve = std::vector<std::pair<double, double>>;

class HtmlPlot {
 public:
  HtmlPlot(std::string title, const Axis& x, const Axis& y)
      : title_(std::move(title)), y_unit_(y.unit), x_(x.ticks), y_(y.ticks) {
    if (!x.unit.empty()) x_.back().label += " " + x.unit;
  }

  /// Between two curves.
  void area(const Curve& lower, const Curve& upper, std::string_view style);
  void line(const Curve& curve, std::string_view style);

  /// A word for the legend, with a swatch of that style.
  void key(std::string_view word, std::string_view style);

  /// What is told of the time between two places, for those who point there.
  void hint(double from, double to, std::string_view text);

  [[nodiscard]] std::string html() const;

 private:
  std::string title_, y_unit_;
  std::vector<Tick> x_, y_;
  std::string shapes_, keys_, hints_;
};

}  // namespace shaper
