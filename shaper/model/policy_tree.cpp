// What toml++ 3.3 does not do for us: it follows dotted keys of any length, one level of nesting for each dot, until
// the stack ends; bad text can fail its assertions ("[=a]", "a = [ }"), and some characters outside of strings (U+FEF7)
// are undefined behaviour; it says where a second key's value is, not where the key is; its messages quote what they
// met; it does not say where exactly a text stops being UTF-8.
#include "shaper/model/policy_tree.h"

namespace {
struct FailedAssertion {};
[[noreturn]] void fail_assertion() {
  throw FailedAssertion{};
}
}  // namespace

// With NDEBUG toml++ would take its assertions for granted instead of checking them.
#undef NDEBUG
#define TOML_ASSERT(condition) ((condition) ? static_cast<void>(0) : fail_assertion())
#define TOML_EXCEPTIONS 0
#define TOML_MAX_NESTED_VALUES 16
#include <toml++/toml.h>

#include <algorithm>
#include <optional>

#include "shaper/model/units_text.h"

namespace shaper::tree {
namespace {

constexpr int kMostDotsInLine = 32;

Position position_of(const toml::source_region& source) {
  return {static_cast<int>(source.begin.line), static_cast<int>(source.begin.column)};
}

Position position_at(std::string_view text, std::size_t offset) {
  Position position;
  for (const char c : text.substr(0, offset)) {
    if (c == '\n') {
      position = {position.line + 1, 1};
    } else if ((static_cast<unsigned char>(c) & 0xc0U) != 0x80U) {
      ++position.column;
    }
  }
  return position;
}

/// The length of the UTF-8 character at the start of `text`, zero if it is none (RFC 3629, section 4).
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return 0;
  const unsigned lowest = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned highest = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < lowest || byte(1) > highest) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return 0;
  }
  return length;
}

std::optional<Complaint> check_encoding(std::string_view text) {
  for (std::size_t offset = 0; offset < text.size();) {
    const std::size_t length = character_length(text.substr(offset));
    if (length == 0) return Complaint{position_at(text, offset), "this is not UTF-8 text"};
    offset += length;
  }
  return std::nullopt;
}

/// The offset behind the string, or the comment, that begins at `offset`.
std::size_t skip_quoted(std::string_view text, std::size_t offset) {
  const char quote = text[offset];
  if (quote == '#') return std::min(text.find('\n', offset), text.size());
  const std::string three(3, quote);
  const bool lines = text.substr(offset, 3) == three;
  const std::string_view end = lines ? std::string_view(three) : std::string_view(three).substr(0, 1);
  for (offset += end.size(); offset < text.size(); ++offset) {
    if (text.substr(offset, end.size()) == end) return offset + end.size();
    if (!lines && text[offset] == '\n') return offset;
    if (quote == '"' && text[offset] == '\\') ++offset;
  }
  return text.size();
}

/// Looks at what stands outside of strings and comments: plain ASCII, and not too many dots in a line, each of which
/// may nest one level deeper.
std::optional<Complaint> check_outside_strings(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  int dots = 0;
  for (std::size_t offset = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0; offset < text.size();) {
    const char c = text[offset];
    if (c == '"' || c == '\'' || c == '#') {
      offset = skip_quoted(text, offset);
      continue;
    }
    if (static_cast<unsigned char>(c) >= 0x80) {
      return Complaint{position_at(text, offset),
                       "a character like this stands in quotation marks or in a comment only"};
    }
    if (c == '\n') dots = 0;
    if (c == '.' && ++dots > kMostDotsInLine) {
      return Complaint{position_at(text, offset), "too many dots: no key is nested that deep"};
    }
    ++offset;
  }
  return std::nullopt;
}

/// Nothing if an assertion of toml++ fails.
std::optional<toml::parse_result> parse_toml(std::string_view text) {
  try {
    return toml::parse(text);
  } catch (const FailedAssertion&) {
    return std::nullopt;
  }
}

/// Where an assertion fails: at the last character of the shortest beginning of `text` that fails it.
Complaint failed_assertion(std::string_view text) {
  std::size_t passes = 0;
  std::size_t fails = text.size();
  while (fails - passes > 1) {
    std::size_t middle = passes + (fails - passes) / 2;
    // Not inside a character: that would be another error.
    while (middle > passes && (static_cast<unsigned char>(text[middle]) & 0xc0U) == 0x80U) --middle;
    if (middle == passes) break;
    (parse_toml(text.substr(0, middle)) ? passes : fails) = middle;
  }
  return {position_at(text, fails - 1), "not valid TOML: a key or a value should begin here"};
}

