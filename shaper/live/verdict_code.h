// A verdict in the 32 bits of a netlink sequence number: the kernel sends it back with an error, and so tells whose
// packet it had cleared already.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "shaper/core/verdict.h"

namespace shaper {

inline constexpr std::uint32_t kCodedClasses = 1U << 16;  // more than a policy of 1 MiB has, its links counted
inline constexpr std::uint32_t kCodedPolicies = 1U << 2;
inline constexpr std::uint32_t kCodedFrames = 255;
inline constexpr ClassIndex kNoClass = kCodedClasses - 1;  // of a packet that the core does not count
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

/// 16 bits class, 2 bits policy, 8 bits frames (255: that or more), 3 bits decision, 3 bits reason.
///
/// An error may come back when another policy is in force, which numbers its classes anew. So the code says which one
/// the verdict was given by: the one in force, or the one before it.
class VerdictCode {
 public:
  /// Another policy is in force: `heirs` names for each class of the one before which class follows it.
  void swapped(std::vector<std::optional<ClassIndex>> heirs) {
    policy_ = (policy_ + 1) % kCodedPolicies;
    heirs_ = std::move(heirs);
  }

  [[nodiscard]] std::uint32_t encode(const Verdict& verdict) const {
    return (verdict.class_index % kCodedClasses << 16) | (policy_ << 14) |
           (std::min(verdict.frames, kCodedFrames) << 6) | (static_cast<std::uint32_t>(verdict.decision) << 3) |
           static_cast<std::uint32_t>(verdict.reason);
  }

  /// What encode() kept: frames, decision, reason, and the class in the policy in force, or kNoClass.
  [[nodiscard]] Verdict decode(std::uint32_t code) const {
    Verdict verdict;
    verdict.class_index = class_now(code >> 16, (code >> 14) % kCodedPolicies);
    verdict.frames = (code >> 6) & 0xff;
    verdict.decision = static_cast<Decision>((code >> 3) & 7);
    verdict.reason = static_cast<DropReason>(code & 7);
    return verdict;
  }

  template <typename Image>
  void carry(Image& image) {
    image(policy_, heirs_);
  }

 private:
  [[nodiscard]] ClassIndex class_now(ClassIndex index, std::uint32_t policy) const {
    if (policy == policy_ || index == kNoClass) return index;
    const bool of_the_one_before = (policy + 1) % kCodedPolicies == policy_;
    if (!of_the_one_before || index >= heirs_.size()) return kNoClass;
    return heirs_[index].value_or(kNoClass);
  }

  std::uint32_t policy_ = 0;                      // counts changes
  std::vector<std::optional<ClassIndex>> heirs_;  // of the classes of the policy before
};

}  // namespace shaper
