// Words for what a lease is and why.
#pragma once

#include <array>
#include <string_view>

#include "shaper/cluster/lease.h"

namespace shaper {

/// As in JSON.
[[nodiscard]] constexpr std::string_view word_for(LeaseState state) {
  constexpr std::array<std::string_view, 3> kNames{"cold", "leased", "fallback"};
  return kNames[static_cast<std::size_t>(state)];
}

[[nodiscard]] constexpr std::string_view word_for(LeaseReason reason) {
  constexpr std::array<std::string_view, kLeaseReasons> kNames{
      "start", "idle", "answer", "expired", "timeout", "disconnected", "unavailable", "denied", "odd", "version"};
  return kNames[static_cast<std::size_t>(reason)];
}

/// What Redis did, as a part of a sentence.
[[nodiscard]] constexpr std::string_view words_on(LeaseReason reason) {
  constexpr std::array<std::string_view, kLeaseReasons> kWords{"it was not asked yet",
                                                               "nothing was to be asked",
                                                               "it has answered",
                                                               "its last grant has ended",
                                                               "it is late",
                                                               "no connection",
                                                               "it is not ready",
                                                               "it does not let this host in",
                                                               "its answer makes no sense",
                                                               "another version of shaper has written there"};
  return kWords[static_cast<std::size_t>(reason)];
}

/// What to do about it, behind a semicolon; nothing: it passes by itself.
[[nodiscard]] constexpr std::string_view advice_on(LeaseReason reason) {
  switch (reason) {
    case LeaseReason::expired:
    case LeaseReason::timeout:
    case LeaseReason::disconnected:
      return "; see whether it runs and can be reached from here";
    case LeaseReason::unavailable:
      return "; its log says why";
    case LeaseReason::denied:
      return "; see user and password_file in [cluster], and its ACL";
    case LeaseReason::odd:
      return "; no other program may write the keys dl:*";
    case LeaseReason::version:
      return "; give all hosts one version, then delete the keys dl:*";
    case LeaseReason::start:
    case LeaseReason::idle:
    case LeaseReason::answer:
      break;
  }
  return "";
}

}  // namespace shaper
