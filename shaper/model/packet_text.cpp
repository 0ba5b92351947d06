#include "shaper/model/packet_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>

#include "shaper/core/guard.h"
#include "shaper/model/address_text.h"
#include "shaper/model/hold_text.h"
#include "shaper/model/owner_text.h"
#include "shaper/model/plain_text.h"
#include "shaper/model/policy_text_parts.h"
#include "shaper/model/report.h"
#include "shaper/model/units_text.h"

namespace shaper {
namespace {

using Error = tl::unexpected<std::string>;

constexpr std::string_view kForm = "PROTOCOL SOURCE[:PORT] > DESTINATION[:PORT] [key=value ...]";

bool needs_ports(std::uint8_t protocol) {
  return protocol == kTcp || protocol == kUdp;
}

/// Splits at any run of spaces.
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::string_view word = take_word(text);
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

std::string read_addresses(std::string_view from, std::string_view to, Headers& headers) {
  const auto source = parse_end_point(from);
  const auto destination = parse_end_point(to);
  for (const auto& [end_point, word] : {std::pair(source, from), std::pair(destination, to)}) {
    if (!end_point || end_point->family == Family::other) {
      return fmt::format("{} is not an address; write 10.0.0.1:443 or [2001:db8::1]:443", quoted(word));
    }
    if (needs_ports(headers.protocol) && !end_point->port) {
      return fmt::format("{} needs a port for {}, as in 10.0.0.1:443 or [2001:db8::1]:443", quoted(word),
                         protocol_name(headers.protocol));
    }
  }
  if (source->family != destination->family) return "one address is IPv4 and the other one IPv6";
  headers.family = source->family;
  headers.source = source->address;
  headers.source_port = source->port.value_or(0);
  headers.destination = destination->address;
  headers.destination_port = destination->port.value_or(0);
  if (headers.protocol == kIcmp && headers.family == Family::ipv6) headers.protocol = kIcmpv6;
  return {};
}

/// A number, or a name that `look_up` knows.
std::string read_owner(std::string_view value, std::string_view kind,
                       const std::function<std::optional<std::uint32_t>(const std::string&)>& look_up,
                       std::optional<std::uint32_t>& owner) {
  owner = parse_number<std::uint32_t>(value);
  if (!owner && look_up) owner = look_up(std::string(value));
  return owner ? std::string() : fmt::format("there is no {} {}", kind, quoted(value));
}

/// What is wrong with the value; nothing: the key is another one.
std::optional<std::string> read_owner_word(std::string_view key, std::string_view value, Owner& owner) {
  if (key == "process") {
    owner.process = value;
  } else if (key == "cgroup") {
    owner.cgroup = value.starts_with('/') ? value : "/" + std::string(value);
  } else if (key == "unit") {
    owner.cgroup += "/" + std::string(value);
  } else if (key == "container") {
    owner.container = owner.container_name = value;
  } else if (key == "pid") {
    owner.pid = parse_number<std::uint32_t>(value).value_or(0);
    owner.lineage = {owner.pid};
    if (owner.pid == 0) return fmt::format("{} is not the number of a process", quoted(value));
  } else {
    return std::nullopt;
  }
  return std::string();
}

std::string read_option(std::string_view word, const NameLookup& names, PacketQuestion& question) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) return fmt::format("{} is not of the form key=value", quoted(word));
  const std::string_view key = word.substr(0, equals);
  const std::string_view value = word.substr(equals + 1);
  Packet& packet = question.packet;
  if (key == "user") return read_owner(value, "user", names.user, packet.user);
  if (key == "group") return read_owner(value, "group", names.group, packet.group);
  if (key == "mark") {
    const auto mark = parse_number<std::uint32_t>(value);
    packet.mark = mark.value_or(0);
    return mark ? std::string() : fmt::format("{} is not a mark; write mark=0x10 or mark=16", quoted(value));
  }
  if (key == "dscp") {
    const auto dscp = parse_number<std::uint8_t>(value);
    packet.headers.dscp = dscp.value_or(0);
    return dscp && *dscp <= 63 ? std::string() : fmt::format("{} is not a DSCP from 0 to 63", quoted(value));
  }
  if (key == "link") {
    question.links.emplace_back(value);
    return {};
  }
  Owner owner = question.owner.value_or(Owner{});
  if (auto error = read_owner_word(key, value, owner)) {
    question.owner = std::move(owner);
    question.owner_words.emplace_back(word);
    return std::move(*error);
  }
  return fmt::format(
      "{} is not a key of a packet; there are user, group, cgroup, unit, process, pid, container, mark, dscp, link",
      quoted(key));
}

