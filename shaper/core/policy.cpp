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

std::optional<DataRate> Policy::smallest_rate(const ClassPolicy& cls) const {
  std::optional<DataRate> smallest = links[cls.link].rate;
  const auto consider = [&](std::optional<DataRate> rate) {
    if (rate && (!smallest || *rate < *smallest)) smallest = rate;
  };
  if (cls.over != Over::count) {
    consider(cls.limit());
    if (cls.each) consider(cls.each->rate);
  }
  for (const LimitIndex limit : cls.limits) {
    if (limits[limit].match.empty()) consider(limits[limit].rate);
  }
  return smallest;
}

DataRate sum_of_guarantees(std::span<const ClassPolicy> classes, LinkIndex link) {
  DataRate sum;
  for (const ClassPolicy& cls : classes) {
    if (cls.link == link && !cls.is_guard) sum.bits_per_second += cls.guarantee().value_or(DataRate{}).bits_per_second;
  }
  return sum;
}

DataRate guarantee_in_force(DataRate asked, DataRate sum, DataRate rate) {
  if (sum <= rate) return asked;
  const Uint128 product = static_cast<Uint128>(asked.bits_per_second) * rate.bits_per_second;
  return {static_cast<std::uint64_t>(product / sum.bits_per_second)};
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
