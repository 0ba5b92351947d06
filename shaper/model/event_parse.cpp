// The way back from a line of the event log to the event. Anything may stand in the line.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <tuple>

#include "shaper/model/address_text.h"
#include "shaper/model/event_log.h"
#include "shaper/model/event_words.h"
#include "shaper/model/line_reader.h"
#include "shaper/model/owner_text.h"

namespace shaper {
namespace {

/// One of a packet's optional words.
void packet_option(LineReader& line, Packet& packet) {
  const std::string_view option = line.word();
  const auto [key, value] = key_and_value(option);
  const std::string what = "a number as a packet's property";
  if (option == "super") {
    packet.super = true;
  } else if (option == "fragment") {
    packet.headers.fragment = true;
  } else if (option == "about") {
    read_flow(line, packet.about.emplace());
  } else if (key == "dscp") {
    packet.headers.dscp = line.number_in<std::uint8_t>(value, what);
    if (packet.headers.dscp > 63) line.fail("a DSCP from 0 to 63");
  } else if (key == "ecn") {
    packet.headers.ecn = line.number_in<std::uint8_t>(value, what);
    if (packet.headers.ecn > 3) line.fail("an ECN field from 0 to 3");
  } else if (key == "mark") {
    packet.mark = line.number_in<std::uint32_t>(value, what);
  } else if (key == "user") {
    packet.user = line.number_in<std::uint32_t>(value, what);
  } else if (key == "group") {
    packet.group = line.number_in<std::uint32_t>(value, what);
  } else {
    line.fail("one of super, fragment, dscp=, ecn=, mark=, user=, group=, about");
  }
}

event::Arrival arrival(LineReader& line) {
  Packet packet;
  packet.id = packet_id(line);
  packet.link = line.number_of<LinkIndex>("link");
  const std::string_view queue = line.value("queue");
  if (queue != "fast" && queue != "split") line.fail("queue=fast or queue=split");
  packet.queue = queue == "split" ? QueueKind::split : QueueKind::fast;

  Headers& headers = packet.headers;
  read_flow(line, headers);
  packet.ip_bytes = line.number_of<std::uint32_t>("bytes");
  std::tie(headers.network_bytes, headers.transport_bytes) = line.numbers_in<std::uint16_t, std::uint16_t>(
      line.value("headers"), '+', "the lengths of the headers, `headers=20+32`");
  while (!line.at_end() && line.error().empty()) packet_option(line, packet);
  return {packet};
}

/// The rest of a verdict's line, behind the word for its decision.
Verdict verdict(LineReader& line, Decision decision) {
  Verdict verdict;
  verdict.decision = decision;
  verdict.id = packet_id(line);
  verdict.class_index = index_of<ClassIndex>(line, "class");
  verdict.frames = line.number_of<std::uint32_t>("frames");
  verdict.wire_bytes.value = line.number_of<std::uint64_t>("wire");
  verdict.delay = Nanos{line.number_of<std::int64_t>("delay")};
  if (decision == Decision::drop) {
    const std::string_view reason = line.value("reason");
    const auto known = std::find(kDropReasonNames.begin(), kDropReasonNames.end(), reason);
    if (known == kDropReasonNames.end()) {
      line.fail("the name of a reason for a drop");
    } else {
      verdict.reason = static_cast<DropReason>(std::distance(kDropReasonNames.begin(), known));
    }
  }
  return verdict;
}

std::optional<Decision> parse_decision(std::string_view word) {
  if (word == "accept") return Decision::accept;
  if (word == "drop") return Decision::drop;
  if (word == "detour") return Decision::detour;
  if (word == "pass") return Decision::pass;
  if (word == "mark") return Decision::mark;
  return std::nullopt;
}

Verdict lost_verdict(LineReader& line) {
  const std::optional<Decision> decision = parse_decision(line.word());
  if (!decision) line.fail("the verdict that was lost");
  return verdict(line, decision.value_or(Decision::accept));
}

event::Start start(LineReader& line) {
  event::Start start;
  const std::string_view credit = line.word();
  if (credit != "full" && credit != "empty") line.fail("`full` or `empty`");
  start.credit = credit == "empty" ? StartCredit::empty : StartCredit::full;
  if (line.at_end()) return start;
  const auto [first, second] =
      line.numbers_in<std::uint64_t, std::uint64_t>(line.value("key"), ':', "two numbers in `key=`");
  start.key = HashKey{first, second};
  return start;
}

event::Name name(LineReader& line) {
  event::Name name;
  const std::string_view kind = line.word();
  if (kind != "user" && kind != "group") line.fail("`user` or `group`");
  name.kind = kind == "group" ? event::Name::Kind::group : event::Name::Kind::user;
  name.number = line.number<std::uint32_t>("the number of a user or group");
  name.name = line.quoted("a name in quotation marks");
  return name;
}

event::GuardPorts guard_ports(LineReader& line) {
  event::GuardPorts guard;
  const std::string_view list = line.word();
  for (std::size_t begin = 0; begin <= list.size() && line.error().empty();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    guard.ports.push_back(line.number_in<std::uint16_t>(list.substr(begin, end - begin), "ports, `22,2222`"));
    begin = end + 1;
  }
  return guard;
}

event::Owned owned(LineReader& line) {
  event::Owned owned;
  FlowKey& flow = owned.flow;
  flow.link = line.number_of<LinkIndex>("link");
  flow.mark = line.number_of<std::uint32_t>("mark");
  flow.dscp = line.number_of<std::uint32_t>("dscp");
  read_flow(line, flow);
  owned.owner = read_owner(line);
  return owned;
}

event::Live live(LineReader& line) {
  event::Live live;
  live.id = line.number<std::uint64_t>("the number of a live limit");
  live.rate = {line.number<std::uint64_t>("a rate in bits per second")};
  live.selector = line.quoted("a selector in quotation marks");
  return live;
}

/// The lines of a log's head, which have no time in front.
event::Body head_line(std::string_view word, LineReader& line, Instant& at) {
  if (word == "policy") return event::PolicyText{line.quoted("the policy in quotation marks")};
  if (word == "name") return name(line);
  if (word == "guard") return guard_ports(line);
  if (word == "owners") return event::FindsOwners{};
  if (word == "live") return live(line);
  if (word == "wallet") return granting(line);
  if (word == "skipped") return event::Skipped{line.number<std::uint64_t>("a number of lines")};
  if (word == "link") {
    event::Mtu mtu;
    mtu.link = line.number<LinkIndex>("the number of a link");
    line.expect("mtu");
    mtu.bytes = line.number<std::uint32_t>("a number of bytes");
    return mtu;
  }
  if (word == "start") {
    at = Instant{Nanos{line.number<std::int64_t>("a time in nanoseconds")}};
    return start(line);
  }
  line.fail("a time in nanoseconds, or policy, name, guard, owners, live, link, start, wallet, skipped");
  return event::Release{};
}

event::Body timed_line(LineReader& line) {
  const std::string_view what = line.word();
  if (what == "arrive") return arrival(line);
  if (what == "release") return event::Release{};
  if (what == "dry") return event::QueuesDry{};
  if (what == "departed") return event::Departed{};
  if (what == "pass_all") return event::PassAll{};
  if (what == "swap") return event::Swap{line.quoted("the policy in quotation marks")};
  if (what == "grant") return granted(line);
  if (what == "take_back") return taken_back(line);
  if (what == "refuse") return refused(line);
  if (what == "owner") return owned(line);
  if (what == "lost") return event::Lost{lost_verdict(line)};
  if (what == "mtu") {
    event::MtuChange change;
    change.link = line.number<LinkIndex>("the number of a link");
    change.bytes = line.number<std::uint32_t>("a number of bytes");
    return change;
  }
  if (const auto decision = parse_decision(what)) return event::Outcome{verdict(line, *decision)};
  line.fail("the name of an event behind the time");
  return event::Release{};
}

}  // namespace

tl::expected<Event, std::string> parse_event(std::string_view text) {
  LineReader line(text);
  Event event;
  const std::string_view first = line.word();
  if (const auto time = parse_number<std::int64_t>(first)) {
    event.at = Instant{Nanos{*time}};
    event.body = timed_line(line);
  } else {
    event.body = head_line(first, line, event.at);
  }
  if (!line.at_end()) line.fail("the end of the line");
  if (!line.error().empty()) return tl::unexpected(line.error());
  return event;
}

}  // namespace shaper
