// The rate law, checked from outside over every window of time.
//
// A bucket of depth d and rate r lets at most d + r t pass in any window of t seconds. Let f be what has passed minus
// r t, in nanobits. The law says that f never rises by more than d; so it is enough to remember the lowest f so far and
// to compare at each departure. Exact integers, no allowance.
//
// The depth is one full frame plus the burst; a packet larger than that makes it that packet plus the burst from its
// arrival on.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "shaper/core/shaper.h"

namespace shaper::sim {

__extension__ using Int128 = __int128;

/// One bucket seen from outside.
class Meter {
 public:
  Meter(DataRate rate, ByteCount frame, const Burst& burst)
      : rate_{rate.bits_per_second}, burst_{burst_bytes(burst, rate).value}, depth_{frame.value + burst_} {}

  /// A packet has arrived.
  void seen(ByteCount packet) {
    if (packet.value > depth_) depth_ = packet.value + burst_;
  }

  /// A packet of this size may have been seen while the depth was another one.
  void may_have_seen(ByteCount packet) { depth_ = std::max(depth_, packet.value + burst_); }

  /// A packet departs. False if some window that ends now holds more than it may.
  [[nodiscard]] bool charge(Instant when, ByteCount bytes) {
    const Int128 accrued = Int128{rate_} * when.time_since_epoch().count();
    lowest_ = lowest_ ? std::min(*lowest_, passed_ - accrued) : passed_ - accrued;
    passed_ += Int128{bytes.value} * kNanobitsPerByte;
    excess_ = std::max(excess_, passed_ - accrued - *lowest_);
    return passed_ - accrued - *lowest_ <= Int128{depth_} * kNanobitsPerByte;
  }

  [[nodiscard]] ByteCount depth() const { return {depth_}; }

  /// The most that any window held above rate x time, rounded up: the depth that was really used.
  [[nodiscard]] ByteCount excess() const {
    return {static_cast<std::uint64_t>((excess_ + kNanobitsPerByte - 1) / kNanobitsPerByte)};
  }

 private:
  std::uint64_t rate_;
  std::uint64_t burst_;
  std::uint64_t depth_;
  Int128 passed_ = 0;
  Int128 excess_ = 0;
  std::optional<Int128> lowest_;
};

/// What packets of one `each` bucket have in common, worked out without the core.
inline std::pair<Headers, int> each_key(const Headers& headers, const Each& each, Direction direction) {
  Headers key;
  key.family = headers.family;
  if (each.by == EachBy::flow) {
    key.source = headers.source;
    key.destination = headers.destination;
    key.source_port = headers.source_port;
    key.destination_port = headers.destination_port;
    key.protocol = headers.protocol;
    return {key, 0};
  }
  const bool egress = direction == Direction::egress;
  const bool source = each.by == EachBy::source || each.by == (egress ? EachBy::local : EachBy::remote);
  const unsigned bits = headers.family == Family::ipv4 ? each.bits_ipv4 : each.bits_ipv6;
  key.source = source ? headers.source : headers.destination;
  for (unsigned bit = bits; bit < 128; ++bit) {
    std::uint8_t& byte = key.source[bit / 8];
    byte = static_cast<std::uint8_t>(byte & ~(0x80U >> (bit % 8)));
  }
  return {key, 1};
}

/// All buckets of a policy. Below kManyFlows flows of one class may have to share `each` buckets: the totals are
/// checked.
class RateLaw {
 public:
  static constexpr std::uint32_t kManyFlows = 1'000;

  explicit RateLaw(const Policy& policy) : policy_{policy}, classes_(policy.classes.size()) {}

  /// The law of the policy that follows `before`: a class that keeps its name may keep the depth for its largest
  /// packet, and when that made the depth grow is not known here.
  RateLaw(const Policy& policy, const RateLaw& before) : RateLaw(policy) {
    follows_ = true;
    for (ClassIndex now = 0; now < classes_.size(); ++now) {
      for (ClassIndex then = 0; then < before.classes_.size(); ++then) {
        if (policy_.classes[now].name == before.policy_.classes[then].name) {
          classes_[now].largest = std::max(classes_[now].largest, before.classes_[then].largest);
        }
      }
    }
  }

  /// A packet of this class has arrived.
  void seen(ClassIndex index, ByteCount bytes, ByteCount frame) {
    Class& entry = classes_[index];
    entry.frame = frame;
    entry.largest = std::max(entry.largest, bytes);
    const ClassPolicy& policy = policy_.classes[index];
    if (policy.limit() && !entry.total) entry.total.emplace(*policy.limit(), frame, policy.burst);
    if (entry.total) seen(*entry.total, entry.largest);
  }

  /// A packet departs. The name of the bucket that it breaks, or nothing.
  [[nodiscard]] std::string charge(ClassIndex index, const Packet& packet, Instant when, ByteCount bytes) {
    const ClassPolicy& policy = policy_.classes[index];
    Class& entry = classes_[index];
    if (policy.over == Over::count) return {};
    if (entry.total && !entry.total->charge(when, bytes)) return "the total of class " + policy.name;
    if (!policy.each || policy_.max_flows < kManyFlows) return {};
    const auto [key, kind] = each_key(packet.headers, *policy.each, policy_.links[policy.link].direction);
    const auto bytes_of_key = std::make_pair(
        std::string(key.source.begin(), key.source.end()) + std::string(key.destination.begin(), key.destination.end()),
        std::array<int, 4>{static_cast<int>(key.family), key.source_port, key.destination_port, key.protocol});
    Meter& meter =
        entry.each.try_emplace(bytes_of_key, policy.each->rate, entry.frame, policy.each->burst).first->second;
    seen(meter, entry.largest);
    return meter.charge(when, bytes) ? std::string{} : "an each bucket of class " + policy.name;
  }

  [[nodiscard]] const std::optional<Meter>& total(ClassIndex index) const { return classes_[index].total; }

 private:
  struct Class {
    ByteCount frame;
    ByteCount largest;
    std::optional<Meter> total;
    std::map<std::pair<std::string, std::array<int, 4>>, Meter> each;
  };

  void seen(Meter& meter, ByteCount largest) const { follows_ ? meter.may_have_seen(largest) : meter.seen(largest); }

  Policy policy_;
  bool follows_ = false;
  std::vector<Class> classes_;
};

}  // namespace shaper::sim
