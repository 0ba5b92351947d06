#include "shaper/replay/report_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "shaper/model/address_text.h"
#include "shaper/model/plain_text.h"
#include "shaper/model/units_text.h"
#include "shaper/replay/report_page.h"
#include "shaper/replay/report_parts.h"
#include "shaper/replay/sampling.h"

namespace shaper {
namespace {

double volume(const ClassHistory& of) {
  double drops = 0;
  for (const Series& each : of.drops) drops += each.sum();
  return of.sent.sum() + drops;
}

std::string facts_list(const ReplayReport& report) {
  std::string html;
  for (const auto& [word, value] : report.facts) {
    html += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", html_escape(word), html_escape(value));
  }
  return html;
}

std::string warnings(const StatusReport& status) {
  if (status.warnings.empty()) return {};
  std::string html = "<ul class=\"warnings\">\n";
  for (const std::string& each : status.warnings) html += "<li>" + html_escape(each) + "</li>\n";
  return html + "</ul>\n";
}

std::string drops(const ReplayReport& report) {
  const std::string plots = drop_plots(report.collected);
  return (plots.empty() ? "<p>Nothing was dropped, and nothing marked.</p>\n" : plots) +
         drop_table(report.figures.status);
}

std::string notes(const ReplayReport& report) {
  const Nanos width = Sampling(report.collected).width();
  std::string html = fmt::format("Each point of a curve is the mean over {}.", format_time(width));
  if (report.collected.policies() > 1) {
    html += fmt::format(
        " The policy was changed in between (changes: {}); the last one is shown, and curves go on "
        "where a class keeps its name and link.",
        report.collected.policies() - 1);
  }
  if (const std::size_t held = report.collected.held(); held > 0) {
    html += fmt::format(" {} packets were still held at the end, and are in no curve.", held);
  }
  return html;
}

/// Fills the places `{{word}}` of the page, each once: what was put in is not looked at again.
std::string fill(std::string_view page, const std::map<std::string_view, std::string>& parts) {
  std::string html;
  for (;;) {
    const std::size_t begin = page.find("{{");
    html += page.substr(0, begin);
    if (begin == std::string_view::npos) return html;
    const std::size_t end = page.find("}}", begin);
    html += parts.at(page.substr(begin + 2, end - begin - 2));
    page.remove_prefix(end + 2);
  }
}

}  // namespace

std::vector<std::size_t> shown_classes(const ReportCollector& collected) {
  std::vector<std::size_t> shown;
  const std::vector<ClassHistory>& classes = collected.classes();
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (volume(classes[i]) > 0) shown.push_back(i);
  }
  std::stable_sort(shown.begin(), shown.end(),
                   [&](std::size_t a, std::size_t b) { return volume(classes[a]) > volume(classes[b]); });
  shown.resize(std::min(shown.size(), kMostClasses));
  std::sort(shown.begin(), shown.end());
  return shown;
}

std::string class_words(const ReportCollector& collected, std::size_t index) {
  const ClassHistory& of = collected.classes().at(index);
  return collected.links().size() > 1 ? fmt::format("{} on {}", of.name, of.link) : of.name;
}

std::string flow_words(const FlowKey& key) {
  return fmt::format("{} {} > {}", protocol_name(key.protocol),
                     format_end_point({key.family, key.source, key.source_port}),
                     format_end_point({key.family, key.destination, key.destination_port}));
}

std::string percent_words(double part) {
  return fmt::format("{:.{}f} %", part * 100, part > 0 && part < 0.1 ? 2 : 1);
}

std::string report_html(const ReplayReport& report) {
  return fill(kReportPage, {{"style", std::string(kReportStyle)},
                            {"title", html_escape(report.title)},
                            {"facts", facts_list(report)},
                            {"warnings", warnings(report.figures.status)},
                            {"links", link_plots(report.collected)},
                            {"class_table", class_table(report)},
                            {"classes", class_plots(report.collected)},
                            {"delay", delay_plot(report)},
                            {"delay_table", delay_table(report.figures.status)},
                            {"drops", drops(report)},
                            {"flows", flow_plots(report.collected)},
                            {"flow_table", flow_table(report.figures.flows)},
                            {"notes", notes(report)},
                            {"policy_name", html_escape(report.policy_name)},
                            {"policy", html_escape(report.policy_text)},
                            {"version", html_escape(report.figures.status.version)}});
}

}  // namespace shaper
