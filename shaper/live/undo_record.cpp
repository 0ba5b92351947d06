#include "shaper/live/undo_record.h"

#include <fmt/format.h>

#include <charconv>
#include <fstream>

#include "shaper/live/whole_file.h"

namespace shaper {
namespace {

constexpr std::string_view kTitle = "shaper undo record 1";  // 1: the version of this format
constexpr std::size_t kLongestRecord = 65'536;

/// A path may hold any byte but zero: the two that would end or mislead a line are escaped.
std::string escaped(std::string_view text) {
  std::string line;
  for (const char c : text) {
    if (c == '\n') {
      line += "\\n";
    } else if (c == '\\') {
      line += "\\\\";
    } else {
      line += c;
    }
  }
  return line;
}

std::string unescaped(std::string_view line) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool escape = line[i] == '\\' && i + 1 < line.size();
    if (escape) ++i;
    text += escape && line[i] == 'n' ? '\n' : line[i];
  }
  return text;
}

template <typename Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// "link fast split"
std::optional<QueuePair> queue_pair(std::string_view text) {
  const std::size_t first = text.find(' ');
  const std::size_t second = first == text.npos ? text.npos : text.find(' ', first + 1);
  if (second == text.npos) return std::nullopt;
  const auto link = number<LinkIndex>(text.substr(0, first));
  const auto fast = number<std::uint16_t>(text.substr(first + 1, second - first - 1));
  const auto split = number<std::uint16_t>(text.substr(second + 1));
  if (!link || !fast || !split) return std::nullopt;
  return QueuePair{*link, *fast, *split};
}

/// Takes one value into the record; false: it does not fit its key.
bool take(UndoRecord& record, std::string_view key, std::string_view value) {
  if (key == "boot") {
    record.boot = value;
  } else if (key == "policy_file") {
    record.policy_file = unescaped(value);
  } else if (key == "network_namespace") {
    const auto cookie = number<std::uint64_t>(value);
    record.cookie = cookie.value_or(0);
    return cookie.has_value();
  } else if (key == "backend") {
    record.backend = value == "legacy" ? Backend::legacy : Backend::nft;
    return value == "legacy" || value == "nft";
  } else if (key == "queues") {
    const auto pair = queue_pair(value);
    if (pair) record.queues.push_back(*pair);
    return pair.has_value();
  }
  return true;
}

}  // namespace

std::string format_undo_record(const UndoRecord& record) {
  std::string text = fmt::format("{}\nboot = {}\nnetwork_namespace = {}\nbackend = {}\n", kTitle, record.boot,
                                 record.cookie, name_of(record.backend));
  for (const QueuePair& pair : record.queues) {
    text += fmt::format("queues = {} {} {}\n", pair.link, pair.fast, pair.split);
  }
  return text + fmt::format("policy_file = {}\n", escaped(record.policy_file));
}

tl::expected<UndoRecord, std::string> parse_undo_record(std::string_view text) {
  if (!text.starts_with(fmt::format("{}\n", kTitle))) return tl::unexpected<std::string>("line 1: not an undo record");
  UndoRecord record;
  bool complete = false;
  int line_number = 1;
  text.remove_prefix(kTitle.size() + 1);
  while (!text.empty()) {
    ++line_number;
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const std::size_t equals = line.find(" = ");
    if (end == text.npos || equals == text.npos) {
      return tl::unexpected(fmt::format("line {}: not `key = value`", line_number));
    }
    const std::string_view key = line.substr(0, equals);
    if (!take(record, key, line.substr(equals + 3))) {
      return tl::unexpected(fmt::format("line {}: bad value", line_number));
    }
    complete = complete || key == "policy_file";  // the last line of what format_undo_record() writes
    text.remove_prefix(end + 1);
  }
  if (!complete) return tl::unexpected(fmt::format("line {}: the record ends early", line_number));
  return record;
}

std::string boot_id() {
  std::string id;
  std::getline(std::ifstream{"/proc/sys/kernel/random/boot_id"}, id);
  return id;
}

tl::expected<void, std::string> write_undo_record(const std::string& path, const UndoRecord& record) {
  return write_whole_file(path, format_undo_record(record));
}

tl::expected<std::optional<UndoRecord>, std::string> read_undo_record(const std::string& path) {
  const auto text = read_own_file(path, kLongestRecord);
  if (!text) return tl::unexpected(text.error());
  if (!*text) return std::nullopt;
  auto record = parse_undo_record(**text);
  if (!record) return tl::unexpected(fmt::format("{}: {}; it is not used", path, record.error()));
  return std::optional{std::move(*record)};
}

}  // namespace shaper
