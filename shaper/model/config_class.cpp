// One class of a policy.
#include <algorithm>
#include <array>
#include <charconv>

#include "shaper/model/config_parts.h"
#include "shaper/model/units_text.h"

namespace shaper {
namespace {

using tree::Entry;
using tree::Position;

// One full frame comes on top of the burst, up to 512 KiB of it (BIG TCP): 1 MiB is kept for that.
constexpr ByteCount kDeepestBurst{kDeepestBucket.value - (std::uint64_t{1} << 20)};
constexpr Nanos kLongestDelay = std::chrono::hours{1};
// What a policer must let through in a row, so that TCP can reach its rate.
constexpr Nanos kAdvisedPolicerBurst = std::chrono::milliseconds{50};

constexpr std::array kOverWords{Word<Over>{"delay", Over::delay}, Word<Over>{"drop", Over::drop},
                                Word<Over>{"count", Over::count}};

enum class Only : std::uint8_t { value };
constexpr std::array kDisciplineWords{Word<Only>{"token", Only::value}, Word<Only>{"leaky", {}}};
constexpr std::array kFairWords{Word<Only>{"flow", Only::value}, Word<Only>{"host", {}}, Word<Only>{"source", {}},
                                Word<Only>{"destination", {}},   Word<Only>{"user", {}}, Word<Only>{"off", {}}};

constexpr std::array kByWords{Word<EachBy>{"flow", EachBy::flow},
                              Word<EachBy>{"source", EachBy::source},
                              Word<EachBy>{"destination", EachBy::destination},
                              Word<EachBy>{"local", EachBy::local},
                              Word<EachBy>{"remote", EachBy::remote},
                              Word<EachBy>{"user", {}},
                              Word<EachBy>{"cgroup", {}},
                              Word<EachBy>{"process", {}},
                              Word<EachBy>{"container", {}}};

std::optional<std::uint8_t> parse_bits(std::string_view text, std::uint8_t most) {
  std::uint8_t bits = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits);
  if (error != std::errc{} || end != text.data() + text.size() || bits == 0 || bits > most) return std::nullopt;
  return bits;
}

/// `by`: a word, and for addresses the bits that count: "source/24,64".
void read_by(const TableReader& reader, Each& each) {
  const auto text = reader.text("by");
  if (!text) return;
  const std::size_t slash = text->find('/');
  const std::string word = text->substr(0, slash);
  std::vector<std::string_view> names;
  for (const Word<EachBy>& known : kByWords) names.push_back(known.text);
  const auto known =
      std::find_if(kByWords.begin(), kByWords.end(), [&](const Word<EachBy>& by) { return by.text == word; });
  if (known == kByWords.end()) return reader.unknown_word("by", word, names);
  if (!known->meaning) return reader.not_in_this_version("by", known->text);
  each.by = *known->meaning;
  if (slash == std::string::npos) return;
  const std::string_view lengths = std::string_view(*text).substr(slash + 1);
  const std::size_t comma = lengths.find(',');
  const auto ipv4 = parse_bits(lengths.substr(0, comma), 32);
  const auto ipv6 = comma == std::string_view::npos ? std::nullopt : parse_bits(lengths.substr(comma + 1), 128);
  if (!ipv4 || !ipv6 || each.by == EachBy::flow) {
    reader.diagnostics().error(reader.position_of("by"),
                               "an address in \"by\" takes both prefix lengths, IPv4 and IPv6: \"source/24,64\"");
    return;
  }
  each.bits_ipv4 = *ipv4;
  each.bits_ipv6 = *ipv6;
}

void check_burst(const TableReader& reader, const Burst& burst, DataRate rate, Over over) {
  const ByteCount bytes = burst_bytes(burst, rate);
  const Position position = reader.position_of("burst");
  if (bytes > kDeepestBurst) {
    reader.diagnostics().error(position, "a burst of " + format_size(bytes) + " is larger than a bucket may hold, " +
                                             format_size(kDeepestBurst));
  }
  const ByteCount advised = bytes_in(rate, kAdvisedPolicerBurst);
  if (over == Over::drop && bytes < advised) {
    reader.diagnostics().warning(position, "a policer with a burst of " + format_size(bytes) +
                                               " drops what TCP sends in a row and stays below its rate: burst = "
                                               "\"50ms\" (" +
                                               format_size(advised) + ") or more is advised");
  }
}

std::optional<Each> read_each(const TableReader& owner, Over over) {
  const Entry* entry = owner.find("each");
  if (entry == nullptr) return std::nullopt;
  const auto* table = std::get_if<tree::Table>(&entry->node.value);
  if (table == nullptr) {
    owner.diagnostics().error(entry->node.position,
                              "\"each\" must be a table such as { by = \"flow\", rate = \"2mbit\" }");
    return std::nullopt;
  }
  const TableReader reader(*table, entry->node.position, kEachLevel, owner.diagnostics());
  Each each;
  reader.require("by");
  reader.require("rate");
  read_by(reader, each);
  each.burst = reader.burst("burst").value_or(kDefaultBurst);
  const auto rate = reader.rate("rate");
  if (!rate) return std::nullopt;
  each.rate = *rate;
  check_burst(reader, each.burst, each.rate, over);
  return each;
}

void read_rates(const TableReader& reader, ClassPolicy& policy) {
  Diagnostics& diagnostics = reader.diagnostics();
  policy.rate = reader.rate("rate");
  const Entry* ceil = reader.find("ceil");
  if (ceil != nullptr && scalar_text(ceil->node) == "link") {
    reader.not_in_this_version("ceil", "link");
    return;
  }
  policy.ceil = reader.rate("ceil");
  if (!policy.rate || !policy.ceil) return;
  if (*policy.rate > *policy.ceil) {
    diagnostics.error(reader.position_of("rate"),
                      "the rate, " + format_rate(*policy.rate) + ", is above the ceil, " + format_rate(*policy.ceil));
  } else if (*policy.rate < *policy.ceil) {
    diagnostics.warning(reader.position_of("rate"),
                        "a guarantee cannot be enforced on a link without a rate: only the ceil holds");
  }
}

void read_bounds(const TableReader& reader, ClassPolicy& policy) {
  const auto burst = reader.burst("burst");
  policy.burst = burst.value_or(kDefaultBurst);
  if (const auto limit = policy.limit()) {
    check_burst(reader, policy.burst, *limit, policy.over);
  } else if (burst && reader.find("rate") == nullptr && reader.find("ceil") == nullptr) {
    reader.diagnostics().warning(reader.position_of("burst"), "this burst does nothing: there is no rate and no ceil");
  }
  policy.max_delay = reader.time("max_delay");
  if (policy.max_delay && *policy.max_delay > kLongestDelay) {
    reader.diagnostics().error(reader.position_of("max_delay"),
                               "\"max_delay\" may be " + format_time(kLongestDelay) + " at most");
  }
  policy.backlog = reader.size("backlog");
}

std::optional<LinkIndex> read_link(const TableReader& reader, const std::vector<std::string>& links) {
  reader.require("link");
  const Entry* entry = reader.find("link");
  if (entry != nullptr && std::holds_alternative<tree::List>(entry->node.value)) {
    reader.diagnostics().error(entry->node.position, "a list of links is not in this version: name one link");
    return std::nullopt;
  }
  const auto name = reader.text("link");
  if (!name) return std::nullopt;
  const auto found = std::find(links.begin(), links.end(), *name);
  if (found != links.end()) return static_cast<LinkIndex>(found - links.begin());
  std::vector<std::string_view> candidates;
  for (const std::string& link : links) {
    if (is_plain_name(link)) candidates.push_back(link);
  }
  reader.diagnostics().error(entry->node.position,
                             "no link has this name: the nearest is " + nearest(*name, candidates));
  return std::nullopt;
}

}  // namespace

