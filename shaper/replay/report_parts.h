// The parts of a report page, as HTML; and what they have in common.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "shaper/replay/html_plot.h"
#include "shaper/replay/report_html.h"

namespace shaper {

/// So many classes have a colour and a plot of their own.
inline constexpr std::size_t kMostClasses = 7;
inline constexpr std::size_t kMostFlows = 10;
inline constexpr std::size_t kMostFlowRows = 20;

/// Of the classes that packets came to those that sent most, in the policy's order: positions in classes().
[[nodiscard]] std::vector<std::size_t> shown_classes(const ReportCollector& collected);
/// `backup`, or `backup on up` where there are several links.
[[nodiscard]] std::string class_words(const ReportCollector& collected, std::size_t index);
/// `tcp 10.0.0.1:40000 > 10.0.0.2:443`
[[nodiscard]] std::string flow_words(const FlowKey& key);
[[nodiscard]] std::string percent_words(double part);

// report_charts.cpp: curves over time
[[nodiscard]] std::string link_plots(const ReportCollector& collected);
[[nodiscard]] std::string class_plots(const ReportCollector& collected);
[[nodiscard]] std::string drop_plots(const ReportCollector& collected);
[[nodiscard]] std::string flow_plots(const ReportCollector& collected);

// report_delay.cpp
[[nodiscard]] std::string delay_plot(const ReplayReport& report);

// report_tables.cpp
[[nodiscard]] std::string class_table(const ReplayReport& report);
[[nodiscard]] std::string delay_table(const StatusReport& status);
[[nodiscard]] std::string drop_table(const StatusReport& status);
[[nodiscard]] std::string flow_table(const FlowsReport& flows);

}  // namespace shaper
