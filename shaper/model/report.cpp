#include "shaper/model/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "shaper/model/address_text.h"
#include "shaper/model/advice.h"
#include "shaper/model/owner_text.h"
#include "shaper/model/policy_text_parts.h"
#include "shaper/version.h"

namespace shaper {
namespace {

ClassReport class_report(const Policy& policy, const ClassSnapshot& snapshot) {
  const ClassPolicy& configured = policy.classes.at(snapshot.index);
  ClassReport report;
  report.name = configured.name;
  report.link = policy.links.at(configured.link).name;
  report.guarantee = snapshot.guarantee;
  report.limit = configured.limit();
  report.rate = snapshot.rate;
  if (report.limit) report.burst = burst_bytes(configured.burst, *report.limit);
  report.sent_packets = snapshot.traffic.sent_packets;
  report.sent_bytes = snapshot.traffic.sent_bytes;
  report.wire_bytes = snapshot.traffic.wire_bytes;
  report.dropped_packets = snapshot.traffic.dropped_packets();
  report.dropped_bytes = snapshot.traffic.dropped_bytes;
  report.drops = snapshot.traffic.drops;
  report.marked_packets = snapshot.traffic.marked_packets;
  report.backlog_packets = snapshot.backlog_packets;
  report.backlog_bytes = snapshot.backlog_bytes;
  report.credit = snapshot.credit;
  report.borrowed = snapshot.borrowed_bytes;
  report.late_bytes = snapshot.late_bytes;
  report.lost_packets = snapshot.lost_packets;
  report.passed_packets = snapshot.passed_packets;
  report.in_packets = snapshot.in_packets;
  report.flows = snapshot.flows;
  report.delay = snapshot.delay;
  if (configured.each) report.each = EachReport{std::string(each_name(configured.each->by)), configured.each->rate};
  report.priority = configured.priority;
  report.depth = snapshot.depth;
  report.wait = snapshot.wait;
  if (snapshot.held_by) report.held_by = held_report(policy, *snapshot.held_by, snapshot.index, configured.link);
  report.delay_counts = snapshot.delay_counts;
  return report;
}

LinkReport link_report(const LinkPolicy& configured, const LinkSnapshot& snapshot) {
  LinkReport report;
  report.name = configured.name;
  report.interface = configured.interface;
  report.direction = configured.direction;
  report.limit = configured.rate;
  report.without_daemon = configured.without_daemon;
  report.credit = snapshot.credit;
  report.depth = snapshot.depth;
  report.late_bytes = snapshot.late_bytes;
  return report;
}

LimitReport limit_report(const LimitPolicy& configured, const LimitSnapshot& snapshot) {
  LimitReport report;
  report.name = configured.name;
  report.limit = configured.rate;
  report.rate = snapshot.rate;
  report.scope = configured.scope;
  report.credit = snapshot.credit;
  if (configured.live_id != 0) {
    report.id = configured.live_id;
    report.selector = configured.selector;
    report.keys = 1;
  } else {
    if (configured.by) report.by = describe_key(*configured.by);
    report.keys = snapshot.keys;
  }
  report.other_flows = snapshot.other_flows;
  report.wire_bytes = snapshot.wire_bytes;
  report.depth = snapshot.depth;
  report.late_bytes = snapshot.late_bytes;
  return report;
}

void add(LinkReport& link, const ClassReport& of_class) {
  link.rate.bits_per_second += of_class.rate.bits_per_second;
  link.sent_packets += of_class.sent_packets;
  link.sent_bytes += of_class.sent_bytes;
  link.wire_bytes += of_class.wire_bytes;
  link.dropped_packets += of_class.dropped_packets;
  link.backlog_packets += of_class.backlog_packets;
  link.backlog_bytes += of_class.backlog_bytes;
}

std::string_view family_name(Family family) {
  if (family == Family::other) return "other";
  return family == Family::ipv4 ? "ipv4" : "ipv6";
}

/// Port zero means that the packet had none.
std::optional<std::uint16_t> port_or_nothing(std::uint16_t port) {
  return port == 0 ? std::nullopt : std::optional(port);
}

}  // namespace

StatusReport status_report(const Policy& policy, const CoreSnapshot& snapshot) {
  StatusReport report;
  report.version = kVersion;
  report.mark_mask = policy.mark_mask;
  if (policy.finds_owners)
    report.owners = OwnersReport{snapshot.owners.found, snapshot.owners.late, 0, snapshot.owner_totals};
  for (const LinkSnapshot& link : snapshot.links) {
    report.links.push_back(link_report(policy.links.at(link.index), link));
  }
  for (const LimitSnapshot& limit : snapshot.limits) {
    report.limits.push_back(limit_report(policy.limits.at(limit.index), limit));
  }
  const auto is_automatic = [&policy](const ClassSnapshot& of_class) {
    const ClassPolicy& configured = policy.classes.at(of_class.index);
    return configured.is_default && configured.name == "default";
  };
  for (const bool automatic : {false, true}) {
    for (const ClassSnapshot& of_class : snapshot.classes) {
      if (is_automatic(of_class) != automatic) continue;
      const ClassReport& row = report.classes.emplace_back(class_report(policy, of_class));
      add(report.links.at(policy.classes.at(of_class.index).link), row);
    }
  }
  report.advice = drop_advice(policy, snapshot);
  return report;
}

FlowReport flow_report(const Policy& policy, const FlowSnapshot& flow, const UserNames& users, Nanos to_utc) {
  FlowReport report;
  report.class_name = policy.classes.at(flow.class_index).name;
  report.link = policy.links.at(flow.link).name;
  report.family = family_name(flow.headers.family);
  report.protocol = protocol_name(flow.headers.protocol);
  report.source = format_address(flow.headers.family, flow.headers.source);
  report.source_port = port_or_nothing(flow.headers.source_port);
  report.destination = format_address(flow.headers.family, flow.headers.destination);
  report.destination_port = port_or_nothing(flow.headers.destination_port);
  if (flow.user) {
    const auto name = users.find(*flow.user);
    report.user = name == users.end() ? std::to_string(*flow.user) : name->second;
  }
  if (flow.owner) {
    if (std::string name = owner_name(*flow.owner); !name.empty()) report.owner = std::move(name);
  }
  report.packets = flow.traffic.sent_packets;
  report.bytes = flow.traffic.sent_bytes;
  report.wire_bytes = flow.traffic.wire_bytes;
  report.dropped_packets = flow.traffic.dropped_packets();
  report.dropped_bytes = flow.traffic.dropped_bytes;
  report.drops = flow.traffic.drops;
  report.marked_packets = flow.traffic.marked_packets;
  report.rate = flow.rate;
  report.backlog_packets = flow.backlog_packets;
  report.backlog_bytes = flow.backlog_bytes;
  report.delay = flow.delay;
  report.first_seen = rfc3339(flow.first_seen.time_since_epoch() + to_utc);
  report.last_seen = rfc3339(flow.last_seen.time_since_epoch() + to_utc);
  report.activity = flow.activity;
  if (flow.held_by) report.held_by = held_report(policy, *flow.held_by, flow.class_index, flow.link);
  return report;
}

HeldReport held_report(const Policy& policy, const HeldBy& held, ClassIndex of_class, LinkIndex link) {
  const auto name = [&] {
    if (held.limit) return policy.limits.at(*held.limit).name;
    return held.holder == Holder::link ? policy.links.at(link).name : policy.classes.at(of_class).name;
  };
  return {std::string(holder_name(held.holder)), name()};
}

std::string_view holder_name(Holder holder) {
  switch (holder) {
    case Holder::each:
      return "each";
    case Holder::ceil:
      return "class";
    case Holder::limit:
      return "limit";
    case Holder::cluster:
      return "cluster";
    case Holder::link:
      break;
  }
  return "link";
}

std::string rfc3339(Nanos since_epoch) {
  using namespace std::chrono;
  constexpr sys_days kFirst = year{1970} / January / 1;
  constexpr sys_days kLast = year{9999} / December / 31;
  const microseconds time = std::clamp(floor<microseconds>(since_epoch), microseconds{kFirst.time_since_epoch()},
                                       microseconds{kLast.time_since_epoch()});
  const auto day = floor<days>(time);
  const year_month_day date{sys_days{day}};
  const hh_mm_ss<microseconds> clock{time - day};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", int{date.year()}, unsigned{date.month()},
                     unsigned{date.day()}, clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     clock.subseconds().count());
}

