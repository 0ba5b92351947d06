// What the upper part of the screen shows: each link with its classes below it, then the limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/top/history.h"
#include "shaper/model/report.h"

namespace shaper::top {

enum class MeterKind : std::uint8_t { link, of_class, limit };

struct Meter {
  MeterKind kind = MeterKind::link;
  std::string name;
  std::string link;  ///< of a class
  DataRate rate;
  std::optional<DataRate> most;  ///< its limit, or what the link has; absent: there is none, or one for each key
  bool full = false;             ///< it takes all that it may
  std::optional<ByteCount> backlog;
  std::optional<Nanos> p99;
  std::string state;                ///< of a limit: what else there is to know
  bool in_trouble = false;          ///< of a limit: Redis does not answer
  std::optional<std::uint64_t> id;  ///< of a live limit
  History history;

  [[nodiscard]] bool is(const Meter& other) const {
    return kind == other.kind && name == other.name && link == other.link;
  }
};

/// Those of `report`; histories go on from those of `before`.
[[nodiscard]] std::vector<Meter> meters_of(const StatusReport& report, std::vector<Meter> before, Instant now);

/// All that is known about one of them, and the daemon's warnings; lines.
[[nodiscard]] std::string meter_text(const Meter& meter, const StatusReport& report);

}  // namespace shaper::top
