// What tells flows apart, and the key of every bucket that is made for some of them.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "shaper/core/packet.h"
#include "shaper/core/siphash.h"

namespace shaper {

/// Not a protocol on any wire: marks flows that many packets without a flow of their own share.
inline constexpr std::uint8_t kSharedFlow = 255;

/// What the packets of a flow have in common. Mark and DSCP belong to it only where the policy asks for them, so that
/// they do not split a flow without need. Also the key of a bucket or of a host, with only its own fields set.
struct FlowKey {
  Address source{};
  Address destination{};
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
  LinkIndex link = 0;
  Family family = Family::other;
  std::uint8_t protocol = 0;
  std::uint32_t mark = 0;
  std::uint32_t dscp = 0;

  using Words = std::array<std::uint64_t, 6>;
  [[nodiscard]] Words words() const { return std::bit_cast<Words>(*this); }
  friend bool operator==(const FlowKey& a, const FlowKey& b) { return a.words() == b.words(); }
};

/// The key of the packet's flow, without mark and DSCP.
[[nodiscard]] inline FlowKey flow_key(const Packet& packet) {
  const Headers& headers = packet.headers;
  return {headers.source,
          headers.destination,
          headers.source_port,
          headers.destination_port,
          packet.link,
          headers.family,
          headers.protocol,
          0,
          0};
}

struct FlowKeyHash {
  HashKey key;
  std::size_t operator()(const FlowKey& flow) const { return siphash(flow.words(), key); }
};

}  // namespace shaper
