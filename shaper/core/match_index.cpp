#include "shaper/core/match_index.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace shaper {
namespace {

/// A range of more values than these is not taken apart.
constexpr std::uint32_t kWidestRange = 16;

Address as_value(std::uint32_t number) {
  Address value{};
  const auto bytes = std::bit_cast<std::array<std::uint8_t, 4>>(number);
  std::copy(bytes.begin(), bytes.end(), value.begin());
  return value;
}

/// None, where the ranges have too many values.
template <typename Number>
std::vector<Address> values_of(const std::vector<Range<Number>>& ranges) {
  std::vector<Address> values;
  for (const Range<Number>& range : ranges) {
    if (std::uint64_t{range.last} - range.first >= kWidestRange) return {};
    for (std::uint64_t value = range.first; value <= range.last; ++value) {
      values.push_back(as_value(static_cast<std::uint32_t>(value)));
    }
  }
  return values;
}

}  // namespace

/// Where the packets that the match asks for are found by this field; nowhere: any packet may be one.
std::vector<MatchIndex::Place> MatchIndex::places(const Match& match, Field field, Direction direction) {
  const bool egress = direction == Direction::egress;
  std::vector<Place> places;
  const auto by_address = [&](const std::vector<Prefix>& own, const std::vector<Prefix>& side) {
    for (const Prefix& prefix : own.empty() ? side : own) {
      places.push_back({{field, prefix.family, prefix.bits}, masked(prefix.address, prefix.bits)});
    }
  };
  const auto by_number = [&](const std::vector<Address>& values) {
    for (const Address& value : values) places.push_back({{field, Family::other, 0}, value});
  };
  const auto by_owner = [&](const OwnerMatch& owner) {
    if (!owner.unknown) by_number(values_of(owner.ids));
  };
  switch (field) {
    case Field::source:
      by_address(match.source, egress ? match.local : match.remote);
      break;
    case Field::destination:
      by_address(match.destination, egress ? match.remote : match.local);
      break;
    case Field::source_port: {
      const auto& side = egress ? match.local_port : match.remote_port;
      by_number(values_of(match.source_port.empty() ? side : match.source_port));
      break;
    }
    case Field::destination_port: {
      const auto& side = egress ? match.remote_port : match.local_port;
      by_number(values_of(match.destination_port.empty() ? side : match.destination_port));
      break;
    }
    case Field::user:
      by_owner(match.user);
      break;
    case Field::group:
      by_owner(match.group);
      break;
  }
  return places;
}

std::optional<MatchIndex::Value> MatchIndex::value_in(const Packet& packet, const About& about) {
  const Headers& headers = packet.headers;
  const auto address = [&](const Address& of) {
    return headers.family == about.family ? std::optional(masked(of, about.bits)) : std::nullopt;
  };
  const auto number = [](std::optional<std::uint32_t> of) { return of ? std::optional(as_value(*of)) : std::nullopt; };
  switch (about.field) {
    case Field::source:
      return address(headers.source);
    case Field::destination:
      return address(headers.destination);
    case Field::source_port:
      return as_value(headers.source_port);
    case Field::destination_port:
      return as_value(headers.destination_port);
    case Field::user:
      return number(packet.user);
    case Field::group:
      return number(packet.group);
  }
  return std::nullopt;
}

MatchIndex::Tables* MatchIndex::tables_about(const About& about) {
  for (Tables& tables : tables_) {
    if (tables.about == about) return &tables;
  }
  if (tables_.size() >= kMostTables) return nullptr;
  return &tables_.emplace_back(Tables{about, {}});
}

/// How many tables would have to be asked, at worst, if these were found here.
std::size_t MatchIndex::crowd(const std::vector<Place>& places) {
  std::size_t most = 0;
  for (const Place& place : places) {
    Tables* const tables = tables_about(place.about);
    if (tables == nullptr) return std::numeric_limits<std::size_t>::max();
    most = std::max(most, tables->of[place.value].size());
  }
  return most;
}

/// Each table is found by the field that tells it best from the others: first all are counted at all places where they
/// could be, then each goes to the places with the fewest.
MatchIndex::MatchIndex(std::span<const Match* const> tables, Direction direction) {
  std::vector<std::array<std::vector<Place>, kFields.size()>> choices(tables.size());
  for (std::uint32_t number = 0; number < tables.size(); ++number) {
    if (tables[number] == nullptr) continue;
    for (std::size_t field = 0; field < kFields.size(); ++field) {
      choices[number][field] = places(*tables[number], kFields[field], direction);
      for (const Place& place : choices[number][field]) {
        if (Tables* const at = tables_about(place.about)) at->of[place.value].push_back(number);
      }
    }
  }
  std::vector<const std::vector<Place>*> chosen(tables.size(), nullptr);
  for (std::size_t number = 0; number < tables.size(); ++number) {
    std::size_t fewest = std::numeric_limits<std::size_t>::max();
    for (const std::vector<Place>& choice : choices[number]) {
      if (choice.empty()) continue;
      if (const std::size_t others = crowd(choice); others < fewest) {
        fewest = others;
        chosen[number] = &choice;
      }
    }
  }
  tables_.clear();
  for (std::uint32_t number = 0; number < tables.size(); ++number) {
    if (chosen[number] == nullptr) {
      others_.push_back(number);
      continue;
    }
    for (const Place& place : *chosen[number]) {
      Numbers& numbers = tables_about(place.about)->of[place.value];
      if (numbers.empty() || numbers.back() != number) numbers.push_back(number);  // two of its keys may be one value
    }
  }
}

}  // namespace shaper
