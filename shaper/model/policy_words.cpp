// The keys of each level are those of docs/configuration.md.
#include "shaper/model/policy_words.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace shaper {
namespace {

constexpr bool kLater = false;

constexpr std::array kTopKeys{KnownKey{"version"},  KnownKey{"max_flows"}, KnownKey{"link"},      KnownKey{"class"},
                              KnownKey{"limit"},    KnownKey{"cluster"},   KnownKey{"mark_mask"}, KnownKey{"repair"},
                              KnownKey{"realtime"}, KnownKey{"threads"},   KnownKey{"operators"}};
constexpr std::array kLinkKeys{KnownKey{"name"},           KnownKey{"interface"}, KnownKey{"direction"},
                               KnownKey{"rate"},           KnownKey{"overhead"},  KnownKey{"mpu"},
                               KnownKey{"without_daemon"}, KnownKey{"guard"}};
constexpr std::array kClassKeys{KnownKey{"name"}, KnownKey{"link"},      KnownKey{"match"},      KnownKey{"default"},
                                KnownKey{"rate"}, KnownKey{"ceil"},      KnownKey{"burst"},      KnownKey{"each"},
                                KnownKey{"over"}, KnownKey{"max_delay"}, KnownKey{"backlog"},    KnownKey{"priority"},
                                KnownKey{"fair"}, KnownKey{"limits"},    KnownKey{"discipline"}, KnownKey{"capacity"},
                                KnownKey{"aqm"},  KnownKey{"ecn"}};
constexpr std::array kEachKeys{KnownKey{"by"}, KnownKey{"rate"}, KnownKey{"burst"}};
constexpr std::array kLimitKeys{
    KnownKey{"name"},       KnownKey{"rate"},       KnownKey{"burst"},         KnownKey{"by"},
    KnownKey{"discipline"}, KnownKey{"scope"},      KnownKey{"without_redis"}, KnownKey{"reserve"},
    KnownKey{"observe"},    KnownKey{"local_rate"}, KnownKey{"strategy"},      KnownKey{"max_rate"}};
constexpr std::array kClusterKeys{KnownKey{"redis"},    KnownKey{"host"}, KnownKey{"hosts"},
                                  KnownKey{"interval"}, KnownKey{"user"}, KnownKey{"password_file"}};
constexpr std::array kMatchKeys{KnownKey{"protocol"},
                                KnownKey{"source"},
                                KnownKey{"destination"},
                                KnownKey{"source_port"},
                                KnownKey{"destination_port"},
                                KnownKey{"local"},
                                KnownKey{"remote"},
                                KnownKey{"local_port"},
                                KnownKey{"remote_port"},
                                KnownKey{"dscp"},
                                KnownKey{"mark"},
                                KnownKey{"user"},
                                KnownKey{"group"},
                                KnownKey{"not"},
                                KnownKey{"cgroup", kLater},
                                KnownKey{"unit", kLater},
                                KnownKey{"process", kLater},
                                KnownKey{"pid", kLater},
                                KnownKey{"container", kLater}};

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
