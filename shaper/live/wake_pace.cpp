#include "shaper/live/wake_pace.h"

#include <optional>
#include <variant>

namespace shaper {
namespace {

/// The time that `rate` takes for what the bucket saves beyond one full frame.
Nanos burst_time(const Burst& burst, DataRate rate, Discipline discipline) {
  if (discipline == Discipline::leaky) return kLeakySlack;
  if (const auto* const bytes = std::get_if<ByteCount>(&burst)) return time_for(rate, *bytes);
  return std::get<Nanos>(burst);
}

}  // namespace

Nanos wake_quantum(const Policy& policy) {
  constexpr int kPart = 4;
  Nanos shortest = kPart * kLongestQuantum;
  const auto consider = [&shortest](const Burst& burst, DataRate rate, Discipline discipline) {
    shortest = std::min(shortest, burst_time(burst, rate, discipline));
  };
  for (const ClassPolicy& cls : policy.classes) {
    if (cls.over != Over::delay) continue;  // its own buckets hold nothing back
    if (const auto limit = cls.limit()) consider(cls.burst, *limit, cls.discipline);
    if (cls.each) consider(cls.each->burst, cls.each->rate, Discipline::token);
  }
  for (const LimitPolicy& limit : policy.limits) consider(limit.burst, limit.rate, limit.discipline);
  return std::max(shortest / kPart, kShortestQuantum);
}

}  // namespace shaper
