// What the worker and the process that finds owners say to each other by way of the supervisor, as text: a line for
// each ask and each answer (model/owner_text.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shaper/core/owner.h"
#include "shaper/core/packet.h"

namespace shaper {

/// Whose is this flow?
struct OwnerAsk {
  std::uint64_t id = 0;  ///< comes back with the answer
  Family family = Family::other;
  std::uint8_t protocol = 0;
  Address local{};  ///< of this host; of a forwarded flow the near side
  Address remote{};
  std::uint16_t local_port = 0;
  std::uint16_t remote_port = 0;

  friend bool operator==(const OwnerAsk&, const OwnerAsk&) = default;
};

/// Every ask gets one; what is not known is empty.
struct OwnerAnswer {
  std::uint64_t id = 0;
  Owner owner;

  friend bool operator==(const OwnerAnswer&, const OwnerAnswer&) = default;
};

// Lines that are none are left out by who reads them.

[[nodiscard]] std::string owner_asks_text(std::span<const OwnerAsk> asks);
[[nodiscard]] std::vector<OwnerAsk> parse_owner_asks(std::string_view text);

[[nodiscard]] std::string owner_answers_text(std::span<const OwnerAnswer> answers);
[[nodiscard]] std::vector<OwnerAnswer> parse_owner_answers(std::string_view text);

}  // namespace shaper
