// Curves over time: who sends how much, against what may be sent; what waits; what is dropped.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "shaper/replay/report_parts.h"
#include "shaper/replay/sampling.h"

namespace shaper {
namespace {

/// So many places has a plot at most where something is told.
constexpr std::size_t kHints = 40;

/// A rate in force is drawn where it is not more than so many times what flows: else that would be a line at the
/// bottom.
constexpr double kInSight = 4;

/// A layer of a plot: a value for each sample, with the word and style that it has in the legend.
struct Layer {
  std::string word;
  std::string style;
  std::vector<double> values;
};

std::vector<double> rates(const Sampling& sampling, const Series& series, double times) {
  std::vector<double> values;
  for (std::size_t i = 0; i < sampling.size(); ++i) values.push_back(sampling.each_second(series, i) * times);
  return values;
}

Layer rate_layer(const Sampling& sampling, const Series& bytes, std::string word, std::string style) {
  return {std::move(word), std::move(style), rates(sampling, bytes, 8)};
}

double largest(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

std::vector<double> totals(const std::vector<Layer>& layers) {
  std::vector<double> sums;
  for (const Layer& layer : layers) {
    sums.resize(layer.values.size());
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += layer.values[i];
  }
  return sums;
}

/// Each value holds for the whole of its sample.
Curve stairs(const Sampling& sampling, const std::vector<double>& values, const Axis& y) {
  Curve curve;
  for (std::size_t i = 0; i < values.size(); ++i) {
    curve.emplace_back(sampling.begin(i), y.part(values[i]));
    curve.emplace_back(sampling.end(i), y.part(values[i]));
  }
  return curve;
}

std::string in_words(double value, const ColumnUnits& units) {
  return with_unit(static_cast<std::uint64_t>(std::llround(value)), units);
}

void add_stack(HtmlPlot& plot, const Sampling& sampling, const std::vector<Layer>& layers, const Axis& y) {
  std::vector<double> below(sampling.size());
  for (const Layer& layer : layers) {
    std::vector<double> above = below;
    for (std::size_t i = 0; i < above.size(); ++i) above[i] += layer.values[i];
    plot.area(stairs(sampling, below, y), stairs(sampling, above, y), layer.style);
    below = std::move(above);
    if (!layer.word.empty()) plot.key(layer.word, layer.style);
  }
}

void add_hints(HtmlPlot& plot, const Sampling& sampling, const std::vector<Layer>& layers, const ColumnUnits& units) {
  const std::size_t step = (sampling.size() + kHints - 1) / kHints;
  for (std::size_t i = 0; i < sampling.size(); i += step) {
    const std::size_t end = std::min(i + step, sampling.size());
    const double middle = (sampling.begin(i) + sampling.end(end - 1)) / 2 * sampling.seconds_of_plot();
    std::string text = fmt::format("at {:.4g} s", middle);
    for (const Layer& layer : layers) {
      double sum = 0;
      for (std::size_t at = i; at < end; ++at) sum += layer.values[at];
      text += fmt::format("\n{} {}", layer.word, in_words(sum / static_cast<double>(end - i), units));
    }
    plot.hint(sampling.begin(i), sampling.end(end - 1), text);
  }
}

std::optional<double> largest_rate(const RateSteps& steps) {
  std::optional<double> largest;
  for (const RateStep& step : steps) {
    if (step.rate) largest = std::max(largest.value_or(0), static_cast<double>(step.rate->bits_per_second));
  }
  return largest;
}

bool in_sight(const RateSteps& steps, double flowing) {
  const auto rate = largest_rate(steps);
  return rate && *rate <= kInSight * flowing;
}

void add_steps(HtmlPlot& plot, const Sampling& sampling, const RateSteps& steps, const Axis& y,
               std::string_view style) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].rate) continue;
    const double at = y.part(static_cast<double>(steps[i].rate->bits_per_second));
    const double end = i + 1 < steps.size() ? sampling.part_at(steps[i + 1].since) : 1;
    plot.line({{sampling.part_at(steps[i].since), at}, {end, at}}, style);
  }
}

/// A line for the rates in force, if they are in sight; they are named in any case.
void add_rule(HtmlPlot& plot, const Sampling& sampling, const RateSteps& steps, const Axis& y, std::string_view style) {
  if (steps.empty() || !largest_rate(steps)) return;
  const auto rate = steps.back().rate;
  const std::string value = rate ? with_unit(rate->bits_per_second, rate_units()) : std::string("none at last");
  const bool drawn = *largest_rate(steps) <= y.most;
  plot.key(fmt::format("{} {}{}", style, value, drawn ? "" : " (above)"), fmt::format("line {}", style));
  if (drawn) add_steps(plot, sampling, steps, y, style);
}

std::string stack_plot(const ReportCollector& collected, const std::string& title, const std::vector<Layer>& layers,
                       const Axis& y, const ColumnUnits& units) {
  const Sampling sampling(collected);
  HtmlPlot plot(title, time_axis(sampling.length()), y);
  add_stack(plot, sampling, layers, y);
  add_hints(plot, sampling, layers, units);
  return plot.html();
}

