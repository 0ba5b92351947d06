// A binary heap of borrowed items that know their place in it, so that one can be moved or taken out in O(log n).
//
// `Order` has before(a, b), true when a must stand nearer to the top, and place(item), a reference to the item's
// std::uint32_t that this heap alone writes: 0 while the item is outside, else its place counted from 1.
#pragma once

#include <cassert>
#include <cstdint>
#include <utility>
#include <vector>

namespace shaper {

template <typename Item, typename Order>
class IndexedHeap {
 public:
  [[nodiscard]] bool empty() const { return items_.empty(); }
  [[nodiscard]] Item& top() const { return *items_.front(); }
  [[nodiscard]] static bool holds(Item& item) { return Order::place(item) != 0; }

  /// Puts `item` in, or moves it after its key has changed.
  void update(Item& item) {
    if (!holds(item)) {
      items_.push_back(&item);
      Order::place(item) = static_cast<std::uint32_t>(items_.size());
    }
    sink(rise(Order::place(item) - 1));
  }

  /// Takes `item` out, if it is in.
  void remove(Item& item) {
    if (!holds(item)) return;
    const std::size_t hole = Order::place(item) - 1;
    Order::place(item) = 0;
    Item* last = items_.back();
    items_.pop_back();
    if (last == &item) return;
    put(hole, last);
    sink(rise(hole));
  }

 private:
  void put(std::size_t at, Item* item) {
    items_[at] = item;
    Order::place(*item) = static_cast<std::uint32_t>(at + 1);
  }

  std::size_t rise(std::size_t at) {
    while (at > 0) {
      const std::size_t parent = (at - 1) / 2;
      if (!Order::before(*items_[at], *items_[parent])) break;
      exchange(at, parent);
      at = parent;
    }
    return at;
  }

  void sink(std::size_t at) {
    for (;;) {
      std::size_t first = at;
      for (const std::size_t child : {2 * at + 1, 2 * at + 2}) {
        if (child < items_.size() && Order::before(*items_[child], *items_[first])) first = child;
      }
      if (first == at) return;
      exchange(at, first);
      at = first;
    }
  }

  void exchange(std::size_t a, std::size_t b) {
    Item* item = items_[a];
    put(a, items_[b]);
    put(b, item);
  }

  std::vector<Item*> items_;
};

}  // namespace shaper
