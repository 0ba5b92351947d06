// The keys of each level are those of docs/configuration.md.
#include "shaper/model/policy_words.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace shaper {
namespace {

constexpr auto kTopKeys =
    std::to_array<std::string_view>({"version", "max_flows", "link", "class", "limit", "cluster", "mark_mask", "repair",
                                     "realtime", "threads", "operators", "owners"});
constexpr auto kLinkKeys = std::to_array<std::string_view>(
    {"name", "interface", "direction", "rate", "overhead", "mpu", "without_daemon", "guard"});
constexpr auto kClassKeys = std::to_array<std::string_view>(
    {"name", "link", "match", "default", "rate", "ceil", "burst", "each", "over", "max_delay", "backlog", "priority",
     "fair", "limits", "discipline", "capacity", "aqm", "ecn"});
constexpr auto kEachKeys = std::to_array<std::string_view>({"by", "rate", "burst"});
constexpr auto kLimitKeys =
    std::to_array<std::string_view>({"name", "rate", "burst", "by", "discipline", "scope", "without_redis", "reserve",
                                     "observe", "local_rate", "strategy", "max_rate"});
constexpr auto kClusterKeys =
    std::to_array<std::string_view>({"redis", "host", "hosts", "interval", "user", "password_file"});
constexpr auto kMatchKeys = std::to_array<std::string_view>(
    {"protocol", "source", "destination", "source_port", "destination_port", "local", "remote", "local_port",
     "remote_port", "dscp", "mark", "user", "group", "not", "cgroup", "unit", "process", "pid", "container"});

/// Levenshtein's distance.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

const Level kTopLevel{"the top of the file", kTopKeys};
const Level kLinkLevel{"a link", kLinkKeys};
const Level kClassLevel{"a class", kClassKeys};
const Level kEachLevel{"each", kEachKeys};
const Level kLimitLevel{"a limit", kLimitKeys};
const Level kClusterLevel{"[cluster]", kClusterKeys};
const Level kMatchLevel{"match", kMatchKeys};

std::string nearest(std::string_view word, std::span<const std::string_view> candidates) {
  word = word.substr(0, 64);
  // "port" is meant as a part of "source_port" rather than as a misspelt "not".
  const auto cost = [&](std::string_view candidate) {
    const bool part = word.size() >= 3 && candidate.find(word) != std::string_view::npos;
    return part ? 1 : distance(word, candidate);
  };
  const auto best = std::min_element(candidates.begin(), candidates.end(),
                                     [&](std::string_view a, std::string_view b) { return cost(a) < cost(b); });
  return best == candidates.end() ? "none" : "\"" + std::string(*best) + "\"";
}

}  // namespace shaper
