// Storage for held packets: freed places are used again, so that holding a packet allots nothing in steady state.
#pragma once

#include <deque>

#include "shaper/core/flow.h"

namespace shaper {

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
