// Lines of a label and a value, and how a bucket and its key are said: for links, limits and classes alike.
#pragma once

#include <string>
#include <string_view>

#include "shaper/core/policy.h"

namespace shaper {

/// Lines below the heading of what they belong to.
class Lines {
 public:
  void heading(const std::string& text) { text_ += text + "\n"; }
  void add(std::string_view label, const std::string& value);
  void blank() { text_ += "\n"; }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

/// A derived time: exact to the microsecond below 10 ms, else to the millisecond, rounded up.
[[nodiscard]] std::string describe_derived(Nanos time);

/// "4 ms = 50 kB, on top of one full frame".
[[nodiscard]] std::string describe_burst(const Burst& burst, DataRate rate);

/// "flow", "source/24,64".
[[nodiscard]] std::string describe_key(const KeyPolicy& key);

/// All lines of a class of `policy`.
void describe_class(const Policy& policy, const ClassPolicy& cls, Lines& lines);

}  // namespace shaper