/// Every rate that the class's packets obey, the nearest first.
std::string limits_text(const Policy& policy, const ClassPolicy& chosen) {
  std::string text = chosen.over == Over::count ? "counted only" : "";
  const auto add = [&text](std::string_view what, DataRate rate) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what, format_rate(rate));
  };
  if (chosen.rate && chosen.rate != chosen.limit()) add("guaranteed", *chosen.rate);
  if (const auto total = chosen.limit()) add("total", *total);
  if (chosen.each) add(fmt::format("each {}", each_name(chosen.each->by)), chosen.each->rate);
  for (const LimitIndex index : chosen.limits) {
    const LimitPolicy& limit = policy.limits.at(index);
    add("limit " + limit.name + (limit.match.empty() && limit.by ? " for each " + describe_key(*limit.by) : ""),
        limit.rate);
  }
  if (const auto link = policy.links.at(chosen.link).rate) add("link", *link);
  if (chosen.over == Over::drop) text += ", dropped above it";
  return text.empty() ? "no limit" : text;
}

std::string reason_text(const ClassPolicy& chosen, const Shaper::Explanation& why) {
  if (why.match) return fmt::format("match {} of {} holds", *why.match + 1, chosen.match.size());
  return chosen.is_default ? "no other class matches" : "the class matches everything";
}

/// A guarded port, where the class of the policy could make its packets wait.
std::string guard_text() {
  return fmt::format(
      "  its local port is guarded: class {} instead ({} total), while the flow is sparse ({}, {} at once)\n",
      kGuardClass, format_rate(kGuardRate), format_rate(kGuardedFlow.rate), format_size(kGuardBurst));
}

}  // namespace

tl::expected<PacketQuestion, std::string> parse_packet(std::string_view text, const NameLookup& names) {
  const std::vector<std::string_view> words = words_of(text);
  if (words.size() < 4 || words[2] != ">") return Error(fmt::format("a packet is written {}", kForm));
  PacketQuestion question;
  Headers& headers = question.packet.headers;
  const std::vector<std::uint8_t> protocol = parse_protocol(words[0]);
  if (protocol.empty()) return Error(fmt::format("{} is not a protocol; write tcp, udp, icmp, ...", quoted(words[0])));
  headers.protocol = protocol.front();
  if (std::string error = read_addresses(words[1], words[3], headers); !error.empty()) return Error(std::move(error));
  for (std::size_t i = 4; i < words.size(); ++i) {
    if (std::string error = read_option(words[i], names, question); !error.empty()) return Error(std::move(error));
  }
  question.packet.ip_bytes = 1500;
  headers.network_bytes = headers.family == Family::ipv4 ? 20 : 40;
  return question;
}

std::string format_packet(const PacketQuestion& question) {
  const Packet& packet = question.packet;
  const Headers& headers = packet.headers;
  const auto end_point = [&headers](const Address& address, std::uint16_t port) {
    return format_end_point(
        {headers.family, address, port == 0 && !needs_ports(headers.protocol) ? std::nullopt : std::optional(port)});
  };
  std::string text =
      fmt::format("{} {} > {}", protocol_name(headers.protocol), end_point(headers.source, headers.source_port),
                  end_point(headers.destination, headers.destination_port));
  if (packet.user) text += fmt::format(" user={}", *packet.user);
  if (packet.group) text += fmt::format(" group={}", *packet.group);
  if (packet.mark != 0) text += fmt::format(" mark={:#x}", packet.mark);
  if (headers.dscp != 0) text += fmt::format(" dscp={}", headers.dscp);
  for (const std::string& word : question.owner_words) text += " " + word;
  for (const std::string& link : question.links) text += fmt::format(" link={}", link);
  return text;
}

tl::expected<std::string, std::string> explain_packet(const PacketQuestion& question, const Policy& policy,
                                                      const Shaper& shaper, std::optional<Instant> now) {
  for (const std::string& name : question.links) {
    const auto same_name = [&name](const LinkPolicy& link) { return link.name == name; };
    if (std::none_of(policy.links.begin(), policy.links.end(), same_name)) {
      return Error(fmt::format("the policy has no link {}", quoted(name)));
    }
  }
  std::string text;
  for (std::size_t link = 0; link < policy.links.size(); ++link) {
    const std::string& name = policy.links[link].name;
    if (!question.links.empty() && std::count(question.links.begin(), question.links.end(), name) == 0) continue;
    Packet packet = question.packet;
    packet.link = static_cast<LinkIndex>(link);
    const std::optional<HoldSnapshot> hold = now ? shaper.hold(packet, *now) : std::nullopt;
    if (hold && !packet.user) packet.user = hold->flow.user;
    const std::optional<Owner>& owner = question.owner || !hold ? question.owner : hold->flow.owner;
    if (owner) packet.owner = &*owner;
    const Shaper::Explanation why = shaper.explain(packet);
    const ClassPolicy& chosen = policy.classes.at(why.class_index);
    text += fmt::format("{}: class {} ({}): {}\n", name, chosen.name, reason_text(chosen, why),
                        limits_text(policy, chosen));
    if (why.guard && policy.smallest_rate(chosen)) text += guard_text();
    if (!now) continue;
    if (hold && hold->flow.owner)
      text += fmt::format("  its flow is sent by {}\n", quoted(owner_name(*hold->flow.owner)));
    text += fmt::format("  {}\n", describe_waiting(policy, shaper.snapshot(why.class_index, *now)));
    text += hold ? describe_hold(policy, *hold, *now) : "  no packet of such a flow was seen in the last minute\n";
  }
  return text;
}

}  // namespace shaper
