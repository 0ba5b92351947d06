// The one owner of a file descriptor: closes it at the end, can be moved, cannot be copied.
#pragma once

#include <unistd.h>

#include <utility>

namespace shaper {

class Fd {
 public:
  Fd() = default;
  /// Takes what a system call returned; a negative number is "none", so a failed call owns nothing.
  explicit Fd(int number) : number_(number) {}
  Fd(Fd&& other) noexcept : number_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      close();
      number_ = other.release();
    }
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { close(); }

  [[nodiscard]] explicit operator bool() const { return number_ >= 0; }
  [[nodiscard]] int get() const { return number_; }

  /// Gives the descriptor away: the caller closes it.
  [[nodiscard]] int release() { return std::exchange(number_, -1); }

  /// An error of close() has no remedy: Linux frees the number in any case, and a second close() could hit another's.
  void close() {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }

 private:
  int number_ = -1;
};

}  // namespace shaper
