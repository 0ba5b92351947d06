// A capture through the core in virtual time: what a machine that is never late would have done with these packets.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "shaper/core/policy.h"
#include "shaper/model/event_log.h"
#include "shaper/model/report.h"
#include "shaper/replay/capture.h"
#include "shaper/replay/figures.h"
#include "shaper/replay/frame.h"
#include "shaper/replay/oddities.h"

namespace shaper {

class ReportCollector;

struct ReplayProgress {
  std::optional<int> percent;  ///< of the file, where its length is known
  std::uint64_t packets = 0;   ///< read
  Nanos simulated{0};          ///< since the first of them
};

struct ReplayOptions {
  LinkIndex link = 0;                                   ///< all packets count as passing it
  std::uint32_t mtu = 1500;                             ///< longer packets are super-packets
  std::string_view policy_text;                         ///< for the event log
  std::span<const event::Name> names;                   ///< of users and groups, for the event log
  std::ostream* events = nullptr;                       ///< gets the event log, if not null
  ReportCollector* report = nullptr;                    ///< is told of packets and verdicts, if not null
  std::function<void(const ReplayProgress&)> progress;  ///< told now and then
};

/// When the last held packet has departed; the warnings tell the oddities.
struct ReplayResult : ReplayFigures {
  std::uint64_t ip_packets = 0;  ///< replayed
  Oddities oddities;
};

/// The error is one line: a damaged capture, or the event log cannot be written.
[[nodiscard]] tl::expected<ReplayResult, std::string> replay_capture(Capture& capture, const Policy& policy,
                                                                     const ReplayOptions& options);

/// Whether the rules let this ICMPv6 packet pass by: neighbour discovery and MLD (types 130-137, 143).
[[nodiscard]] bool is_never_queued(const IpPacket& ip, const Headers& headers);

}  // namespace shaper
