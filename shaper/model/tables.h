// Reports as aligned text for people.
//
// A column of numbers has one unit, chosen by its largest value and written under the column's title. Strings that
// came from outside are escaped, so that no name can steer the terminal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shaper/model/report.h"

namespace shaper {

/// What `shaper flows --sort` orders by, the largest first: rate, bytes on the wire, dropped packets, the 99th
/// percentile of the delay.
enum class FlowSort : std::uint8_t { rate, bytes, drops, delay };

[[nodiscard]] std::optional<FlowSort> parse_flow_sort(std::string_view word);

/// Sorts `flows` and keeps the first `most` of them (all if absent).
void sort_flows(std::vector<FlowReport>& flows, FlowSort by, std::optional<std::size_t> most);

[[nodiscard]] std::string status_table(const StatusReport& report);

/// `report.flows` in the order given, and a line that counts those that are not shown.
[[nodiscard]] std::string flows_table(const FlowsReport& report);

[[nodiscard]] std::string cluster_table(const ClusterReport& report);

/// `text` with everything but printable ASCII (and the backslash) as \xNN.
[[nodiscard]] std::string terminal_text(std::string_view text);

}  // namespace shaper
