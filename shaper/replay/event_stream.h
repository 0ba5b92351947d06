// An event log on its way to a stream, in pieces.
#pragma once

#include <iosfwd>
#include <string>

#include "shaper/model/event_log.h"

namespace shaper {

class EventStream {
 public:
  /// Without `out` there is no log.
  explicit EventStream(std::ostream* out) : log_(text_), out_(out) {}
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;

  [[nodiscard]] EventLog* log() { return out_ != nullptr ? &log_ : nullptr; }

  /// Hands on what was logged, once it is much.
  void flush();

  /// Hands on all of it; the answer is empty, or says in one line why that failed.
  [[nodiscard]] std::string finish();

 private:
  std::string text_;
  EventLog log_;
  std::ostream* out_;
};

}  // namespace shaper
