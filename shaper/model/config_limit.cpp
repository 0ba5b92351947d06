// Named limits, and `by`: what the packets that share a bucket have in common.
#include <algorithm>
#include <array>
#include <charconv>

#include "shaper/model/config_parts.h"

namespace shaper {
namespace {

using tree::Node;

/// Hosts ask now and then: so much is there for who asks later.
constexpr Burst kDefaultClusterBurst{std::chrono::milliseconds{100}};

constexpr std::size_t kMostLimits = 65'535;  // LimitIndex

constexpr std::array kByWords{Word<EachBy>{"flow", EachBy::flow},
                              Word<EachBy>{"source", EachBy::source},
                              Word<EachBy>{"destination", EachBy::destination},
                              Word<EachBy>{"local", EachBy::local},
                              Word<EachBy>{"remote", EachBy::remote},
                              Word<EachBy>{"user", EachBy::user},
                              Word<EachBy>{"cgroup", EachBy::cgroup},
                              Word<EachBy>{"process", EachBy::process},
                              Word<EachBy>{"container", EachBy::container}};
constexpr std::array kAddresses{EachBy::source, EachBy::destination, EachBy::local, EachBy::remote};
constexpr std::array kOwnersOfOneHost{EachBy::cgroup, EachBy::process, EachBy::container};
constexpr std::array kScopeWords{Word<Scope>{"host", Scope::host}, Word<Scope>{"cluster", Scope::cluster}};

template <std::size_t count>
bool is_one_of(const std::array<EachBy, count>& values, EachBy by) {
  return std::find(values.begin(), values.end(), by) != values.end();
}

std::optional<std::uint8_t> parse_bits(std::string_view text, std::uint8_t most) {
  std::uint8_t bits = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits);
  if (error != std::errc{} || end != text.data() + text.size() || bits == 0 || bits > most) return std::nullopt;
  return bits;
}

LimitPolicy read_limit(const TableReader& reader) {
  LimitPolicy limit;
  limit.name = read_name(reader);
  reader.require("rate");
  const auto rate = reader.rate("rate");
  if (reader.find("by") != nullptr) limit.by = read_by(reader);
  limit.scope = reader.word<Scope>("scope", kScopeWords).value_or(Scope::host);
  if (limit.scope == Scope::cluster && limit.by && is_one_of(kOwnersOfOneHost, limit.by->by)) {
    reader.diagnostics().error(reader.position_of("by"),
                               "buckets of a cgroup, process or container have no name that holds on all hosts: with "
                               "scope = \"cluster\" an owner is a \"user\"");
  }
  limit.discipline = reader.word<Discipline>("discipline", kDisciplineWords).value_or(Discipline::token);
  const auto burst = reader.burst("burst");
  // Over several hosts the burst is what Redis saves until a host asks; each of them spaces what it gets.
  if (limit.discipline == Discipline::leaky && limit.scope == Scope::host) {
    limit.burst = kLeakySlack;
    if (reader.find("burst") != nullptr) {
      reader.diagnostics().error(reader.position_of("burst"),
                                 "a leaky limit has no burst: it lets packets through evenly spaced");
    }
  } else {
    limit.burst = burst.value_or(limit.scope == Scope::cluster ? kDefaultClusterBurst : kDefaultBurst);
  }
  limit.cluster = read_cluster_rule(reader, limit);
  if (!rate) return limit;
  limit.rate = *rate;
  // Links of any framing may share the limit: an Ethernet frame stands for all.
  check_burst(reader, bucket_of(limit.rate, limit.burst, Framing{}), Over::delay);
  return limit;
}

}  // namespace

KeyPolicy read_by(const TableReader& reader) {
  KeyPolicy key;
  const std::string text = reader.text("by").value_or("flow");
  const std::size_t slash = text.find('/');
  const auto by = reader.word_of<EachBy>("by", text.substr(0, slash), kByWords);
  if (!by) return key;
  key.by = *by;
  if (slash == std::string::npos) return key;
  if (!is_one_of(kAddresses, key.by)) {
    reader.diagnostics().error(reader.position_of("by"), "only an address in \"by\" has prefix lengths");
    return key;
  }
  const std::string_view lengths = std::string_view(text).substr(slash + 1);
  const std::size_t comma = lengths.find(',');
  const auto ipv4 = parse_bits(lengths.substr(0, comma), 32);
  const auto ipv6 = comma == std::string_view::npos ? std::nullopt : parse_bits(lengths.substr(comma + 1), 128);
  if (!ipv4 || !ipv6) {
    reader.diagnostics().error(reader.position_of("by"),
                               "an address in \"by\" takes both prefix lengths, IPv4 and IPv6: \"source/24,64\"");
    return key;
  }
  key.bits_ipv4 = *ipv4;
  key.bits_ipv6 = *ipv6;
  return key;
}

ReadLimits read_limits(const TableReader& top) {
  Diagnostics& diagnostics = top.diagnostics();
  ReadLimits limits;
  const bool has_cluster = top.find("cluster") != nullptr;
  for (const Node* node : tables_of(top, "limit", kMostLimits)) {
    const TableReader reader(std::get<tree::Table>(node->value), node->position, kLimitLevel, diagnostics);
    LimitPolicy limit = read_limit(reader);
    const bool added = limits.index.emplace(limit.name, static_cast<LimitIndex>(limits.policies.size())).second;
    if (!added && !limit.name.empty()) {
      diagnostics.error(reader.position_of("name"), "another limit has this name already");
    }
    if (limit.scope == Scope::cluster && !has_cluster) {
      diagnostics.error(reader.position_of("scope"), "such a limit needs [cluster] with the address of its Redis");
    }
    limits.positions.push_back(reader.position_of("name"));
    limits.policies.push_back(std::move(limit));
  }
  return limits;
}

void warn_of_unused_limits(const ReadLimits& limits, std::span<const ClassPolicy> classes, Diagnostics& diagnostics) {
  std::vector<bool> used(limits.policies.size());
  for (const ClassPolicy& each : classes) {
    for (const LimitIndex limit : each.limits) used[limit] = true;
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i]) continue;
    diagnostics.warning(limits.positions[i], "no class names this limit: it holds nothing");
  }
}

}  // namespace shaper
