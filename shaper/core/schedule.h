// What the parts of the scheduler share: who wants to be looked at again and when, which classes have changed, which
// buckets have let packets go that may not have left yet.
#pragma once

#include <vector>

#include "shaper/core/held_packets.h"
#include "shaper/core/indexed_heap.h"
#include "shaper/core/meter.h"
#include "shaper/core/units.h"

namespace shaper {

class ClassQueue;

/// Something that is looked at again at a time: a bucket with sleeping flows, a class that waits for its ceil, a limit
/// with waiting classes, a link.
struct Alarm {
  enum class Of : std::uint8_t { bucket, ceil, limit, link };

  explicit Alarm(Of whose) : of(whose) {}

  Of of;
  std::uint32_t place = 0;  ///< in the heap of alarms
  Instant when;
};

struct EarlierAlarm {
  static bool before(const Alarm& a, const Alarm& b) { return a.when < b.when; }
  static std::uint32_t& place(Alarm& alarm) { return alarm.place; }
};

struct Schedule {
  IndexedHeap<Alarm, EarlierAlarm> alarms;
  std::vector<ClassQueue*> changed;  ///< what they would send next is to be worked out again
  std::vector<Meter*> spent;         ///< charged since the last on_departed()
  HeldPackets held;

  void set(Alarm& alarm, Instant when) {
    alarm.when = when;
    alarms.update(alarm);
  }

  /// A packet that the credit covers departs.
  void charge(Meter& meter, ByteCount length, Instant now) {
    meter.accrue(now);  // what it could not keep while the packet waited elsewhere is lost, not earned now
    if (meter.charge(length)) spent.push_back(&meter);
  }

  void departed(Instant at) {
    for (Meter* meter : spent) meter->departed(at);
    spent.clear();
  }
};

}  // namespace shaper