bool is_plain_name(std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  return !name.empty() && name.size() <= 32 && std::all_of(name.begin(), name.end(), plain);
}

ReadClass read_class(const TableReader& reader, const std::vector<std::string>& links, const NameLookup& names) {
  ReadClass result{{}, reader.position()};
  ClassPolicy& policy = result.policy;
  Diagnostics& diagnostics = reader.diagnostics();
  reader.require("name");
  policy.name = reader.text("name").value_or("");
  if (reader.find("name") != nullptr && !is_plain_name(policy.name)) {
    diagnostics.error(reader.position_of("name"), "a name has 1 to 32 letters, digits, dots, underscores and hyphens");
  }
  const auto link = read_link(reader, links);
  result.has_link = link.has_value();
  policy.link = link.value_or(LinkIndex{0});
  policy.is_default = reader.boolean("default").value_or(false);
  if (const Entry* match = reader.find("match")) {
    policy.match = read_matches(*match, names, diagnostics);
    if (policy.is_default) {
      diagnostics.error(match->position, "the default class takes what matches nothing: it has no \"match\"");
    }
  }
  policy.over = reader.word<Over>("over", kOverWords).value_or(Over::delay);
  read_rates(reader, policy);
  read_bounds(reader, policy);
  policy.each = read_each(reader, policy.over);
  static_cast<void>(reader.word<Only>("discipline", kDisciplineWords));
  static_cast<void>(reader.word<Only>("fair", kFairWords));
  reader.only_false("aqm");
  reader.only_false("ecn");
  return result;
}

}  // namespace shaper
