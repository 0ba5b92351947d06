#include "shaper/model/event_log.h"

#include <fmt/format.h>

#include <iterator>

#include "shaper/model/address_text.h"
#include "shaper/model/owner_text.h"
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
    case Decision::mark:
      return "mark";
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

std::string name_at(const std::vector<std::string>& names, std::size_t index) {
  return index < names.size() ? names[index] : "?";
}

template <typename... Values>
void append(std::string& text, fmt::format_string<Values...> format, Values&&... values) {
  fmt::format_to(std::back_inserter(text), format, std::forward<Values>(values)...);
}

std::int64_t nanos(Instant at) {
  return at.time_since_epoch().count();
}

/// `PROTOCOL SOURCE > DESTINATION` of a packet's headers or a flow's key.
void append_flow(std::string& text, const auto& flow) {
  append(text, "{} {} > {}", exact_protocol(flow.protocol),
         format_end_point({flow.family, flow.source, flow.source_port}),
         format_end_point({flow.family, flow.destination, flow.destination_port}));
}

/// The words that tell the buckets of one limit apart; none for a limit that has but one.
void append_key(std::string& text, const FlowKey& key) {
  FlowKey address;
  address.family = key.family;
  address.source = key.source;
  address.link = key.link;
  address.mark = key.mark;
  address.dscp = key.dscp;
  if (key != address) {
    text += " flow ";
    append_flow(text, key);
  } else if (key.family != Family::other) {
    append(text, " key={}", format_address(key.family, key.source));
  }
  if (key.link != 0) append(text, " link={}", key.link);
  if (key.mark != 0) append(text, " mark={:#x}", key.mark);
  if (key.dscp != 0) append(text, " dscp={}", key.dscp);
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
  append(text_, "{}\n", kFirstEventLine);
  in_front_of(policy, of_policy);
  append(text_, "policy {}\n", quote_line(policy_text));
  for (std::size_t link = 0; link < mtus.size(); ++link) append(text_, "link {} mtu {}\n", link, mtus[link]);
  append(text_, "start {} {}", nanos(now), start.credit == StartCredit::full ? "full" : "empty");
  if (start.key) append(text_, " key={:#x}:{:#x}", start.key->at(0), start.key->at(1));
  text_ += '\n';
}

void EventLog::wallet(const WalletState& wallet) {
  text_ += "wallet ";
  limit({wallet.limit, {}});
  append(text_, " left={} debt={} largest={} pace={} frame={} credit={}", wallet.left.value, wallet.debt.value,
         wallet.largest.value, wallet.pace.bits_per_second, wallet.frame.value, wallet.credit_nanobits);
  if (wallet.valid_until) append(text_, " until={}", nanos(*wallet.valid_until));
  if (wallet.refuses) text_ += " refuses";
  text_ += '\n';
}

void EventLog::arrival(Instant now, const Packet& packet) {
  const Headers& headers = packet.headers;
  append(text_, "{} arrive {}:{} link={} queue={} ", nanos(now), packet.id.queue, packet.id.number, packet.link,
         packet.queue == QueueKind::fast ? "fast" : "split");
  append_flow(text_, headers);
  append(text_, " bytes={} headers={}+{}", packet.ip_bytes, headers.network_bytes, headers.transport_bytes);
  if (packet.super) text_ += " super";
  if (headers.fragment) text_ += " fragment";
  if (headers.dscp != 0) append(text_, " dscp={}", headers.dscp);
  if (headers.ecn != 0) append(text_, " ecn={}", headers.ecn);
  if (packet.mark != 0) append(text_, " mark={:#x}", packet.mark);
  if (packet.user) append(text_, " user={}", *packet.user);
  if (packet.group) append(text_, " group={}", *packet.group);
  if (packet.about) {
    text_ += " about ";
    append_flow(text_, *packet.about);
  }
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
  in_front_of(policy, of_policy);
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

void EventLog::grant(Instant now, const Grant& grant) {
  append(text_, "{} grant ", nanos(now));
  limit(grant.to);
  append(text_, " bytes={} until={} pace={}", grant.bytes.value, nanos(grant.valid_until), grant.pace.bits_per_second);
  append_key(text_, grant.to.key);
  text_ += '\n';
}

void EventLog::take_back(Instant now, const LimitKey& from, ByteCount bytes) {
  append(text_, "{} take_back ", nanos(now));
  limit(from);
  append(text_, " bytes={}", bytes.value);
  append_key(text_, from.key);
  text_ += '\n';
}

void EventLog::refuse(Instant now, const LimitKey& at, bool on) {
  append(text_, "{} refuse ", nanos(now));
  limit(at);
  append(text_, " on={}", on ? 1 : 0);
  append_key(text_, at.key);
  text_ += '\n';
}

void EventLog::owner(Instant now, const FlowKey& flow, const Owner& owner) {
  append(text_, "{} owner link={} mark={:#x} dscp={} ", nanos(now), flow.link, flow.mark, flow.dscp);
  append_flow(text_, flow);
  append(text_, "{}\n", owner_words(owner));
}

void EventLog::outcomes(Instant now, std::span<const Verdict> verdicts) {
  for (const Verdict& each : verdicts) verdict(now, "", each);
}

void EventLog::skipped(std::uint64_t lines) {
  append(text_, "skipped {}\n", lines);
}

/// What belongs to a policy besides its text; from here on lines name its classes and limits.
void EventLog::in_front_of(const Policy& policy, std::span<const event::Name> of_policy) {
  for (const event::Name& name : of_policy) {
    append(text_, "name {} {} {}\n", name.kind == event::Name::Kind::user ? "user" : "group", name.number,
           quote_line(name.name));
  }
  if (!policy.guard_ports.empty()) append(text_, "guard {}\n", fmt::join(policy.guard_ports, ","));
  if (policy.finds_owners) text_ += "owners\n";
  for (const LimitPolicy& each : policy.limits) {
    if (each.live_id == 0) continue;
    append(text_, "live {} {} {}\n", each.live_id, each.rate.bits_per_second, quote_line(each.selector));
  }
  class_names_.clear();
  limit_names_.clear();
  for (const ClassPolicy& each : policy.classes) class_names_.push_back(as_word(each.name));
  for (const LimitPolicy& each : policy.limits) limit_names_.push_back(as_word(each.name));
}

void EventLog::limit(const LimitKey& of) {
  append(text_, "limit={}:{}", of.limit, name_at(limit_names_, of.limit));
}

void EventLog::verdict(Instant now, std::string_view before, const Verdict& of) {
  append(text_, "{} {}{}\n", nanos(now), before, describe_verdict(of, name_at(class_names_, of.class_index)));
}

}  // namespace shaper
