// Reports as aligned text for people.
//
// A column of numbers has one unit, chosen by its largest value and written under the column's title. Strings that
// came from outside are escaped, so that no name can steer the terminal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "shaper/model/report.h"

namespace shaper {

[[nodiscard]] std::string status_table(const StatusReport& report);

/// What there is room for; absent: everything is shown.
struct FlowsRoom {
  std::optional<std::size_t> columns;  ///< of characters
  std::optional<std::size_t> flows;
  bool dense = false;  ///< one space between columns, drops by reason
};

/// A line of totals, the first flows of `report` in the order given, and how many more there are. Where columns are
/// few, the least important ones are left out and addresses are cut in the middle.
[[nodiscard]] std::string flows_table(const FlowsReport& report, const FlowsRoom& room = {});

/// "398 aqm, 14 max_delay", the most frequent reason first.
[[nodiscard]] std::string drop_reasons(const DropCounts& drops);

/// A line for everything that happened to packets of these classes but being sent.
[[nodiscard]] std::string exceptions_text(const std::vector<ClassReport>& classes);

[[nodiscard]] std::string cluster_table(const ClusterReport& report);

/// `text` with everything but printable ASCII (and the backslash) as \xNN.
[[nodiscard]] std::string terminal_text(std::string_view text);

}  // namespace shaper
