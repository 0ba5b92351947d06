// The policy from its top to its classes, which are in policy_text_class.cpp.
#include "shaper/model/policy_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "shaper/core/guard.h"
#include "shaper/model/owner_keys.h"
#include "shaper/model/policy_text_parts.h"
#include "shaper/model/units_text.h"

namespace shaper {
namespace {

std::string count_of(std::size_t number, const std::string& one, const std::string& many) {
  return std::to_string(number) + " " + (number == 1 ? one : many);
}

std::string describe_cluster(const ClusterPolicy& cluster) {
  return fmt::format("Redis at {}, this host is {}, {}, asked every {} at least", cluster.redis,
                     cluster.host.empty() ? "named by its machine" : cluster.host,
                     cluster.hosts == 0 ? "as many hosts as are seen" : count_of(cluster.hosts, "host", "hosts"),
                     format_time(cluster.interval));
}

std::string describe_owners(const Policy& policy) {
  if (policy.owners) return "found out for all flows";
  return needs_owners(policy) ? "found out: keys of this policy ask for them" : "off";
}

void describe_top(const Policy& policy, const HostPolicy& host, Lines& lines) {
  lines.heading(count_of(policy.links.size(), "link", "links") + ", " +
                count_of(policy.classes.size(), "class", "classes") + ", " +
                count_of(policy.limits.size(), "limit", "limits") + ", at most " +
                count_of(policy.max_flows, "flow", "flows"));
  lines.add("mark mask", fmt::format("{:#x}", policy.mark_mask));
  lines.add("real time", policy.realtime ? "on" : "off");
  lines.add("owners", describe_owners(policy));
  lines.add("repair", host.repair ? "rules that are gone are put back, once a minute" : "off");
  if (host.cluster) lines.add("cluster", describe_cluster(*host.cluster));
  lines.add("operators", host.operators ? fmt::format("root, and group {}", *host.operators) : "root");
}

std::string describe_link_rate(const Policy& policy, LinkIndex index) {
  const LinkPolicy& link = policy.links[index];
  const DataRate sum = sum_of_guarantees(policy.classes, index);
  if (link.rate)
    return format_rate_both(*link.rate) + " total, of it guaranteed: " + format_rate(std::min(sum, *link.rate));
  return sum == DataRate{} ? "no total" : "no total: guarantees cannot be enforced";
}

std::string describe_cells(Cells cells) {
  switch (cells) {
    case Cells::none:
      return "none";
    case Cells::atm:
      return "ATM: 53 B charged for each 48 B that a frame begins";
    case Cells::ptm:
      return "PTM: one byte more charged for each 64 B that a frame begins";
  }
  return "";
}

void describe_link(const Policy& policy, LinkIndex index, Lines& lines) {
  const LinkPolicy& link = policy.links[index];
  lines.heading("link " + link.name);
  lines.add("interface", link.interface);
  lines.add("direction", link.direction == Direction::egress ? "egress" : "ingress");
  lines.add("rate", describe_link_rate(policy, index));
  lines.add("overhead", std::to_string(link.overhead) + " B added to each frame's IP length, at least " +
                            std::to_string(link.smallest_frame) + " B charged");
  lines.add("cells", describe_cells(link.cells));
  lines.add("without daemon",
            link.without_daemon == WithoutDaemon::pass ? "pass (traffic flows unshaped)" : "block (nothing passes)");
  lines.add("guard",
            link.guard ? "on (local SSH ports keep " + format_rate(kGuardRate) + " for what is sparse)" : "off");
}

/// For each limit the classes that name it.
std::vector<std::string> users_of_limits(const Policy& policy) {
  std::vector<std::string> users(policy.limits.size());
  for (const ClassPolicy& each : policy.classes) {
    for (const LimitIndex limit : each.limits) {
      std::string& list = users.at(limit);
      if (!list.empty()) list += ", ";
      list += each.name + " on " + policy.links.at(each.link).name;
    }
  }
  return users;
}

void describe_cluster_rule(const ClusterRule& rule, Lines& lines) {
  lines.add("scope", rule.observe ? "cluster: counted, but nobody is held up" : "cluster");
  constexpr std::array kHow{"hosts ask ahead of need", "every packet waits for an answer",
                            "hosts spend, then settle: the total flaps", "hosts spend, then tell all: the total flaps"};
  lines.add("strategy",
            fmt::format("{} ({})", strategy_name(rule.strategy), kHow.at(static_cast<std::size_t>(rule.strategy))));
  switch (rule.without_redis) {
    case WithoutRedis::reject:
      lines.add("without Redis", "reject (nothing passes)");
      break;
    case WithoutRedis::allow:
      lines.add("without Redis", "allow (everything passes, unmetered)");
      break;
    case WithoutRedis::degrade:
      lines.add("without Redis", "degrade: this host keeps " +
                                     (rule.local_rate ? format_rate(*rule.local_rate) : "its share of the rate"));
      break;
  }
  lines.add("reserve", rule.reserve ? "the share of hosts that are missing stays free" : "off");
  lines.add("max rate", rule.max_rate ? format_rate(*rule.max_rate) : "what Redis says");
}

void describe_limit(const LimitPolicy& limit, const std::string& users, Lines& lines) {
  const bool token = limit.discipline == Discipline::token;
  lines.heading("limit " + limit.name);
  lines.add("rate",
            format_rate_both(limit.rate) + (limit.by ? " each " + describe_key(*limit.by) : " total") + ", at most");
  const bool host = limit.scope == Scope::host;
  if (token || !host) lines.add("burst", describe_burst(limit.burst, limit.rate));
  const std::string leaky = host ? "leaky: evenly spaced, no burst" : "leaky: each host spaces its part evenly";
  lines.add("discipline", token ? "token" : leaky);
  if (host) {
    lines.add("scope", "host");
  } else {
    describe_cluster_rule(limit.cluster, lines);
  }
  lines.add("charged by", users.empty() ? "no class" : users);
}

bool has_both_directions(const Policy& policy) {
  std::set<Direction> directions;
  for (const LinkPolicy& link : policy.links) directions.insert(link.direction);
  return directions.size() == 2;
}

}  // namespace

std::string describe_policy(const Policy& policy, const HostPolicy& host) {
  Lines lines;
  describe_top(policy, host, lines);
  for (std::size_t i = 0; i < policy.links.size(); ++i) {
    lines.blank();
    describe_link(policy, static_cast<LinkIndex>(i), lines);
  }
  const std::vector<std::string> users = users_of_limits(policy);
  for (std::size_t i = 0; i < policy.limits.size(); ++i) {
    lines.blank();
    describe_limit(policy.limits[i], users[i], lines);
  }
  for (const ClassPolicy& each : policy.classes) {
    lines.blank();
    describe_class(policy, each, lines);
  }
  if (has_both_directions(policy)) {
    lines.blank();
    lines.heading("A packet that comes in on an ingress link and goes out on an egress link is charged by both.");
  }
  return lines.take();
}

}  // namespace shaper
