// A verdict in the 32 bits of a netlink sequence number: the kernel sends it back with an error, and so tells whose
// packet it had cleared already.
#pragma once

#include <algorithm>
#include <cstdint>

#include "shaper/core/verdict.h"

namespace shaper {

inline constexpr std::uint32_t kCodedClasses = 1U << 18;  // 64 times what a policy may name
inline constexpr std::uint32_t kCodedFrames = 255;
inline constexpr ClassIndex kNoClass = kCodedClasses - 1;  // of a packet that the core was not told of
static_assert(kDropReasons <= 8);
static_assert(static_cast<int>(Decision::mark) < 8);

/// The verdict on a packet that the core is not told of.
[[nodiscard]] constexpr Verdict unmetered(PacketId id) {
  Verdict verdict;
  verdict.id = id;
  verdict.decision = Decision::pass;
  verdict.class_index = kNoClass;
  return verdict;
}

/// 18 bits class, 8 bits frames (255: that or more), 3 bits decision, 3 bits reason.
[[nodiscard]] constexpr std::uint32_t encode_verdict(const Verdict& verdict) {
  return (verdict.class_index % kCodedClasses << 14) | (std::min(verdict.frames, kCodedFrames) << 6) |
         (static_cast<std::uint32_t>(verdict.decision) << 3) | static_cast<std::uint32_t>(verdict.reason);
}

/// What encode_verdict() kept: class, frames, decision and reason.
[[nodiscard]] constexpr Verdict decode_verdict(std::uint32_t code) {
  Verdict verdict;
  verdict.class_index = code >> 14;
  verdict.frames = (code >> 6) & 0xff;
  verdict.decision = static_cast<Decision>((code >> 3) & 7);
  verdict.reason = static_cast<DropReason>(code & 7);
  return verdict;
}

}  // namespace shaper
