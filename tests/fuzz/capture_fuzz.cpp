// Any bytes are taken for a capture: it is replayed in virtual time or refused in one line.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "shaper/core/policy.h"
#include "shaper/replay/replay_capture.h"

namespace {

shaper::Policy policy() {
  shaper::Policy policy;
  shaper::LinkPolicy link;
  link.name = "up";
  link.interface = "eth0";
  policy.links = {link};
  shaper::ClassPolicy all;
  all.name = "default";
  all.is_default = true;
  all.rate = shaper::DataRate{10'000'000};
  policy.classes = {all};
  return policy;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  shaper::InputFile file(::fmemopen(const_cast<std::uint8_t*>(data), size, "rb"));
  if (file == nullptr) std::abort();
  auto capture = shaper::Capture::read(std::move(file), "capture");
  if (!capture) return 0;
  const auto result = shaper::replay_capture(*capture, policy(), {});
  if (!result) return 0;
  const auto& of_class = result->status.classes.at(0);
  if (of_class.sent_packets + of_class.dropped_packets != of_class.in_packets) std::abort();
  return 0;
}
