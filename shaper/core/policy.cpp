#include "shaper/core/policy.h"

#include <algorithm>

namespace shaper {

Address masked(const Address& address, unsigned bits) {
  Address kept{};
  for (std::size_t i = 0; i < kept.size() && bits > 0; ++i) {
    const unsigned now = std::min(bits, 8U);
    kept[i] = static_cast<std::uint8_t>(address[i] & (0xff << (8 - now)));
    bits -= now;
  }
  return kept;
}

std::optional<DataRate> ClassPolicy::smallest_rate() const {
  const std::optional<DataRate> total = limit();
  if (!each) return total;
  return total ? std::min(*total, each->rate) : each->rate;
}

Nanos default_max_delay(DataRate rate, ByteCount full_frame) {
  constexpr ByteCount kLocalTcpBacklog{512 * 1024};
  return std::max({Nanos{std::chrono::milliseconds{250}}, time_for(rate, {10 * full_frame.value}),
                   time_for(rate, kLocalTcpBacklog)});
}

ByteCount burst_bytes(const Burst& burst, DataRate rate) {
  if (const Nanos* time = std::get_if<Nanos>(&burst)) return bytes_in(rate, *time);
  return std::get<ByteCount>(burst);
}

}  // namespace shaper
