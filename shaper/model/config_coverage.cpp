// Does an earlier class take every packet of a later one?
//
// The answer "yes" is certain, "no" is not: it is "yes" when every table of the later class implies one table of the
// earlier class, key by key. Two tables that only together cover a third are not seen. The comparisons are bounded: on
// a policy that needs more of them the rest of the check is left out.
#include <algorithm>
#include <functional>

#include "shaper/core/match_index.h"
#include "shaper/model/address_text.h"
#include "shaper/model/config_parts.h"

namespace shaper {
namespace {

constexpr std::uint64_t kMostComparisons = 20'000'000;

class Coverage {
 public:
  /// True if some table of `earlier` holds whenever one of `later` does; no tables match all.
  [[nodiscard]] bool covers(const std::vector<Match>& earlier, const std::vector<Match>& later);

 private:
  /// True if each packet that `a` matches is matched by `b` too.
  bool implies(const Match& a, const Match& b);

  template <typename Value, typename Inside>
  bool inside(const std::vector<Value>& narrow, const std::vector<Value>& wide, Inside is_inside) {
    if (wide.empty()) return true;
    if (narrow.empty()) return false;
    return std::all_of(narrow.begin(), narrow.end(), [&](const Value& value) {
      return std::any_of(wide.begin(), wide.end(), [&](const Value& candidate) {
        ++comparisons_;
        return is_inside(value, candidate);
      });
    });
  }

  template <typename Number>
  bool ranges_inside(const std::vector<Range<Number>>& narrow, const std::vector<Range<Number>>& wide) {
    return inside(narrow, wide, [](const Range<Number>& a, const Range<Number>& b) {
      return b.first <= a.first && a.last <= b.last;
    });
  }

  bool prefixes_inside(const std::vector<Prefix>& narrow, const std::vector<Prefix>& wide) {
    return inside(narrow, wide, [](const Prefix& a, const Prefix& b) { return contains(b, a); });
  }

  bool owners_inside(const OwnerMatch& narrow, const OwnerMatch& wide) {
    if (wide.empty()) return true;
    if (narrow.empty() || (narrow.unknown && !wide.unknown)) return false;
    return narrow.ids.empty() || (!wide.ids.empty() && ranges_inside(narrow.ids, wide.ids));
  }

  bool facts_inside(const Match& narrow, const Match& wide) {
    const auto below = [](const std::string& path, const std::string& folder) {
      return folder == "/" || path == folder || path.starts_with(folder + "/");
    };
    return inside(narrow.cgroup, wide.cgroup, below) && inside(narrow.unit, wide.unit, std::equal_to<>{}) &&
           inside(narrow.process, wide.process, std::equal_to<>{}) && inside(narrow.pid, wide.pid, std::equal_to<>{}) &&
           inside(narrow.container, wide.container, std::equal_to<>{});
  }

