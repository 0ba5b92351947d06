// A doubly linked list through two members of its items: joining and leaving is O(1) and allots nothing.
#pragma once

namespace shaper {

template <typename Item, Item* Item::*Previous, Item* Item::*Next>
class IntrusiveList {
 public:
  [[nodiscard]] bool empty() const { return first_ == nullptr; }
  [[nodiscard]] Item* front() const { return first_; }
  [[nodiscard]] static Item* next(const Item& item) { return item.*Next; }

  void push_back(Item& item) { link(item, last_, nullptr); }
  void push_front(Item& item) { link(item, nullptr, first_); }

  void remove(Item& item) {
    (item.*Previous != nullptr ? (item.*Previous)->*Next : first_) = item.*Next;
    (item.*Next != nullptr ? (item.*Next)->*Previous : last_) = item.*Previous;
    item.*Previous = item.*Next = nullptr;
  }

 private:
  void link(Item& item, Item* previous, Item* next) {
    item.*Previous = previous;
    item.*Next = next;
    (previous != nullptr ? previous->*Next : first_) = &item;
    (next != nullptr ? next->*Previous : last_) = &item;
  }

  Item* first_ = nullptr;
  Item* last_ = nullptr;
};

}  // namespace shaper
