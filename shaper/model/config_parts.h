// The parts of reading a policy, each in a file of its own: links, limits, one match table, one class, the classes of
// all links together, what rates and bursts go together, what a class hides.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "shaper/core/policy.h"
#include "shaper/core/token_bucket.h"
#include "shaper/model/config.h"
#include "shaper/model/plain_text.h"
#include "shaper/model/policy_reader.h"

namespace shaper {

/// True if `name` is 1 to 32 characters of A-Z a-z 0-9 . _ -: it may stand in rules, on terminals and in reports.
[[nodiscard]] bool is_plain_name(std::string_view name);

/// Reads the `name` that a table must have.
[[nodiscard]] std::string read_name(const TableReader& reader);

/// The tables of `[[key]]`, each a tree::Table.
[[nodiscard]] std::vector<const tree::Node*> tables_of(const TableReader& top, std::string_view key, std::size_t most);

inline constexpr std::array kDisciplineWords{Word<Discipline>{"token", Discipline::token},
                                             Word<Discipline>{"leaky", Discipline::leaky}};

/// A mark or a mask: decimal, or hexadecimal behind "0x".
[[nodiscard]] std::optional<std::uint32_t> parse_mark_number(std::string_view text);

/// Names and their positions in a list.
using NameIndex = std::map<std::string, std::uint16_t, std::less<>>;

/// The positions of what `key` names, a text or a list; a name that `index` does not have is an error.
[[nodiscard]] std::vector<std::uint16_t> read_references(const TableReader& reader, std::string_view key,
                                                         const NameIndex& index);

struct ReadLinks {
  std::vector<LinkPolicy> policies;
  std::vector<tree::Position> rates;  ///< where they stand
  NameIndex index;
};
[[nodiscard]] ReadLinks read_links(const TableReader& top);

struct ReadLimits {
  std::vector<LimitPolicy> policies;
  std::vector<tree::Position> positions;
  NameIndex index;
};
[[nodiscard]] ReadLimits read_limits(const TableReader& top);
void warn_of_unused_limits(const ReadLimits& limits, std::span<const ClassPolicy> classes, Diagnostics& diagnostics);

/// Reads the table `[cluster]`, if there is one.
[[nodiscard]] std::optional<ClusterPolicy> read_cluster(const TableReader& top);
/// Reads what a limit of a cluster has beside the keys of every limit, which must not be there on other limits.
[[nodiscard]] ClusterRule read_cluster_rule(const TableReader& reader, const LimitPolicy& limit);

/// Reads `by`: "flow", an owner, or an address with the bits that count, "source/24,64".
[[nodiscard]] KeyPolicy read_by(const TableReader& reader);

/// What a class may refer to.
struct Declared {
  const ReadLinks& links;
  const ReadLimits& limits;
  const NameLookup& names;
  std::uint32_t mark_mask;  ///< of the policy: no class may ask for it
};

/// A number or a range, well formed or not: certainly no name.
[[nodiscard]] bool is_number(std::string_view text);

/// "8000-8010" or one number, in decimal.
template <typename Number>
std::optional<Range<Number>> parse_range(std::string_view text) {
  if (!is_number(text)) return std::nullopt;
  const std::size_t dash = text.find('-');
  const auto first = parse_number<Number>(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_number<Number>(text.substr(dash + 1));
  if (!first || !last) return std::nullopt;
  return Range<Number>{*first, *last};
}

/// Reads the keys of a match that ask who sends: users, groups, cgroups, units, processes, containers.
void read_owner_keys(const TableReader& reader, const NameLookup& names, Match& match);

/// Reads the value of `match` or `not`: a table or a list of tables.
[[nodiscard]] std::vector<Match> read_matches(const tree::Entry& entry, const Declared& declared,
                                              Diagnostics& diagnostics);

/// Reads one class: what it is on each of its links, in their order. Nothing where no link is known.
[[nodiscard]] std::vector<ClassPolicy> read_class(const TableReader& reader, const Declared& declared);

/// A class of one link, and where it stands, for the checks that need all classes.
struct ReadClass {
  ClassPolicy policy;
  tree::Position position;
  bool on_several_links = false;  ///< the same table is also on another link
};

/// Reads all classes, and gives each link a default class.
[[nodiscard]] std::vector<ClassPolicy> read_classes(const TableReader& top, const Declared& declared);

/// Complains about classes that never get a packet because an earlier one takes them all.
void check_coverage(std::span<const ReadClass> classes, std::span<const LinkPolicy> links, Diagnostics& diagnostics);

/// The bucket of `rate` and `burst` on a link with such frames.
[[nodiscard]] BucketSpec bucket_of(DataRate rate, const Burst& burst, const Framing& framing);

/// How many per cent of its rate a bucket keeps when every wake-up comes `late`.
[[nodiscard]] unsigned kept_when_late(const BucketSpec& bucket, Nanos late);

/// Complains about a burst that no bucket holds; warns of one that costs rate.
void check_burst(const TableReader& reader, const BucketSpec& bucket, Over over);

/// Warns where the class's rates are more than its link keeps; checks its bursts.
void check_class_on_link(const TableReader& reader, const ClassPolicy& policy, const LinkPolicy& link);

/// Warns of guarantees that are more than their link's rate.
void warn_of_overcommitted_links(const ReadLinks& links, std::span<const ClassPolicy> classes,
                                 Diagnostics& diagnostics);

}  // namespace shaper
