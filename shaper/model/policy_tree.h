// The text of a policy as a tree of keys and values, each with its place in the file.
//
// This is TOML and nothing more: what keys mean is not known here. policy_tree.cpp is the only file that includes the
// TOML library. Tables are in file order. Numbers with a fraction and dates appear as std::monostate: no key takes one.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

namespace shaper::tree {

/// A place in the text; both count from 1, columns in characters.
struct Position {
  int line = 1;
  int column = 1;

  friend auto operator<=>(const Position&, const Position&) = default;
};

struct Node;
struct Entry;
using List = std::vector<Node>;
using Table = std::vector<Entry>;

struct Node {
  Position position;
  std::variant<std::monostate, std::string, std::int64_t, bool, List, Table> value;
};

struct Entry {
  std::string key;
  Position position;  ///< of the key
  Node node;
};

/// Something wrong, and where.
struct Complaint {
  Position position;
  std::string message;
};

/// The largest text that is read: 1 MiB.
inline constexpr std::size_t kMostBytes = std::size_t{1} << 20;

/// Reads TOML 1.0 in UTF-8. The message of an error quotes at most a key.
[[nodiscard]] tl::expected<Table, Complaint> parse(std::string_view text);

}  // namespace shaper::tree