std::string rate_plot(const ReportCollector& collected, const ClassHistory& of, const std::string& title,
                      const std::string& style) {
  const Sampling sampling(collected);
  const std::vector<Layer> layers{rate_layer(sampling, of.sent, "", style)};
  double most = largest(layers.front().values);
  const double flowing = most;
  for (const RateSteps* steps : {&of.limit, &of.guarantee}) {
    if (in_sight(*steps, flowing)) most = std::max(most, *largest_rate(*steps));
  }
  const Axis y = linear_axis(most, rate_units());
  HtmlPlot plot(title, time_axis(sampling.length()), y);
  add_stack(plot, sampling, layers, y);
  add_rule(plot, sampling, of.limit, y, "limit");
  add_rule(plot, sampling, of.guarantee, y, "guarantee");
  add_hints(plot, sampling, layers, rate_units());
  return plot.html();
}

std::string link_plot(const ReportCollector& collected, const LinkHistory& link) {
  const Sampling sampling(collected);
  const std::vector<std::size_t> shown = shown_classes(collected);
  std::vector<Layer> layers;
  Series rest;
  for (std::size_t i = 0; i < collected.classes().size(); ++i) {
    const ClassHistory& of = collected.classes()[i];
    if (of.link != link.name) continue;
    const auto position = std::find(shown.begin(), shown.end(), i);
    if (position == shown.end()) {
      rest.add(of.sent);
    } else {
      layers.push_back(rate_layer(sampling, of.sent, of.name, fmt::format("s{}", position - shown.begin())));
    }
  }
  if (rest.sum() > 0) layers.push_back(rate_layer(sampling, rest, "other classes", "rest"));
  if (layers.empty()) return {};
  const double flowing = largest(totals(layers));
  const Axis y =
      linear_axis(in_sight(link.limit, flowing) ? std::max(flowing, *largest_rate(link.limit)) : flowing, rate_units());
  HtmlPlot plot(fmt::format("Rate on {}", link.name), time_axis(sampling.length()), y);
  add_stack(plot, sampling, layers, y);
  add_rule(plot, sampling, link.limit, y, "limit");
  add_hints(plot, sampling, layers, rate_units());
  return "<div class=\"wide\">" + plot.html() + "</div>\n";
}

}  // namespace

std::string link_plots(const ReportCollector& collected) {
  std::string html;
  for (const LinkHistory& link : collected.links()) html += link_plot(collected, link);
  return html;
}

std::string class_plots(const ReportCollector& collected) {
  std::string html;
  const std::vector<std::size_t> shown = shown_classes(collected);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const ClassHistory& of = collected.classes()[shown[i]];
    const std::string style = fmt::format("s{}", i);
    const std::string words = class_words(collected, shown[i]);
    const Sampling sampling(collected);
    html += "<div class=\"pair\">" + rate_plot(collected, of, fmt::format("{}: rate", words), style);
    const Layer backlog{"", style, rates(sampling, of.backlog, 1)};
    html += stack_plot(collected, fmt::format("{}: backlog", words), {backlog},
                       linear_axis(largest(backlog.values), size_units()), size_units()) +
            "</div>\n";
  }
  return html;
}

std::string drop_plots(const ReportCollector& collected) {
  const Sampling sampling(collected);
  std::vector<Layer> reasons;
  Series marked;
  for (const ClassHistory& of : collected.classes()) marked.add(of.marked);
  for (std::size_t reason = 0; reason < kDropReasons; ++reason) {
    Series drops;
    for (const ClassHistory& of : collected.classes()) drops.add(of.drops.at(reason));
    if (drops.sum() == 0) continue;
    reasons.push_back(
        {std::string(kDropReasonNames.at(reason)), fmt::format("d{}", reason), rates(sampling, drops, 1)});
  }
  const auto plot = [&](const std::string& title, const std::vector<Layer>& layers) {
    Axis y = linear_axis(largest(totals(layers)), plain_units());
    y.unit = "packets/s";
    return stack_plot(collected, title, layers, y, plain_units());
  };
  std::string html;
  if (!reasons.empty()) html += plot("Drops by reason", reasons);
  if (marked.sum() > 0) html += plot("Marked with CE", {{"marked", "marked", rates(sampling, marked, 1)}});
  return html;
}

std::string flow_plots(const ReportCollector& collected) {
  const LargestFlows::Ranking ranking = collected.flows(kMostFlows);
  const std::vector<std::size_t> shown = shown_classes(collected);
  const Sampling sampling(collected);
  std::vector<std::pair<std::string, Layer>> plots;
  for (const LargestFlows::FlowSeries& flow : ranking.largest) {
    if (flow.sent == ByteCount{}) continue;
    const auto position = std::find(shown.begin(), shown.end(), flow.class_index);
    const std::string style = position == shown.end() ? "rest" : fmt::format("s{}", position - shown.begin());
    plots.emplace_back(flow_words(flow.key),
                       rate_layer(sampling, flow.series, class_words(collected, flow.class_index), style));
  }
  double most = 0;  // one scale for all, to be compared
  for (const auto& [title, layer] : plots) most = std::max(most, largest(layer.values));
  std::string html;
  const auto add = [&](const std::string& title, const Layer& layer, double top) {
    html += stack_plot(collected, title, {layer}, linear_axis(top, rate_units()), rate_units());
  };
  for (const auto& [title, layer] : plots) add(title, layer, most);
  if (ranking.rest.sum() == 0) return html;
  const Layer rest = rate_layer(sampling, ranking.rest, "", "rest");
  add("all other flows", rest, largest(rest.values));
  return html;
}

}  // namespace shaper
