// Any bytes are a packet. Whatever its headers claim, and whatever segment was learnt, its wire size must hold it and
// its frames must not exceed the MTU.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "shaper/core/packet.h"

namespace {

void check(const shaper::Packet& packet, const shaper::Framing& framing, std::uint32_t segment) {
  const shaper::WireSize wire = wire_size(packet, framing, segment);
  if (wire.frames == 0 || wire.bytes.value + 8 < packet.ip_bytes) std::abort();  // a jumbo header may go
  if (wire.frames > 1 && wire.bytes.value > wire.frames * framing.full_frame().value) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shaper;
  Packet packet;
  packet.headers = parse_headers({data, size});
  packet.about = parse_error_about({data, size}, packet.headers);
  for (const std::uint32_t mtu : {0U, 68U, 1280U, 1500U, 9000U, 65536U}) {
    for (const Cells cells : {Cells::none, Cells::atm, Cells::ptm}) {
      const Framing framing{.mtu = mtu, .overhead = 14, .smallest_frame = 64, .cells = cells};
      for (const std::uint32_t length : {0U, 1U, 1500U, 1501U, 65535U, 200000U, 0xffffffffU}) {
        packet.ip_bytes = length;
        packet.super = false;
        check(packet, framing, 0);
        packet.super = true;
        for (const std::uint32_t segment : {0U, 1U, 41U, 576U, 1228U, 0xffffffffU}) check(packet, framing, segment);
      }
    }
  }
  return 0;
}
