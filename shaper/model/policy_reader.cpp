// Each getter complains in one sentence that says what the key needs.
#include "shaper/model/policy_reader.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "shaper/model/units_text.h"

namespace shaper {
namespace {

using tree::Complaint;
using tree::Entry;
using tree::Node;
using tree::Position;

bool has_key(const Level& level, std::string_view name) {
  return std::find(level.keys.begin(), level.keys.end(), name) != level.keys.end();
}

}  // namespace

const Complaint& Diagnostics::first_error() const {
  return *std::min_element(errors_.begin(), errors_.end(),
                           [](const Complaint& a, const Complaint& b) { return a.position < b.position; });
}

std::vector<Complaint> Diagnostics::warnings() const {
  std::vector<Complaint> sorted = warnings_;
  const auto told = [](const Complaint& complaint) { return std::tie(complaint.position, complaint.message); };
  std::sort(sorted.begin(), sorted.end(), [&](const Complaint& a, const Complaint& b) { return told(a) < told(b); });
  sorted.erase(std::unique(sorted.begin(), sorted.end(),
                           [&](const Complaint& a, const Complaint& b) { return told(a) == told(b); }),
               sorted.end());
  return sorted;
}

std::optional<std::string> scalar_text(const Node& node) {
  if (const auto* text = std::get_if<std::string>(&node.value)) return *text;
  if (const auto* integer = std::get_if<std::int64_t>(&node.value)) return std::to_string(*integer);
  return std::nullopt;
}

TableReader::TableReader(const tree::Table& table, Position position, const Level& level, Diagnostics& diagnostics)
    : table_(table), position_(position), level_(level), diagnostics_(diagnostics) {
  for (const Entry& entry : table_) check_key(entry);
}

void TableReader::check_key(const Entry& entry) const {
  if (has_key(level_, entry.key)) return;
  const std::string key = quoted(entry.key, "");
  for (const Level* other : {&kClassLevel, &kLinkLevel, &kTopLevel, &kEachLevel, &kLimitLevel, &kMatchLevel}) {
    if (!has_key(*other, entry.key)) continue;
    diagnostics_.error(entry.position,
                       key + " is a key of " + std::string(other->title) + ", not of " + std::string(level_.title));
    return;
  }
  diagnostics_.error(entry.position, "unknown key" + (key.empty() ? "" : " " + key) + ": the nearest is " +
                                         nearest(entry.key, level_.keys));
}

const Entry* TableReader::find(std::string_view key) const {
  const auto found = std::find_if(table_.begin(), table_.end(), [&](const Entry& entry) { return entry.key == key; });
  return found == table_.end() ? nullptr : &*found;
}

Position TableReader::position_of(std::string_view key) const {
  const Entry* entry = find(key);
  return entry == nullptr ? position_ : entry->node.position;
}

void TableReader::require(std::string_view key) const {
  if (find(key) != nullptr) return;
  diagnostics_.error(position_, std::string(level_.title) + " needs \"" + std::string(key) + "\"");
}

std::optional<std::string> TableReader::text(std::string_view key) const {
  const Entry* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  if (const auto* text = std::get_if<std::string>(&entry->node.value)) return *text;
  diagnostics_.error(entry->node.position, "\"" + std::string(key) + "\" must be a text in quotation marks");
  return std::nullopt;
}

std::vector<NamedThing> TableReader::names(std::string_view key) const {
  std::vector<NamedThing> things;
  const Entry* entry = find(key);
  if (entry == nullptr) return things;
  const std::string of_key = "\"" + std::string(key) + "\"";
  std::set<std::string_view> seen;
  const auto read_one = [&](const Node& node) {
    const auto* text = std::get_if<std::string>(&node.value);
    if (text == nullptr) {
      diagnostics_.error(node.position, of_key + " must be a text in quotation marks, or a list of them");
    } else if (!seen.insert(*text).second) {
      diagnostics_.error(node.position, of_key + " names " + quoted(*text, "this") + " twice");
    } else {
      things.push_back({*text, node.position});
    }
  };
  const auto* list = std::get_if<tree::List>(&entry->node.value);
  if (list == nullptr) {
    read_one(entry->node);
    return things;
  }
  if (list->empty()) diagnostics_.error(entry->node.position, of_key + " is an empty list");
  for (const Node& node : *list) read_one(node);
  return things;
}

void TableReader::values(std::string_view key,
                         const std::function<void(const Node& node, const std::string& text)>& read_one) const {
  const Entry* entry = find(key);
  if (entry == nullptr) return;
  const std::string of_key = "\"" + std::string(key) + "\"";
  const auto read_node = [&](const Node& node) {
    const auto text = scalar_text(node);
    if (text) return read_one(node, *text);
    diagnostics_.error(node.position, of_key + " takes texts and whole numbers, or a list of them");
  };
  const auto* list = std::get_if<tree::List>(&entry->node.value);
  if (list == nullptr) return read_node(entry->node);
  if (list->empty()) diagnostics_.error(entry->node.position, of_key + " is an empty list");
  for (const Node& node : *list) read_node(node);
}

std::optional<bool> TableReader::boolean(std::string_view key) const {
  const Entry* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  if (const auto* value = std::get_if<bool>(&entry->node.value)) return *value;
  diagnostics_.error(entry->node.position, "\"" + std::string(key) + "\" must be true or false");
  return std::nullopt;
}

std::optional<std::uint32_t> TableReader::integer(std::string_view key, Range<std::uint32_t> allowed) const {
  const Entry* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  const auto* value = std::get_if<std::int64_t>(&entry->node.value);
  if (value != nullptr && *value >= allowed.first && *value <= allowed.last) return static_cast<std::uint32_t>(*value);
  diagnostics_.error(entry->node.position, "\"" + std::string(key) + "\" must be a whole number from " +
                                               std::to_string(allowed.first) + " to " + std::to_string(allowed.last));
  return std::nullopt;
}

namespace {

/// A quantity with a unit; without one, an integer is refused for the missing unit.
template <typename Value>
std::optional<Value> quantity(const TableReader& reader, std::string_view key, std::string_view example,
                              tl::expected<Value, std::string> (*parse)(std::string_view)) {
  const Entry* entry = reader.find(key);
  if (entry == nullptr) return std::nullopt;
  const auto text = scalar_text(entry->node);
  if (!text) {
    reader.diagnostics().error(entry->node.position,
                               "\"" + std::string(key) + "\" must be a text such as \"" + std::string(example) + "\"");
    return std::nullopt;
  }
  const auto value = parse(*text);
  if (value) return *value;
  reader.diagnostics().error(entry->node.position, value.error());
  return std::nullopt;
}

tl::expected<Burst, std::string> parse_burst(std::string_view text) {
  const std::size_t unit = text.find_first_not_of("0123456789. ");
  if (unit == std::string_view::npos && !text.empty()) {
    const std::string number(text.substr(0, text.find(' ')));
    return tl::unexpected(quoted(text) + " has no unit: write " + quoted(number + "ms") + " or " +
                          quoted(number + "B"));
  }
  // "5m" is a time; "5M" and "5mb" are attempts at a size.
  const std::string_view rest = unit == std::string_view::npos ? "" : text.substr(unit);
  if (rest.ends_with('s') || rest == "m" || rest == "h") {
    const auto time = parse_time(text);
    if (time) return Burst{*time};
    return tl::unexpected(time.error());
  }
  const auto size = parse_size(text);
  if (size) return Burst{*size};
  return tl::unexpected(size.error());
}

}  // namespace

std::optional<DataRate> TableReader::rate(std::string_view key) const {
  return quantity<DataRate>(*this, key, "20mbit", parse_rate);
}

std::optional<ByteCount> TableReader::size(std::string_view key) const {
  return quantity<ByteCount>(*this, key, "64KiB", parse_size);
}

std::optional<Nanos> TableReader::time(std::string_view key) const {
  return quantity<Nanos>(*this, key, "250ms", parse_time);
}

std::optional<Burst> TableReader::burst(std::string_view key) const {
  return quantity<Burst>(*this, key, "4ms", parse_burst);
}

void TableReader::not_in_this_version(std::string_view key, std::string_view value) const {
  const bool literal = value.find_first_not_of("0123456789") == std::string_view::npos;
  const std::string shown = literal ? std::string(value) : "\"" + std::string(value) + "\"";
  diagnostics_.error(position_of(key), std::string(key) + " = " + shown + " is not in this version");
}

void TableReader::unknown_word(std::string_view key, std::string_view value,
                               std::span<const std::string_view> words) const {
  diagnostics_.error(position_of(key),
                     "unknown value of \"" + std::string(key) + "\": the nearest is " + nearest(value, words));
}

}  // namespace shaper
