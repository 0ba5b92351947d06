// Held packets and their storage: freed places are used again, so that holding a packet allots nothing in steady state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "shaper/core/packet.h"
#include "shaper/core/units.h"

namespace shaper {

/// A packet that waits in a flow queue.
struct HeldPacket {
  PacketId id;
  std::uint32_t frames = 1;
  std::uint32_t ip_bytes = 0;
  ByteCount wire_bytes;
  Instant arrival;
  HeldPacket* behind = nullptr;
  std::uint32_t fwmark = 0;
  bool can_be_marked = false;  ///< its sender understands CE: ECT(0), ECT(1), or CE already

  template <typename Image>
  void carry(Image& image);
};

class HeldPackets {
 public:
  HeldPacket& take() {
    ++count_;
    if (free_ == nullptr) return places_.emplace_back();
    HeldPacket& packet = *free_;
    free_ = packet.behind;
    return packet;
  }

  void give_back(HeldPacket& packet) {
    --count_;
    packet.behind = free_;
    free_ = &packet;
  }

  [[nodiscard]] std::size_t count() const { return count_; }

 private:
  std::deque<HeldPacket> places_;
  HeldPacket* free_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace shaper
