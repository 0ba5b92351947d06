// Any bytes are a datagram from the kernel. A payload must lie inside it; an answer's errno must be one.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "shaper/live/nfqueue_wire.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shaper;
  const NfqueueMessage message = parse_nfqueue_message({data, size});
  if (const auto* packet = std::get_if<QueuedPacket>(&message)) {
    const std::uint8_t* const end = packet->payload.data() + packet->payload.size();
    if (!packet->payload.empty() && (packet->payload.data() < data || end > data + size)) std::abort();
    if (packet->ip_bytes < packet->payload.size()) std::abort();
    (void)parse_headers(packet->payload);
  } else if (const auto* reply = std::get_if<ErrorReply>(&message)) {
    if (reply->error < 0 || reply->error > 4095) std::abort();
    if (reply->packet && reply->packet->queue != reply->queue) std::abort();
  }
  (void)parse_queue_counters({reinterpret_cast<const char*>(data), size}, 7000);
  return 0;
}
