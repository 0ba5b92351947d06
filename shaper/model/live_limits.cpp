#include "shaper/model/live_limits.h"

#include <fmt/format.h>

#include "shaper/model/config_parts.h"
#include "shaper/model/plain_text.h"

namespace shaper {
namespace {

/// The selector as the value of `match` in a policy.
tl::expected<tree::Table, std::string> table_of(std::string_view text) {
  tree::Table table;
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find(','));
    text.remove_prefix(std::min(pair.size() + 1, text.size()));
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == pair.size()) {
      return tl::unexpected(fmt::format(
          "{} is no KEY=VALUE; name flows as in user=backup or remote=10.0.0.0/8,protocol=udp", quote_line(pair)));
    }
    tree::Entry entry;
    entry.key = pair.substr(0, equals);
    entry.node.value = std::string(pair.substr(equals + 1));
    for (const tree::Entry& other : table) {
      if (other.key == entry.key) return tl::unexpected(fmt::format("{} is there twice", quote_line(entry.key)));
    }
    table.push_back(std::move(entry));
  }
  if (table.empty()) return tl::unexpected(std::string{"a selector names flows, as in user=backup"});
  return table;
}

}  // namespace

tl::expected<Match, std::string> parse_selector(std::string_view text, const NameLookup& names,
                                                std::uint32_t mark_mask) {
  auto table = table_of(text);
  if (!table) return tl::unexpected(table.error());
  tree::Entry match;
  match.key = "match";
  match.node.value = std::move(*table);
  Diagnostics diagnostics;
  const ReadLinks no_links;
  const ReadLimits no_limits;
  std::vector<Match> matches = read_matches(match, {no_links, no_limits, names, mark_mask}, diagnostics);
  if (!diagnostics.ok()) {
    return tl::unexpected(fmt::format("{}: {}", quote_line(text), diagnostics.first_error().message));
  }
  return std::move(matches.front());
}

void add_live_limits(Policy& policy, std::span<const LiveLimit> live) {
  for (const LiveLimit& each : live) {
    const auto index = static_cast<LimitIndex>(policy.limits.size());
    LimitPolicy limit;
    limit.name = fmt::format("live-{}", each.id);
    limit.rate = each.rate;
    limit.by = KeyPolicy{EachBy::all};
    limit.match = {each.match};
    limit.live_id = each.id;
    limit.selector = each.selector;
    policy.limits.push_back(std::move(limit));
    for (ClassPolicy& cls : policy.classes) {
      if (!cls.is_guard) cls.limits.push_back(index);
    }
  }
}

std::string live_limit_line(const LiveLimit& limit) {
  const std::string until = limit.until ? std::to_string(limit.until->time_since_epoch().count()) : "-";
  return fmt::format("{} {} {} {}", limit.id, limit.rate.bits_per_second, until, limit.selector);
}

std::optional<LiveLimit> parse_live_limit_line(std::string_view line) {
  const auto id = parse_number<std::uint64_t>(take_word(line));
  const auto rate = parse_number<std::uint64_t>(take_word(line));
  const std::string_view until = take_word(line);
  const auto nanos = parse_number<std::int64_t>(until);
  if (!id || !rate || (!nanos && until != "-") || line.empty()) return std::nullopt;
  LiveLimit limit;
  limit.id = *id;
  limit.rate = {*rate};
  if (nanos) limit.until = Instant{Nanos{*nanos}};
  limit.selector = line;
  return limit;
}

}  // namespace shaper