/// The name between the first and the last apostrophe of a message.
std::string quoted_name(std::string_view description) {
  const std::size_t first = description.find('\'');
  const std::size_t last = description.rfind('\'');
  return first < last ? std::string(description.substr(first + 1, last - first - 1)) : std::string();
}

/// The key that stands before `value` in its line.
Position key_before(std::string_view text, Position value, const std::string& key) {
  for (int line = 1; line < value.line; ++line) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  const std::string_view before = text.substr(0, static_cast<std::size_t>(value.column - 1));
  const bool ascii = std::all_of(before.begin(), before.end(), [](char c) { return c > 0; });
  const std::size_t found = before.rfind(key);
  if (key.empty() || !ascii || found == std::string_view::npos) return value;
  return {value.line, static_cast<int>(found) + 1};
}

/// A message without what the parser met in the file: a policy may be the wrong file, and a secret one.
std::string without_quotations(std::string_view description) {
  constexpr std::string_view kWhile = "Error while parsing ";
  if (description.starts_with(kWhile)) description.remove_prefix(kWhile.size());
  description = description.substr(0, std::min(description.find(", saw "), description.find(" (TOML_MAX")));
  std::string text;
  while (!description.empty()) {
    const std::size_t first = description.find('\'');
    const std::size_t last = first == std::string_view::npos ? first : description.find('\'', first + 1);
    if (last == std::string_view::npos) break;
    const std::string_view name = description.substr(first + 1, last - first - 1);
    text += description.substr(0, first);
    text += name.size() == 1 || name == "true" || name == "false" ? quoted(name, "this") : "this";
    description.remove_prefix(last + 1);
  }
  return text + std::string(description);
}

Complaint complaint(std::string_view text, const toml::parse_error& error) {
  const std::string_view description = error.description();
  const Position position = position_of(error.source());
  const auto says = [&](std::string_view words) { return description.find(words) != std::string_view::npos; };
  if (says("cannot redefine existing")) {
    const std::string name = quoted_name(description);
    if (!says("table header"))
      return {key_before(text, position, name), "duplicate key " + quoted(name, "of a strange name")};
    if (says("as table") || says("as array")) {
      return {position, quoted(name, "this table") + " is written in single and in double brackets"};
    }
    return {position,
            "duplicate table " + quoted(name, "of a strange name") + ": a list of tables stands in double brackets"};
  }
  if (says("could not determine value type")) {
    return {position, "this is no TOML value: texts stand in quotation marks, as in rate = \"20mbit\""};
  }
  return {position, "not valid TOML: " + without_quotations(description)};
}

Node convert(const toml::node& node);

Table convert(const toml::table& table) {
  Table result;
  for (const auto& [key, node] : table) {
    result.push_back({std::string(key.str()), position_of(key.source()), convert(node)});
  }
  std::sort(result.begin(), result.end(), [](const Entry& a, const Entry& b) { return a.position < b.position; });
  return result;
}

Node convert(const toml::node& node) {
  Node result{position_of(node.source()), {}};
  if (const auto* table = node.as_table()) {
    result.value = convert(*table);
  } else if (const auto* list = node.as_array()) {
    List nodes;
    for (const toml::node& each : *list) nodes.push_back(convert(each));
    result.value = std::move(nodes);
  } else if (const auto* text = node.as_string()) {
    result.value = text->get();
  } else if (const auto* integer = node.as_integer()) {
    result.value = integer->get();
  } else if (const auto* boolean = node.as_boolean()) {
    result.value = boolean->get();
  }
  return result;
}

}  // namespace

tl::expected<Table, Complaint> parse(std::string_view text) {
  if (text.size() > kMostBytes) return tl::unexpected(Complaint{{}, "this file is larger than 1 MiB"});
  if (const auto wrong = check_encoding(text)) return tl::unexpected(*wrong);
  if (const auto wrong = check_outside_strings(text)) return tl::unexpected(*wrong);
  const auto result = parse_toml(text);
  if (!result) return tl::unexpected(failed_assertion(text));
  if (!*result) return tl::unexpected(complaint(text, result->error()));
  return convert(result->table());
}

}  // namespace shaper::tree
