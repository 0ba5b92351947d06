#include "shaper/core/classifier.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "shaper/core/owner.h"

namespace shaper {
namespace {

bool inside(const Prefix& prefix, Family family, const Address& address) {
  if (prefix.family != family) return false;
  const std::size_t whole = prefix.bits / 8;
  if (!std::equal(address.begin(), address.begin() + static_cast<std::ptrdiff_t>(whole), prefix.address.begin())) {
    return false;
  }
  const unsigned rest = prefix.bits % 8;
  return rest == 0 || ((address[whole] ^ prefix.address[whole]) >> (8 - rest)) == 0;
}

/// An empty key is not asked; else one of its values must hold.
template <typename Values, typename Holds>
bool any_or_unasked(const Values& values, Holds holds) {
  return values.empty() || std::any_of(values.begin(), values.end(), holds);
}

bool user_holds(const OwnerMatch& match, std::optional<std::uint32_t> id) {
  if (match.empty()) return true;
  if (!id) return match.unknown;
  return std::any_of(match.ids.begin(), match.ids.end(),
                     [&](const auto& range) { return range.first <= *id && *id <= range.last; });
}

/// Whether `path` is `folder` or below it.
bool below(std::string_view path, std::string_view folder) {
  if (folder == "/") return !path.empty();
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

bool has_part(std::string_view path, std::string_view part) {
  while (!path.empty()) {
    const std::size_t slash = path.rfind('/');
    if (path.substr(slash + 1) == part) return true;
    path = path.substr(0, slash == std::string_view::npos ? 0 : slash);
  }
  return false;
}

constexpr std::string_view kUnknown = "unknown";

bool process_holds(const std::string& wanted, const Owner& owner) {
  if (owner.process.empty()) return wanted == kUnknown;
  return owner.process == std::string_view(wanted).substr(0, kProcessNameBytes);
}

bool container_holds(const std::string& wanted, const Owner& owner) {
  return !owner.container.empty() && (owner.container_name == wanted || owner.container.starts_with(wanted));
}

/// The keys that ask for what is found out about the owner.
bool facts_hold(const Match& match, const Owner& owner) {
  const auto listed = [&](std::uint32_t pid) {
    return std::find(owner.lineage.begin(), owner.lineage.end(), pid) != owner.lineage.end();
  };
  return any_or_unasked(match.cgroup, [&](const std::string& path) { return below(owner.cgroup, path); }) &&
         any_or_unasked(match.unit, [&](const std::string& unit) { return has_part(owner.cgroup, unit); }) &&
         any_or_unasked(match.process, [&](const std::string& name) { return process_holds(name, owner); }) &&
         any_or_unasked(match.pid, listed) &&
         any_or_unasked(match.container, [&](const std::string& name) { return container_holds(name, owner); });
}

bool headers_hold(const Match& match, const Packet& packet, Direction direction) {
  const Headers& headers = packet.headers;
  const bool egress = direction == Direction::egress;
  const auto address = [&](const Address& value) {
    return [&](const Prefix& prefix) { return inside(prefix, headers.family, value); };
  };
  const auto port = [&](std::uint16_t value) {
    return [value](const auto& range) { return range.first <= value && value <= range.last; };
  };
  const Address& local = egress ? headers.source : headers.destination;
  const Address& remote = egress ? headers.destination : headers.source;
  const std::uint16_t local_port = egress ? headers.source_port : headers.destination_port;
  const std::uint16_t remote_port = egress ? headers.destination_port : headers.source_port;

  return any_or_unasked(match.protocol, [&](std::uint8_t value) { return value == headers.protocol; }) &&
         any_or_unasked(match.source, address(headers.source)) &&
         any_or_unasked(match.destination, address(headers.destination)) &&
         any_or_unasked(match.local, address(local)) && any_or_unasked(match.remote, address(remote)) &&
         any_or_unasked(match.source_port, port(headers.source_port)) &&
         any_or_unasked(match.destination_port, port(headers.destination_port)) &&
         any_or_unasked(match.local_port, port(local_port)) && any_or_unasked(match.remote_port, port(remote_port)) &&
         any_or_unasked(match.dscp, [&](std::uint8_t value) { return value == headers.dscp; }) &&
         any_or_unasked(match.mark, [&](const MarkMatch& mark) { return (packet.mark & mark.mask) == mark.value; }) &&
         user_holds(match.user, packet.user) && user_holds(match.group, packet.group);
}

}  // namespace

Holds holds(const Match& match, const Packet& packet, Direction direction) {
  static const Owner kNobody;
  if (!headers_hold(match, packet, direction)) return Holds::no;
  Holds result = Holds::yes;
  if (match.asks_owner()) {
    if (packet.owner == nullptr && packet.owner_pending) {
      result = Holds::perhaps;
    } else if (!facts_hold(match, packet.owner == nullptr ? kNobody : *packet.owner)) {
      return Holds::no;
    }
  }
  for (const Match& excluded : match.none_of) {
    const Holds inner = holds(excluded, packet, direction);
    if (inner == Holds::yes) return Holds::no;
    if (inner == Holds::perhaps) result = Holds::perhaps;
  }
  return result;
}

namespace {

/// In bits per second: what makes one class stricter than another.
std::uint64_t strictness(const Policy& policy, const ClassPolicy& cls) {
  const auto smallest = policy.smallest_rate(cls);
  return smallest ? smallest->bits_per_second : std::numeric_limits<std::uint64_t>::max();
}

}  // namespace

Classifier::Classifier(const Policy& policy) : guard_ports_(policy.guard_ports) {
  for (const LinkPolicy& link : policy.links) links_.push_back({link.direction, {}, {}, 0, std::nullopt});
  for (ClassIndex index = 0; index < policy.classes.size(); ++index) {
    const ClassPolicy& cls = policy.classes[index];
    LinkClasses& link = links_[cls.link];
    rates_.push_back(strictness(policy, cls));
    if (cls.is_guard) {
      link.guard = index;
    } else if (cls.is_default) {
      link.default_class = index;
    } else {
      if (cls.match.empty()) link.candidates.push_back({{index, std::nullopt}, {}});
      for (std::size_t i = 0; i < cls.match.size(); ++i) link.candidates.push_back({{index, i}, cls.match[i]});
    }
    for (const Match& match : cls.match) note_keys(match);
  }
  for (const LimitPolicy& limit : policy.limits) {
    for (const Match& match : limit.match) note_keys(match);
  }
  for (LinkClasses& link : links_) {
    std::vector<const Match*> tables;
    for (const Candidate& candidate : link.candidates) {
      tables.push_back(candidate.result.match ? &candidate.match : nullptr);
    }
    link.index = MatchIndex(tables, link.direction);
  }
}

void Classifier::note_keys(const Match& match) {
  asks_dscp_ |= !match.dscp.empty();
  asks_mark_ |= !match.mark.empty();
  asks_user_ |= !match.user.empty() || !match.group.empty();
  for (const Match& inner : match.none_of) note_keys(inner);
}

Classifier::Result Classifier::classify(const Packet& packet) const {
  const LinkClasses& link = links_[packet.link];
  std::optional<Result> strictest;  // of those that are not certain
  Result certain{link.default_class, std::nullopt};
  link.index.ask(packet, [&](std::uint32_t number) {
    const Candidate& candidate = link.candidates[number];
    const Result& result = candidate.result;
    const Holds held = result.match ? holds(candidate.match, packet, link.direction) : Holds::yes;
    if (held == Holds::yes) certain = result;
    if (held == Holds::perhaps && (!strictest || rates_[result.class_index] < rates_[strictest->class_index])) {
      strictest = result;
    }
    return held == Holds::yes;
  });
  return strictest && rates_[strictest->class_index] < rates_[certain.class_index] ? *strictest : certain;
}

std::optional<ClassIndex> Classifier::guard_of(const FlowKey& flow) const {
  const LinkClasses& link = links_[flow.link];
  if (!link.guard || flow.protocol != kTcp) return std::nullopt;
  const std::uint16_t local_port = link.direction == Direction::egress ? flow.source_port : flow.destination_port;
  if (!std::binary_search(guard_ports_.begin(), guard_ports_.end(), local_port)) return std::nullopt;
  return link.guard;
}

}  // namespace shaper
