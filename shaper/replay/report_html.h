// A report of a replay as one HTML page: no script, nothing from outside, readable without colours and on paper.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shaper/replay/figures.h"
#include "shaper/replay/report_collector.h"

namespace shaper {

struct ReplayReport {
  std::string title;                                       ///< of the capture or log: its file name
  std::vector<std::pair<std::string, std::string>> facts;  ///< what was replayed: a word, and what is so
  std::string policy_name;
  std::string policy_text;
  const ReplayFigures& figures;  ///< its warnings are told on top
  const ReportCollector& collected;
};

/// All texts of the report are escaped.
[[nodiscard]] std::string report_html(const ReplayReport& report);

}  // namespace shaper
