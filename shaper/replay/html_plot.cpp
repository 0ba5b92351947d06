#include "shaper/replay/html_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace shaper {
namespace {

constexpr int kWidth = 1000;
constexpr int kHeight = 300;

/// Where a line lies at most; beyond it is outside of the plot.
constexpr double kFurthest = 10;

/// The commands of an SVG path that follow a curve, short where it is stairs.
class Path {
 public:
  void follow(const std::pair<double, double>& at) {
    const std::string x = fmt::format("{:.4g}", at.first * kWidth);
    const std::string y = fmt::format("{:.4g}", (1 - std::clamp(at.second, 0.0, kFurthest)) * kHeight);
    if (text_.empty()) {
      text_ = fmt::format("M{} {}", x, y);
    } else if (x == x_ && y != y_) {
      text_ += "V" + y;
    } else if (y == y_ && x != x_) {
      text_ += "H" + x;
    } else if (x != x_) {
      text_ += fmt::format("L{} {}", x, y);
    }
    x_ = x;
    y_ = y;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_, x_, y_;
};

/// The smallest of 1, 2, 5, 10, 20, 50 … that is `least` or more.
double round_step(double least) {
  const double one = std::pow(10, std::floor(std::log10(least)));
  for (const double step : {1.0, 2.0, 5.0}) {
    if (step * one >= least * 0.999999) return step * one;
  }
  return 10 * one;
}

std::vector<Tick> ticks(double step, double most, double unit) {
  std::vector<Tick> ticks;
  for (int i = 0; i * step <= most * 1.000001; ++i)
    ticks.push_back({i * step / most, fmt::format("{:.6g}", i * step / unit)});
  return ticks;
}

}  // namespace

std::string html_escape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else if (c == '"') {
      escaped += "&quot;";
    } else if (c == '\'') {
      escaped += "&#39;";
    } else if ((c >= 0 && c < ' ' && c != '\n' && c != '\t') || c == '\x7f') {
      escaped += "\xef\xbf\xbd";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

Axis linear_axis(double most, const ColumnUnits& units) {
  constexpr int kSteps = 4;
  most = std::max(most, static_cast<double>(units.front().size));
  ColumnUnit unit = units.front();
  for (const ColumnUnit& each : units) {
    if (static_cast<double>(each.size) <= most) unit = each;
  }
  const double step = round_step(most / kSteps);
  const double top = std::ceil(most / step * 0.999999) * step;
  return {top, unit.name, ticks(step, top, static_cast<double>(unit.size))};
}

Axis time_axis(Nanos length) {
  constexpr int kSteps = 5;
  const double most = std::max(std::chrono::duration<double>(length).count(), 1e-6);
  struct Unit {
    const char* name;
    double seconds;
  };
  Unit unit{"ms", 1e-3};
  for (const Unit& each : {Unit{"s", 1}, Unit{"min", 60}, Unit{"h", 3600}, Unit{"d", 86'400}}) {
    if (most >= 2 * each.seconds) unit = each;
  }
  const double step = round_step(most / unit.seconds / kSteps) * unit.seconds;
  return {most, unit.name, ticks(step, most, unit.seconds)};
}

void HtmlPlot::area(const Curve& lower, const Curve& upper, std::string_view style) {
  Path path;
  for (const auto& at : upper) path.follow(at);
  for (auto at = lower.rbegin(); at != lower.rend(); ++at) path.follow(*at);
  shapes_ += fmt::format("<path class=\"area {}\" d=\"{}Z\"/>\n", style, path.text());
}

void HtmlPlot::line(const Curve& curve, std::string_view style) {
  Path path;
  for (const auto& at : curve) path.follow(at);
  shapes_ += fmt::format("<path class=\"line {}\" d=\"{}\"/>\n", style, path.text());
}

void HtmlPlot::key(std::string_view word, std::string_view style) {
  keys_ += fmt::format("<span class=\"key {}\">{}</span>\n", style, html_escape(word));
}

void HtmlPlot::hint(double from, double to, std::string_view text) {
  hints_ += fmt::format("<rect x=\"{:.1f}\" y=\"0\" width=\"{:.1f}\" height=\"{}\"><title>{}</title></rect>\n",
                        from * kWidth, (to - from) * kWidth, kHeight, html_escape(text));
}

std::string HtmlPlot::html() const {
  std::string grid, x_labels, y_labels;
  for (const Tick& tick : y_) {
    grid += fmt::format("<path d=\"M0 {0:.1f}H{1}\"/>", (1 - tick.at) * kHeight, kWidth);
    y_labels += fmt::format("<span style=\"bottom:{:.2f}%\">{}</span>", tick.at * 100, tick.label);
  }
  for (const Tick& tick : x_) {
    const std::string_view align = tick.at > 0.97 ? " class=\"last\"" : "";
    x_labels += fmt::format("<span{} style=\"left:{:.2f}%\">{}</span>", align, tick.at * 100, tick.label);
  }
  return fmt::format(
      "<figure class=\"plot\"><figcaption><b>{0}</b> <span class=\"legend\">{1}</span></figcaption>\n"
      "<div class=\"frame\"><span class=\"unit\">{2}</span><div class=\"y\" aria-hidden=\"true\">{3}</div>\n"
      "<svg role=\"img\" aria-label=\"{0}\" viewBox=\"0 0 {4} {5}\" preserveAspectRatio=\"none\">\n"
      "<g class=\"grid\">{6}</g>\n{7}<g class=\"hints\">{8}</g></svg>\n"
      "<div class=\"x\" aria-hidden=\"true\">{9}</div></div></figure>\n",
      html_escape(title_), keys_, y_unit_, y_labels, kWidth, kHeight, grid, shapes_, hints_, x_labels);
}

}  // namespace shaper
