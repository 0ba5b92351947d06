// The parts of a table of flows, for those who draw it themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shaper/model/report.h"
#include "shaper/model/tables.h"
#include "shaper/model/text_table.h"

namespace shaper {

/// What many flows send and hold together.
struct FlowTotals {
  std::size_t flows = 0;
  DataRate rate;
  std::uint64_t backlog_packets = 0;
  ByteCount backlog_bytes;

  void add(const FlowReport& flow);
  /// "12 of 50 flows, 5 shown, 94.21 Mbit/s, backlog 61.20 kB in 43 packets"; `of` of them there are.
  [[nodiscard]] std::string text(std::uint64_t of, std::size_t shown) const;
};

/// "10.0.0.1:443", "[2001:d..4:5678]:443": the address is cut where there is no room, the port is always whole.
[[nodiscard]] std::string end_point_text(const std::string& address, std::optional<std::uint16_t> port,
                                         std::size_t width = std::string::npos);

/// A row for each of `flows`, with the columns that `room.columns` holds.
[[nodiscard]] TextTable flow_columns(const std::vector<FlowReport>& flows, const FlowsRoom& room);

}  // namespace shaper
