// A capture through the core in virtual time: what a machine that is never late would have done with these packets.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "shaper/core/policy.h"
#include "shaper/model/event_log.h"
#include "shaper/model/report.h"
#include "shaper/replay/capture.h"

namespace shaper {

struct ReplayOptions {
  LinkIndex link = 0;                  ///< all packets count as passing it
  std::uint32_t mtu = 1500;            ///< longer packets are super-packets
  std::string_view policy_text;        ///< for the event log
  std::span<const event::Name> names;  ///< of users and groups, for the event log
  std::ostream* events = nullptr;      ///< gets the event log, if not null
  std::function<void(int)> progress;   ///< told now and then how much of the file is read, in percent
};

struct ReplayResult {
  StatusReport status;  ///< when the last held packet has departed
  FlowsReport flows;
  std::uint64_t ip_packets = 0;
  std::uint64_t other_frames = 0;  ///< no IP: not replayed
  std::uint64_t never_queued = 0;  ///< neighbour discovery and MLD: not replayed
  std::uint64_t late_stamps = 0;   ///< packets with a time before that of the packet in front: replayed at the latter's
};

/// The error is one line: a damaged capture, or the event log cannot be written.
[[nodiscard]] tl::expected<ReplayResult, std::string> replay_capture(Capture& capture, const Policy& policy,
                                                                     const ReplayOptions& options);

/// Whether the rules let this ICMPv6 packet pass by: neighbour discovery and MLD (types 130-137, 143).
[[nodiscard]] bool is_never_queued(const IpPacket& ip, const Headers& headers);

}  // namespace shaper
