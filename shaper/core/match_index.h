// Which match tables of a link may hold for a packet, without asking all of them: 10,000 classes that differ in an
// address, a port or a user are told apart by a look into a few hash tables.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "shaper/core/packet.h"
#include "shaper/core/policy.h"
#include "shaper/core/siphash.h"

namespace shaper {

/// Tables are numbered in the order in which they are asked.
class MatchIndex {
 public:
  MatchIndex() = default;
  /// `tables` of a link of this direction; nullptr: it takes everything.
  MatchIndex(std::span<const Match* const> tables, Direction direction);

  /// Calls `visit(number)` for each table that may hold, in order, until it returns true.
  template <typename Visit>
  void ask(const Packet& packet, Visit visit) const;

 private:
  using Numbers = std::vector<std::uint32_t>;

  enum class Field : std::uint8_t { source, destination, source_port, destination_port, user, group };
  static constexpr std::array kFields{Field::source,           Field::destination, Field::source_port,
                                      Field::destination_port, Field::user,        Field::group};

  /// What a hash table is about: a field, and of addresses so many bits of one family.
  struct About {
    Field field = Field::source;
    Family family = Family::other;
    std::uint8_t bits = 0;

    friend bool operator==(const About&, const About&) = default;
  };
  /// The value of a field: an address, or a number in its first bytes.
  using Value = Address;
  struct ValueHash {
    std::size_t operator()(const Value& value) const {
      return siphash(std::bit_cast<std::array<std::uint64_t, 2>>(value), HashKey{});
    }
  };
  struct Tables {
    About about;
    std::unordered_map<Value, Numbers, ValueHash> of;
  };
  struct Place {
    About about;
    Value value{};
  };

  /// More different kinds than these are not worth their look-ups.
  static constexpr std::size_t kMostTables = 24;

  [[nodiscard]] static std::vector<Place> places(const Match& match, Field field, Direction direction);
  [[nodiscard]] static std::optional<Value> value_in(const Packet& packet, const About& about);
  [[nodiscard]] Tables* tables_about(const About& about);
  [[nodiscard]] std::size_t crowd(const std::vector<Place>& places);

  std::vector<Tables> tables_;
  Numbers others_;  ///< of tables that none of the fields tells apart
};

template <typename Visit>
void MatchIndex::ask(const Packet& packet, Visit visit) const {
  std::array<std::span<const std::uint32_t>, kMostTables + 1> candidates;
  std::size_t count = 0;
  if (!others_.empty()) candidates[count++] = others_;
  for (const Tables& tables : tables_) {
    const std::optional<Value> value = value_in(packet, tables.about);
    if (!value) continue;
    const auto found = tables.of.find(*value);
    if (found != tables.of.end()) candidates[count++] = found->second;
  }
  const std::span lists(candidates.data(), count);
  while (true) {
    std::optional<std::uint32_t> next;
    for (const auto& list : lists) {
      if (!list.empty() && (!next || list.front() < *next)) next = list.front();
    }
    if (!next || visit(*next)) return;
    for (auto& list : lists) {
      if (!list.empty() && list.front() == *next) list = list.subspan(1);  // one table may be in several
    }
  }
}

}  // namespace shaper
