#include "shaper/replay/event_stream.h"

#include <ostream>

namespace shaper {
namespace {

constexpr std::size_t kPiece = 256 * 1024;

}  // namespace

void EventStream::flush() {
  if (text_.size() < kPiece) return;
  *out_ << text_;
  text_.clear();
}

std::string EventStream::finish() {
  if (out_ == nullptr || (*out_ << text_).flush()) return {};
  return "the event log cannot be written; is the disk full?";
}

}  // namespace shaper
