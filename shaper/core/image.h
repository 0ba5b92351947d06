// The state of a worker as bytes, for the process that goes on with it.
//
// What goes over is named once, in functions `carry(image)` that a writer and a reader walk alike. Values go as they
// lie in memory: both processes run here, and kImageLayout tells whether their programs agree on what that means.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace shaper {

/// Of the programs that understand each other's images. Raise it when a carry() or what it carries changes.
#ifdef SHAPER_IMAGE_LAYOUT  // a program for tests
inline constexpr std::uint32_t kImageLayout = SHAPER_IMAGE_LAYOUT;
#else
inline constexpr std::uint32_t kImageLayout = 5;
#endif

template <typename Value>
concept Plain = std::is_trivially_copyable_v<Value> && !std::is_pointer_v<Value>;

class ImageWriter {
 public:
  static constexpr bool kReads = false;

  template <typename... Values>
  void operator()(const Values&... values) {
    (put(values), ...);
  }

  /// Both sides must have the same here.
  template <Plain Value>
  void expect(Value value) {
    put(value);
  }

  [[nodiscard]] std::string_view bytes() const { return bytes_; }

 private:
  template <Plain Value>
  void put(const Value& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put(const std::string& text) {
    put(text.size());
    bytes_.append(text);
  }
  template <typename Value>
  void put(const std::vector<Value>& values) {
    put(values.size());
    for (const Value& value : values) put(value);
  }

  std::string bytes_;
};

/// Bytes that do not fit leave the rest of the values as they are, and the image is not complete.
class ImageReader {
 public:
  static constexpr bool kReads = true;

  explicit ImageReader(std::string_view bytes) : rest_(bytes) {}

  template <typename... Values>
  void operator()(Values&... values) {
    (get(values), ...);
  }

  template <Plain Value>
  void expect(Value value) {
    Value other{};
    get(other);
    if (other != value) fail();
  }

  void fail() { failed_ = true; }
  [[nodiscard]] bool good() const { return !failed_; }
  /// Everything was read, and nothing was missing.
  [[nodiscard]] bool complete() const { return good() && rest_.empty(); }

 private:
  [[nodiscard]] std::string_view take(std::size_t count) {
    if (count > rest_.size()) fail();
    if (failed_) return {};
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  template <Plain Value>
  void get(Value& value) {
    const std::string_view bytes = take(sizeof value);
    if (!bytes.empty()) std::memcpy(static_cast<void*>(&value), bytes.data(), sizeof value);
  }
  void get(std::string& text) {
    std::size_t size = 0;
    get(size);
    text = take(size);
  }
  template <typename Value>
  void get(std::vector<Value>& values) {
    std::size_t size = 0;
    get(size);
    if (size > rest_.size()) return fail();  // each has a byte at least
    values.resize(size);
    for (Value& value : values) get(value);
  }

  std::string_view rest_;
  bool failed_ = false;
};

}  // namespace shaper