  std::uint64_t comparisons_ = 0;
};

bool Coverage::implies(const Match& a, const Match& b) {
  const auto mark_inside = [](const MarkMatch& own, const MarkMatch& other) {
    return (other.mask & ~own.mask) == 0 && (own.value & other.mask) == other.value;
  };
  ++comparisons_;
  if (comparisons_ > kMostComparisons) return false;
  // What `b` excludes, `a` must exclude as well.
  const auto is_excluded = [&](const Match& excluded) {
    return std::any_of(a.none_of.begin(), a.none_of.end(), [&](const Match& own) { return implies(excluded, own); });
  };
  return inside(a.protocol, b.protocol, std::equal_to<>{}) && prefixes_inside(a.source, b.source) &&
         prefixes_inside(a.destination, b.destination) && prefixes_inside(a.local, b.local) &&
         prefixes_inside(a.remote, b.remote) && ranges_inside(a.source_port, b.source_port) &&
         ranges_inside(a.destination_port, b.destination_port) && ranges_inside(a.local_port, b.local_port) &&
         ranges_inside(a.remote_port, b.remote_port) && inside(a.dscp, b.dscp, std::equal_to<>{}) &&
         inside(a.mark, b.mark, mark_inside) && owners_inside(a.user, b.user) && owners_inside(a.group, b.group) &&
         facts_inside(a, b) && std::all_of(b.none_of.begin(), b.none_of.end(), is_excluded);
}

bool Coverage::covers(const std::vector<Match>& earlier, const std::vector<Match>& later) {
  if (earlier.empty()) return true;
  if (later.empty()) return false;
  return std::all_of(later.begin(), later.end(), [&](const Match& narrow) {
    return std::any_of(earlier.begin(), earlier.end(), [&](const Match& wide) { return implies(narrow, wide); });
  });
}

/// `local` and `remote` as source and destination, where those are free.
void resolve(Match& match, Direction direction) {
  const bool egress = direction == Direction::egress;
  const auto move = [](auto& from, auto& to) {
    if (to.empty()) std::swap(from, to);
  };
  move(match.local, egress ? match.source : match.destination);
  move(match.remote, egress ? match.destination : match.source);
  move(match.local_port, egress ? match.source_port : match.destination_port);
  move(match.remote_port, egress ? match.destination_port : match.source_port);
  for (Match& excluded : match.none_of) resolve(excluded, direction);
}

/// True if `taker` is asked before `loser`.
bool comes_first(const ReadClass& taker, const ReadClass& loser) {
  if (taker.policy.link != loser.policy.link || taker.policy.is_default) return false;
  return loser.policy.is_default || taker.position < loser.position;
}

/// A packet that `match` takes, as far as MatchIndex looks: whatever covers the match takes it too.
Packet packet_for(const Match& match) {
  Packet packet;
  const auto first = [](const auto& values, auto& field) {
    if (!values.empty()) field = values.front().first;
  };
  const auto has = [](const std::vector<Prefix>& prefixes, Family family) {
    return prefixes.empty() || std::any_of(prefixes.begin(), prefixes.end(),
                                           [family](const auto& prefix) { return prefix.family == family; });
  };
  Headers& headers = packet.headers;
  const bool is_ipv4 = has(match.source, Family::ipv4) && has(match.destination, Family::ipv4);
  headers.family = is_ipv4 ? Family::ipv4 : Family::ipv6;
  const auto address = [&headers](const std::vector<Prefix>& prefixes, Address& field) {
    const auto found = std::find_if(prefixes.begin(), prefixes.end(),
                                    [&headers](const Prefix& prefix) { return prefix.family == headers.family; });
    if (found != prefixes.end()) field = found->address;
  };
  address(match.source, headers.source);
  address(match.destination, headers.destination);
  first(match.source_port, headers.source_port);
  first(match.destination_port, headers.destination_port);
  if (!match.user.ids.empty()) packet.user = match.user.ids.front().first;
  if (!match.group.ids.empty()) packet.group = match.group.ids.front().first;
  return packet;
}

/// The tables of a link's classes, and whose they are.
struct LinkTables {
  std::vector<const Match*> tables;
  std::vector<const ReadClass*> classes;
};

/// Those of all links, each with what finds them.
class Takers {
 public:
  Takers(std::span<const ReadClass> classes, std::span<const LinkPolicy> links) : of_links_(links.size()) {
    for (const ReadClass& each : classes) {
      LinkTables& of_link = of_links_[each.policy.link];
      const auto add = [&](const Match* table) {
        of_link.tables.push_back(table);
        of_link.classes.push_back(&each);
      };
      if (each.policy.match.empty()) add(nullptr);
      for (const Match& match : each.policy.match) add(&match);
    }
    for (std::size_t link = 0; link < links.size(); ++link) {
      indexes_.emplace_back(of_links_[link].tables, links[link].direction);
    }
  }

  /// The first class that takes all packets of `later`, if there is one.
  [[nodiscard]] const ReadClass* of(const ReadClass& later, Coverage& coverage) const {
    const LinkIndex link = later.policy.link;
    const std::vector<Match>& match = later.policy.match;
    const ReadClass* taker = nullptr;
    indexes_[link].ask(match.empty() ? Packet{} : packet_for(match.front()), [&](std::uint32_t number) {
      const ReadClass& earlier = *of_links_[link].classes[number];
      if (comes_first(earlier, later) && coverage.covers(earlier.policy.match, match)) taker = &earlier;
      return taker != nullptr;
    });
    return taker;
  }

 private:
  std::vector<LinkTables> of_links_;
  std::vector<MatchIndex> indexes_;
};

}  // namespace

void check_coverage(std::span<const ReadClass> classes, std::span<const LinkPolicy> links, Diagnostics& diagnostics) {
  std::vector<ReadClass> resolved(classes.begin(), classes.end());
  for (ReadClass& each : resolved) {
    for (Match& match : each.policy.match) resolve(match, links[each.policy.link].direction);
  }
  const Takers takers(resolved, links);
  Coverage coverage;
  for (const ReadClass& later : resolved) {
    const ReadClass* const taker = takers.of(later, coverage);
    if (taker == nullptr) continue;
    const std::string where = later.on_several_links ? " on link \"" + links[later.policy.link].name + "\"" : "";
    diagnostics.error(later.position, "class \"" + later.policy.name + "\" can never match" + where + ": class \"" +
                                          taker->policy.name + "\" takes all of its packets first");
  }
}

}  // namespace shaper
