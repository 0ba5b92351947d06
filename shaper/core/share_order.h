// Who is next among classes that share a bucket: the lower priority number first, and within a priority in proportion
// to their weights.
//
// Start-time fair queueing (P. Goyal, H. Vin, H. Cheng, 1996): each class has a tag that grows by length / weight when
// it is served, the smallest tag is next, and who comes back from idling starts at the tag that was served last. No
// quantum has to fit both the smallest and the largest weight (300 bit/s to 400 Gbit/s on one link), and classes take
// turns by the packet, not by bursts.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "shaper/core/indexed_heap.h"
#include "shaper/core/policy.h"
#include "shaper/core/units.h"

namespace shaper {

struct ScheduledClass;

/// A class's place in one such order.
struct Seat {
  Seat(ScheduledClass& whose, std::uint8_t of_priority, ClassIndex index, DataRate weight)
      : owner(&whose),
        priority(of_priority),
        class_index(index),
        cost((kScale * kNanobitsPerByte) / weight.bits_per_second) {}

  static constexpr Uint128 kScale = Uint128{1} << 32;

  ScheduledClass* owner;
  std::uint8_t priority;
  ClassIndex class_index;  ///< decides where all else is equal
  std::uint64_t turn = 0;  ///< counts services: who was served longer ago goes first where tags are equal
  std::uint32_t place = 0;
  Uint128 cost;     ///< of a byte: nanoseconds at the weight, in units of 2^-32
  Uint128 tag = 0;  ///< the same unit: 2^128 of it are 10^13 packets at the slowest rate
};

class ShareOrder {
 public:
  [[nodiscard]] bool empty() const { return waiting_.empty(); }
  [[nodiscard]] Seat& first() const { return waiting_.top(); }
  [[nodiscard]] static bool holds(const Seat& seat) { return seat.place != 0; }

  /// Whether `seat` would be first if it joined now.
  [[nodiscard]] bool would_be_first(Seat& seat) {
    catch_up(seat);
    return empty() || Before::before(seat, first());
  }

  void join(Seat& seat) {
    catch_up(seat);
    waiting_.update(seat);
  }
  void leave(Seat& seat) { waiting_.remove(seat); }

  /// The class, which is not in the order now, sent `length`.
  void served(Seat& seat, ByteCount length) {
    catch_up(seat);
    latest_[seat.priority] = seat.tag;
    seat.tag += seat.cost * length.value;
    seat.turn = ++turns_;
  }

 private:
  struct Before {
    static bool before(const Seat& a, const Seat& b) {
      if (a.priority != b.priority) return a.priority < b.priority;
      if (a.tag != b.tag) return a.tag < b.tag;
      if (a.turn != b.turn) return a.turn < b.turn;
      return a.class_index < b.class_index;
    }
    static std::uint32_t& place(Seat& seat) { return seat.place; }
  };

  void catch_up(Seat& seat) const { seat.tag = std::max(seat.tag, latest_[seat.priority]); }

  std::array<Uint128, kPriorities> latest_{};  // tag that was served
  std::uint64_t turns_ = 0;
  IndexedHeap<Seat, Before> waiting_;
};

}  // namespace shaper
