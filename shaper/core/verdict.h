// What the core decides about a packet, and why a packet is dropped.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "shaper/core/packet.h"
#include "shaper/core/units.h"

namespace shaper {

enum class DropReason : std::uint8_t {
  policed,    ///< above the rate of a class with over = "drop"
  backlog,    ///< the class holds as many bytes as it may, and this flow holds most of them
  max_delay,  ///< waited longer than the class allows
  held,       ///< the link holds as many packets as the kernel queue bears
  aqm,        ///< CoDel: the flow's queue has been too long for an interval
  refused,    ///< a limit over all hosts refuses everything while its Redis does not answer
};
inline constexpr std::size_t kDropReasons = 6;
/// The names of the reasons in reports, in the order of the enumeration.
inline constexpr std::array<std::string_view, kDropReasons> kDropReasonNames{"policed", "backlog", "max_delay",
                                                                             "held",    "aqm",     "refused"};

enum class Decision : std::uint8_t {
  accept,  ///< departs now
  drop,
  detour,  ///< to the link's split queue; comes back in pieces and is counted then
  pass,    ///< let go unmetered: the shaper goes away
  mark,    ///< departs now, and tells of congestion: CE instead of a drop (RFC 3168)
};

/// Whether the packet departs, charged.
[[nodiscard]] constexpr bool departs(Decision decision) {
  return decision == Decision::accept || decision == Decision::mark;
}

/// One verdict. Everything but `id` and `decision` is for the event log and for counting what the kernel lost.
struct Verdict {
  PacketId id;
  Decision decision = Decision::accept;
  DropReason reason = DropReason::policed;  ///< meant for drops only
  std::uint32_t frames = 1;
  ClassIndex class_index = 0;
  ByteCount wire_bytes;
  Nanos delay{0};
  std::uint32_t fwmark = 0;  ///< of the packet when it arrived; told with Decision::mark only

  friend bool operator==(const Verdict&, const Verdict&) = default;
};

/// Filled by the core, sent and cleared by its driver, used again: no allocation once it has grown.
using Verdicts = std::vector<Verdict>;

}  // namespace shaper
