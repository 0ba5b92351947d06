// Which flows a reader wants to see, in which order, and how fast they were between two looks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shaper/core/policy.h"
#include "shaper/model/report.h"

namespace shaper {

/// The largest comes first: rate, bytes on the wire, packets, bytes that wait, the 99th percentile of the delay,
/// dropped packets, time since the first packet.
enum class FlowSort : std::uint8_t { rate, bytes, packets, backlog, delay, drops, age };

[[nodiscard]] std::optional<FlowSort> parse_flow_sort(std::string_view word);
[[nodiscard]] std::string_view flow_sort_name(FlowSort sort);
/// "rate, bytes, ... or age"
[[nodiscard]] std::string flow_sorts();

/// Equal ones by bytes. `reverse`: the smallest comes first.
void sort_flows(std::vector<FlowReport>& flows, FlowSort by, bool reverse = false);

/// What is absent is not asked; everything that is asked must hold.
struct FlowFilter {
  std::optional<std::string> of_class;
  std::optional<Prefix> address;       ///< of either side
  std::optional<std::uint16_t> port;   ///< of either side
  std::vector<std::string> protocols;  ///< one of them, as flows have it
  std::vector<std::string> users;      ///< one of them, as flows have it
  std::optional<std::string> text;     ///< in any word of the flow, whatever its case

  [[nodiscard]] bool matches(const FlowReport& flow) const;
};

/// Sets the rates in `after` to the mean on the wire since `before`, which was taken at `since` (RFC 3339), `elapsed`
/// ago. A flow that began since then has sent all its bytes since. One that is older and was not listed then, because
/// it had been silent for long, keeps its rate over the last second.
void set_mean_rates(const FlowsReport& before, FlowsReport& after, const std::string& since, Nanos elapsed);

}  // namespace shaper
