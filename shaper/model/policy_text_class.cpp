// One class as people read it.
#include "shaper/model/match_text.h"
#include "shaper/model/policy_text_parts.h"
#include "shaper/model/units_text.h"

namespace shaper {
namespace {

const LinkPolicy& link_of(const Policy& policy, const ClassPolicy& cls) {
  return policy.links.at(cls.link);
}

void describe_matches(const ClassPolicy& cls, Lines& lines) {
  if (cls.is_default) return lines.add("match", "what no other class takes");
  if (cls.match.empty()) return lines.add("match", "everything");
  std::string_view label = "match";
  for (const Match& match : cls.match) {
    lines.add(label, describe_match(match));
    label = "   or";
  }
}

void describe_guarantee(const Policy& policy, const ClassPolicy& cls, Lines& lines) {
  const auto link_rate = link_of(policy, cls).rate;
  const bool shares = link_rate && cls.over != Over::count;
  if (!cls.rate)
    return lines.add("rate",
                     shares ? "no guarantee: shares what is free with the weight of 1 % of the link" : "no guarantee");
  const std::string rate = format_rate_both(*cls.rate) + " total, ";
  const auto asked = cls.guarantee();
  if (!asked) return lines.add("rate", rate + "only measured");
  if (!link_rate) return lines.add("rate", rate + "not guaranteed: the link has no rate");
  lines.add("rate", rate + "guaranteed");
  const DataRate sum = sum_of_guarantees(policy.classes, cls.link);
  if (sum <= *link_rate) return;
  lines.add("   in force", format_rate_both(guarantee_in_force(*asked, sum, *link_rate)) +
                               " total: the link's guarantees are scaled down to its rate");
}

std::string describe_ceil(const Policy& policy, const ClassPolicy& cls) {
  const auto link_rate = link_of(policy, cls).rate;
  const auto limit = cls.limit();
  if (limit && cls.over == Over::count) return format_rate_both(*limit) + " total, only measured";
  if (limit) return format_rate_both(*limit) + " total, at most";
  if (link_rate) return "link: all that is free, up to " + format_rate_both(*link_rate) + " total";
  return "no limit";
}

void describe_rates(const Policy& policy, const ClassPolicy& cls, Lines& lines) {
  describe_guarantee(policy, cls, lines);
  lines.add("ceil", describe_ceil(policy, cls));
  const auto rate = cls.limit() ? cls.limit() : cls.rate;
  if (rate && cls.discipline == Discipline::token) lines.add("burst", describe_burst(cls.burst, *rate));
  if (cls.each) {
    const std::string holds = cls.over == Over::count ? ", only measured" : ", at most";
    lines.add("each", format_rate_both(cls.each->rate) + " each " + describe_key(*cls.each) + holds);
    lines.add("each burst", describe_burst(cls.each->burst, cls.each->rate));
  }
  std::string names;
  for (const LimitIndex limit : cls.limits) names += (names.empty() ? "" : ", ") + policy.limits.at(limit).name;
  lines.add("limits", names.empty() ? "none" : names);
}

std::string describe_over(const Policy& policy, const ClassPolicy& cls) {
  switch (cls.over) {
    case Over::delay:
      return "delay";
    case Over::drop:
      return "drop (policer)";
    case Over::count: {
      const bool held = policy.smallest_rate(cls).has_value();
      return held ? "count (its own rates only measure; what its link and its limits allow holds all the same)"
                  : "count (measured, never held)";
    }
  }
  return "";
}

std::string describe_fair(Fair fair) {
  switch (fair) {
    case Fair::host:
      return "host: between addresses of the local side, then between flows";
    case Fair::flow:
      return "flow: between flows";
    case Fair::source:
      return "source: between source addresses, then between flows";
    case Fair::destination:
      return "destination: between destination addresses, then between flows";
    case Fair::user:
      return "user: between users of local sockets, then between flows";
    case Fair::off:
      return "off: one queue, in order of arrival";
  }
  return "";
}

void describe_waiting(const Policy& policy, const ClassPolicy& cls, Lines& lines) {
  const auto rate = policy.smallest_rate(cls);
  if (!rate || cls.over == Over::drop) return;
  const LinkPolicy& link = link_of(policy, cls);
  const Framing framing{.overhead = link.overhead, .smallest_frame = link.smallest_frame, .cells = link.cells};
  const Nanos max_delay = cls.max_delay.value_or(default_max_delay(*rate, framing.full_frame()));
  lines.add("max delay", cls.max_delay ? format_time(max_delay) : describe_derived(max_delay) + " (default)");
  const ByteCount backlog = cls.backlog.value_or(bytes_in(*rate, max_delay));
  const bool leaky = cls.discipline == Discipline::leaky;
  lines.add(leaky ? "capacity" : "backlog",
            format_size(backlog) + (cls.backlog ? "" : " (default)") +
                (leaky ? ", a wait of " + describe_derived(time_for(*rate, backlog)) + " when full" : ""));
}

std::string describe_ecn(const ClassPolicy& cls) {
  if (!cls.ecn) return "off";
  return cls.aqm ? "on: packets that can carry it get a CE mark instead of a drop" : "no marks: the AQM is off";
}

}  // namespace

void describe_class(const Policy& policy, const ClassPolicy& cls, Lines& lines) {
  lines.heading("class " + cls.name + " on link " + link_of(policy, cls).name);
  describe_matches(cls, lines);
  describe_rates(policy, cls, lines);
  lines.add("priority", std::to_string(cls.priority) + " (0 is served first, 7 last)");
  lines.add("discipline", cls.discipline == Discipline::token ? "token" : "leaky: evenly spaced, no burst");
  lines.add("over", describe_over(policy, cls));
  describe_waiting(policy, cls, lines);
  lines.add("fair", describe_fair(cls.fair));
  lines.add("aqm", cls.aqm ? "CoDel" : "off");
  lines.add("ecn", describe_ecn(cls));
}

}  // namespace shaper
