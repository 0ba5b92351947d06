// A flow of a listing as the packet that `shaper explain` is asked about, and as the selector of a live limit.
#pragma once

#include <optional>
#include <string>

#include "shaper/model/config.h"
#include "shaper/model/packet_text.h"
#include "shaper/model/report.h"

namespace shaper::top {

/// The same flow in another listing. Flows that only a mark tells apart are taken for one.
[[nodiscard]] bool same_flow(const FlowReport& a, const FlowReport& b);

/// A packet of the flow on its link. Nothing: it is neither IPv4 nor IPv6. Group, mark and DSCP are not known.
[[nodiscard]] std::optional<PacketQuestion> question_of(const FlowReport& flow, const NameLookup& names);

/// "protocol=tcp,local=10.0.0.1,local_port=40000,remote=10.0.0.2,remote_port=443". Nothing: as above.
[[nodiscard]] std::optional<std::string> selector_of(const FlowReport& flow, Direction direction);

/// "tcp 10.0.0.1:40000 > 10.0.0.2:443", for people.
[[nodiscard]] std::string flow_name(const FlowReport& flow);

}  // namespace shaper::top
