// A verdict in the 32 bits of a netlink sequence number: the kernel sends it back with an error, and so tells whose
// packet it had cleared already.
#pragma once

#include <algorithm>
#include <cstdint>

#include "shaper/core/verdict.h"

namespace shaper {

/// 20 bits class, 8 bits frames (255: that or more), 2 bits decision, 2 bits reason.
[[nodiscard]] constexpr std::uint32_t encode_verdict(const Verdict& verdict) {
  return (verdict.class_index << 12) | (std::min(verdict.frames, 255U) << 4) |
         (static_cast<std::uint32_t>(verdict.decision) << 2) | static_cast<std::uint32_t>(verdict.reason);
}

/// What encode_verdict() kept: class, frames, decision and reason.
[[nodiscard]] constexpr Verdict decode_verdict(std::uint32_t code) {
  Verdict verdict;
  verdict.class_index = code >> 12;
  verdict.frames = (code >> 4) & 0xff;
  verdict.decision = static_cast<Decision>((code >> 2) & 3);
  verdict.reason = static_cast<DropReason>(code & 3);
  return verdict;
}

}  // namespace shaper
