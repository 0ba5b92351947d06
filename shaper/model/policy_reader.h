// One table of a policy, read key by key; whatever is wrong with it is written down with its place.
//
// A level of the policy (the top, a link, a class, ...) knows its keys. Reading goes on after an error, so that of all
// errors the one that stands first in the file can be reported.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shaper/core/policy.h"
#include "shaper/model/policy_tree.h"
#include "shaper/model/policy_words.h"

namespace shaper {

/// What was found wrong so far.
class Diagnostics {
 public:
  void error(tree::Position position, std::string message) { errors_.push_back({position, std::move(message)}); }
  void warning(tree::Position position, std::string message) { warnings_.push_back({position, std::move(message)}); }

  [[nodiscard]] bool ok() const { return errors_.empty(); }
  /// The error that stands first in the file; there must be one.
  [[nodiscard]] const tree::Complaint& first_error() const;
  /// In file order, none of them twice.
  [[nodiscard]] std::vector<tree::Complaint> warnings() const;

 private:
  std::vector<tree::Complaint> errors_;
  std::vector<tree::Complaint> warnings_;
};

/// A word that a key may have as its value; without a meaning it is of a later version.
template <typename Meaning>
struct Word {
  std::string_view text;
  std::optional<Meaning> meaning;
};

/// A name and where it stands.
struct NamedThing {
  std::string name;
  tree::Position position;
};

/// A text, or an integer as text; nothing for every other node.
[[nodiscard]] std::optional<std::string> scalar_text(const tree::Node& node);

/// Reads a table; it and the diagnostics must outlive the reader. Each getter returns nothing if the key is absent or
/// wrong, and complains in the latter case.
class TableReader {
 public:
  /// Complains about keys that the level does not have.
  TableReader(const tree::Table& table, tree::Position position, const Level& level, Diagnostics& diagnostics);

  [[nodiscard]] tree::Position position() const { return position_; }
  [[nodiscard]] Diagnostics& diagnostics() const { return diagnostics_; }
  [[nodiscard]] const tree::Entry* find(std::string_view key) const;
  /// Where the value of `key` is; the table if there is none.
  [[nodiscard]] tree::Position position_of(std::string_view key) const;
  /// Complains if `key` is absent.
  void require(std::string_view key) const;

  [[nodiscard]] std::optional<std::string> text(std::string_view key) const;
  /// A text or a list of different texts; empty if the key is absent.
  [[nodiscard]] std::vector<NamedThing> names(std::string_view key) const;
  [[nodiscard]] std::optional<bool> boolean(std::string_view key) const;
  [[nodiscard]] std::optional<std::uint32_t> integer(std::string_view key, Range<std::uint32_t> allowed) const;
  [[nodiscard]] std::optional<DataRate> rate(std::string_view key) const;
  [[nodiscard]] std::optional<ByteCount> size(std::string_view key) const;
  [[nodiscard]] std::optional<Nanos> time(std::string_view key) const;
  [[nodiscard]] std::optional<Burst> burst(std::string_view key) const;

  /// Calls `read_one` with each value of `key` as text; what is no text, number or list of these is an error.
  void values(std::string_view key,
              const std::function<void(const tree::Node& node, const std::string& text)>& read_one) const;

  template <typename Meaning>
  [[nodiscard]] std::optional<Meaning> word(std::string_view key, std::span<const Word<Meaning>> words) const {
    const auto value = text(key);
    return value ? word_of<Meaning>(key, *value, words) : std::nullopt;
  }

  /// The meaning of `value`, which is all of the text of `key` or a part.
  template <typename Meaning>
  [[nodiscard]] std::optional<Meaning> word_of(std::string_view key, std::string_view value,
                                               std::span<const Word<Meaning>> words) const {
    std::vector<std::string_view> candidates;
    for (const Word<Meaning>& candidate : words) {
      if (candidate.text == value) {
        if (!candidate.meaning) not_in_this_version(key, candidate.text);
        return candidate.meaning;
      }
      candidates.push_back(candidate.text);
    }
    unknown_word(key, value, candidates);
    return std::nullopt;
  }

  void not_in_this_version(std::string_view key, std::string_view value) const;
  void unknown_word(std::string_view key, std::string_view value, std::span<const std::string_view> words) const;

 private:
  void check_key(const tree::Entry& entry) const;

  const tree::Table& table_;
  tree::Position position_;
  const Level& level_;
  Diagnostics& diagnostics_;
};

}  // namespace shaper
