#include "shaper/core/classifier.h"

#include <algorithm>

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

bool owner_holds(const OwnerMatch& match, std::optional<std::uint32_t> id) {
  if (match.empty()) return true;
  if (!id) return match.unknown;
  return std::any_of(match.ids.begin(), match.ids.end(),
                     [&](const auto& range) { return range.first <= *id && *id <= range.last; });
}

}  // namespace

bool holds(const Match& match, const Packet& packet, Direction direction) {
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
         owner_holds(match.user, packet.user) && owner_holds(match.group, packet.group) &&
         std::none_of(match.none_of.begin(), match.none_of.end(),
                      [&](const Match& inner) { return holds(inner, packet, direction); });
}

Classifier::Classifier(const Policy& policy) : guard_ports_(policy.guard_ports) {
  for (const LinkPolicy& link : policy.links) links_.push_back({link.direction, {}, 0, std::nullopt});
  for (ClassIndex index = 0; index < policy.classes.size(); ++index) {
    const ClassPolicy& cls = policy.classes[index];
    LinkClasses& link = links_[cls.link];
    if (cls.is_guard) {
      link.guard = index;
    } else if (cls.is_default) {
      link.default_class = index;
    } else {
      link.candidates.push_back({index, cls.match});
    }
    for (const Match& match : cls.match) note_keys(match);
  }
  for (const LimitPolicy& limit : policy.limits) {
    for (const Match& match : limit.match) note_keys(match);
  }
}

void Classifier::note_keys(const Match& match) {
  asks_dscp_ |= !match.dscp.empty();
  asks_mark_ |= !match.mark.empty();
  asks_owner_ |= !match.user.empty() || !match.group.empty();
  for (const Match& inner : match.none_of) note_keys(inner);
}

Classifier::Result Classifier::classify(const Packet& packet) const {
  const LinkClasses& link = links_[packet.link];
  for (const Candidate& candidate : link.candidates) {
    if (candidate.match.empty()) return {candidate.class_index, std::nullopt};
    for (std::size_t i = 0; i < candidate.match.size(); ++i) {
      if (holds(candidate.match[i], packet, link.direction)) return {candidate.class_index, i};
    }
  }
  return {link.default_class, std::nullopt};
}

std::optional<ClassIndex> Classifier::guard_of(const FlowKey& flow) const {
  const LinkClasses& link = links_[flow.link];
  if (!link.guard || flow.protocol != kTcp) return std::nullopt;
  const std::uint16_t local_port = link.direction == Direction::egress ? flow.source_port : flow.destination_port;
  if (!std::binary_search(guard_ports_.begin(), guard_ports_.end(), local_port)) return std::nullopt;
  return link.guard;
}

}  // namespace shaper
