#include "shaper/model/event_log.h"

#include <fmt/format.h>

#include <iterator>

#include "shaper/model/address_text.h"
#include "shaper/model/plain_text.h"

namespace shaper {
namespace {

std::string_view decision_name(Decision decision) {
  switch (decision) {
    case Decision::accept:
      return "accept";
    case Decision::drop:
      return "drop";
    case Decision::detour:
      return "detour";
    case Decision::pass:
      return "pass";
  }
  return "";
}

/// protocol_name() gives ICMP and ICMPv6 one name; a log tells them apart.
std::string exact_protocol(std::uint8_t protocol) {
  return protocol == kIcmpv6 ? std::string("icmpv6") : protocol_name(protocol);
}

/// A name as one word of a line.
std::string as_word(std::string_view name) {
  std::string word;
  for (const char c : name) word += c > ' ' && c <= '~' ? c : '?';
  return word;
}

template <typename... Values>
void append(std::string& text, fmt::format_string<Values...> format, Values&&... values) {
  fmt::format_to(std::back_inserter(text), format, std::forward<Values>(values)...);
}

std::int64_t nanos(Instant at) {
  return at.time_since_epoch().count();
}

}  // namespace

bool same_verdict(const Verdict& a, const Verdict& b) {
  Verdict adjusted = a;
  if (a.decision != Decision::drop) adjusted.reason = b.reason;
  return adjusted == b;
}

std::string describe_verdict(const Verdict& verdict, std::string_view class_name) {
  std::string text;
  append(text, "{} {}:{} class={}:{} frames={} wire={} delay={}", decision_name(verdict.decision), verdict.id.queue,
         verdict.id.number, verdict.class_index, class_name, verdict.frames, verdict.wire_bytes.value,
         verdict.delay.count());
  if (verdict.decision == Decision::drop) {
    append(text, " reason={}", kDropReasonNames.at(static_cast<std::size_t>(verdict.reason)));
  }
  return text;
}

void EventLog::begin(Instant now, const event::Start& start, const Policy& policy, std::string_view policy_text,
                     std::span<const event::Name> of_policy, std::span<const std::uint32_t> mtus) {
  remember_classes(policy);
  append(text_, "{}\n", kFirstEventLine);
  names(of_policy);
  append(text_, "policy {}\n", quote_line(policy_text));
  for (std::size_t link = 0; link < mtus.size(); ++link) append(text_, "link {} mtu {}\n", link, mtus[link]);
  append(text_, "start {} {}", nanos(now), start.credit == StartCredit::full ? "full" : "empty");
  if (start.key) append(text_, " key={:#x}:{:#x}", start.key->at(0), start.key->at(1));
  text_ += '\n';
}

void EventLog::arrival(Instant now, const Packet& packet) {
  const Headers& headers = packet.headers;
  append(text_, "{} arrive {}:{} link={} queue={} {} {} > {} bytes={} headers={}+{}", nanos(now), packet.id.queue,
         packet.id.number, packet.link, packet.queue == QueueKind::fast ? "fast" : "split",
         exact_protocol(headers.protocol), format_end_point({headers.family, headers.source, headers.source_port}),
         format_end_point({headers.family, headers.destination, headers.destination_port}), packet.ip_bytes,
         headers.network_bytes, headers.transport_bytes);
  if (packet.super) text_ += " super";
  if (headers.fragment) text_ += " fragment";
  if (headers.dscp != 0) append(text_, " dscp={}", headers.dscp);
  if (headers.ecn != 0) append(text_, " ecn={}", headers.ecn);
  if (packet.mark != 0) append(text_, " mark={:#x}", packet.mark);
  if (packet.user) append(text_, " user={}", *packet.user);
  if (packet.group) append(text_, " group={}", *packet.group);
  text_ += '\n';
}

void EventLog::release(Instant now) {
  append(text_, "{} release\n", nanos(now));
}

void EventLog::departed(Instant at) {
  append(text_, "{} departed\n", nanos(at));
}

void EventLog::queues_dry(Instant now) {
  append(text_, "{} dry\n", nanos(now));
}

void EventLog::swap(Instant now, const Policy& policy, std::string_view policy_text,
                    std::span<const event::Name> of_policy) {
  remember_classes(policy);
  names(of_policy);
  append(text_, "{} swap {}\n", nanos(now), quote_line(policy_text));
}

void EventLog::mtu(Instant now, LinkIndex link, std::uint32_t bytes) {
  append(text_, "{} mtu {} {}\n", nanos(now), link, bytes);
}

void EventLog::lost(Instant now, const Verdict& of) {
  verdict(now, "lost ", of);
}

void EventLog::pass_all(Instant now) {
  append(text_, "{} pass_all\n", nanos(now));
}

void EventLog::outcomes(Instant now, std::span<const Verdict> verdicts) {
  for (const Verdict& each : verdicts) verdict(now, "", each);
}

void EventLog::skipped(std::uint64_t lines) {
  append(text_, "skipped {}\n", lines);
}

void EventLog::names(std::span<const event::Name> of_policy) {
  for (const event::Name& name : of_policy) {
    append(text_, "name {} {} {}\n", name.kind == event::Name::Kind::user ? "user" : "group", name.number,
           quote_line(name.name));
  }
}

void EventLog::remember_classes(const Policy& policy) {
  class_names_.clear();
  for (const ClassPolicy& each : policy.classes) class_names_.push_back(as_word(each.name));
}

void EventLog::verdict(Instant now, std::string_view before, const Verdict& of) {
  const bool known = of.class_index < class_names_.size();
  append(text_, "{} {}{}\n", nanos(now), before, describe_verdict(of, known ? class_names_[of.class_index] : "?"));
}

}  // namespace shaper