std::string_view mode_name(Mode mode) {
  switch (mode) {
    case Mode::shaping:
      return "shaping";
    case Mode::bypassed:
      return "bypassed";
    case Mode::blocked:
      return "blocked";
  }
  return "";
}

std::string_view rules_status_name(RulesStatus state) {
  switch (state) {
    case RulesStatus::present:
      return "present";
    case RulesStatus::missing:
      return "missing";
    case RulesStatus::foreign:
      return "foreign";
  }
  return "";
}

std::optional<RulesStatus> parse_rules_status(std::string_view name) {
  for (const RulesStatus state : {RulesStatus::present, RulesStatus::missing, RulesStatus::foreign}) {
    if (rules_status_name(state) == name) return state;
  }
  return std::nullopt;
}

std::string_view direction_name(Direction direction) {
  return direction == Direction::egress ? "egress" : "ingress";
}

std::string_view without_daemon_name(WithoutDaemon without_daemon) {
  return without_daemon == WithoutDaemon::pass ? "pass" : "block";
}

std::string_view scope_name(Scope scope) {
  return scope == Scope::host ? "host" : "cluster";
}

std::string_view activity_name(FlowActivity activity) {
  switch (activity) {
    case FlowActivity::idle:
      return "idle";
    case FlowActivity::passing:
      return "passing";
    case FlowActivity::fresh:
      return "new";
    case FlowActivity::bulk:
      return "bulk";
    case FlowActivity::limited:
      return "limited";
  }
  return "";
}

std::string_view each_name(EachBy by) {
  switch (by) {
    case EachBy::flow:
      return "flow";
    case EachBy::source:
      return "source";
    case EachBy::destination:
      return "destination";
    case EachBy::local:
      return "local";
    case EachBy::remote:
      return "remote";
    case EachBy::user:
      return "user";
    case EachBy::cgroup:
      return "cgroup";
    case EachBy::process:
      return "process";
    case EachBy::container:
      return "container";
    case EachBy::all:
      break;
  }
  return "";
}

}  // namespace shaper
