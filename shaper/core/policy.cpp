#include "shaper/core/policy.h"

#include <algorithm>

namespace shaper {

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
