// Any bytes are a packet. Whatever its headers claim, its wire size must hold it and its frames must not exceed the
// MTU.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "shaper/core/packet.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shaper;
  Packet packet;
  packet.headers = parse_headers({data, size});
  for (const std::uint32_t mtu : {0U, 68U, 1280U, 1500U, 9000U, 65536U}) {
    const Framing framing{.mtu = mtu, .overhead = 14, .smallest_frame = 64};
    for (const std::uint32_t length : {0U, 1U, 1500U, 1501U, 65535U, 200000U, 0xffffffffU}) {
      packet.ip_bytes = length;
      packet.super = !packet.super;
      const WireSize wire = wire_size(packet, framing);
      if (wire.frames == 0 || wire.bytes.value + 8 < length) std::abort();  // a jumbo header may go
      if (wire.frames > 1 && wire.bytes.value > wire.frames * framing.full_frame().value) std::abort();
    }
  }
  return 0;
}
