// Bytes on their way to a slow reader. A long answer is 50 MB: to copy, send or free that as a whole would stop the
// packets for tens of milliseconds. So it is kept in pieces, each with pages of its own, which the heap does not
// collect and give back to the kernel all at once.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

namespace shaper {

/// Memory straight from the kernel. Throws std::bad_alloc.
[[nodiscard]] void* map_pages(std::size_t bytes);
void unmap_pages(void* pages, std::size_t bytes);

template <typename Value>
struct PageAllocator {
  using value_type = Value;

  PageAllocator() = default;
  template <typename Other>
  explicit PageAllocator(const PageAllocator<Other>&) {}

  [[nodiscard]] Value* allocate(std::size_t count) { return static_cast<Value*>(map_pages(count * sizeof(Value))); }
  void deallocate(Value* values, std::size_t count) { unmap_pages(values, count * sizeof(Value)); }
  friend bool operator==(const PageAllocator&, const PageAllocator&) { return true; }
};

class Outbox {
 public:
  void add(std::string_view bytes);

  /// Everything of `other`, which is empty afterwards.
  void add_all(Outbox&& other);

  /// Sends what the socket takes, but no more than a few hundred kilobytes at once. False: the reader is gone.
  [[nodiscard]] bool send_to(int socket);

  /// Forgets some of it and gives its memory back; true while there is more.
  bool drop_piece();

  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] bool empty() const { return bytes_ == 0; }

 private:
  using Piece = std::basic_string<char, std::char_traits<char>, PageAllocator<char>>;

  std::deque<Piece> pieces_;  // the last one may be empty: it is used again
  std::size_t sent_ = 0;      // of the first one
  std::size_t bytes_ = 0;     // that are not sent
};

}  // namespace shaper
