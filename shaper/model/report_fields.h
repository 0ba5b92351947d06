// The keys of the reports' JSON, in their order: each struct once, for writing and for reading alike.
//
// fields(visit, report) calls visit(key, member) for every key; a writer is given const reports, a reader fills them.
// Included by report_json.cpp only.
#pragma once

#include <concepts>
#include <type_traits>

#include "shaper/model/report.h"

namespace shaper {

/// `Given` is `Report`, const or not.
template <typename Given, typename Report>
concept Either = std::same_as<std::remove_const_t<Given>, Report>;

template <typename Visit>
void fields(Visit& visit, Either<DelaySummary> auto& delay) {
  visit("p50", delay.p50);
  visit("p90", delay.p90);
  visit("p99", delay.p99);
  visit("max", delay.max);
}

template <typename Visit>
void fields(Visit& visit, Either<HeldReport> auto& held) {
  visit("bucket", held.bucket);
  visit("name", held.name);
}

template <typename Visit>
void fields(Visit& visit, Either<DelayCounts> auto& counts) {
  visit("packets", counts.packets);
  visit("sum_us", counts.nanoseconds);
}

template <typename Visit>
void fields(Visit& visit, Either<LinkReport> auto& link) {
  visit("name", link.name);
  visit("interface", link.interface);
  visit("direction", link.direction);
  visit("limit_bps", link.limit);
  visit("rate_bps", link.rate);
  visit("sent_packets", link.sent_packets);
  visit("sent_bytes", link.sent_bytes);
  visit("wire_bytes", link.wire_bytes);
  visit("dropped_packets", link.dropped_packets);
  visit("backlog_packets", link.backlog_packets);
  visit("backlog_bytes", link.backlog_bytes);
  visit("without_daemon", link.without_daemon);
  visit("credit_bytes", link.credit);
  visit("depth_bytes", link.depth);
  visit("late_bytes", link.late_bytes);
}

template <typename Visit>
void fields(Visit& visit, Either<EachReport> auto& each) {
  visit("by", each.by);
  visit("limit_bps", each.limit);
}

template <typename Visit>
void fields(Visit& visit, Either<ClassReport> auto& row) {
  visit("name", row.name);
  visit("link", row.link);
  visit("guarantee_bps", row.guarantee);
  visit("limit_bps", row.limit);
  visit("rate_bps", row.rate);
  visit("burst_bytes", row.burst);
  visit("sent_packets", row.sent_packets);
  visit("sent_bytes", row.sent_bytes);
  visit("wire_bytes", row.wire_bytes);
  visit("dropped_packets", row.dropped_packets);
  visit("dropped_bytes", row.dropped_bytes);
  visit("drops", row.drops);
  visit("marked_packets", row.marked_packets);
  visit("backlog_packets", row.backlog_packets);
  visit("backlog_bytes", row.backlog_bytes);
  visit("credit_bytes", row.credit);
  visit("borrowed_bytes", row.borrowed);
  visit("late_bytes", row.late_bytes);
  visit("lost_packets", row.lost_packets);
  visit("passed_packets", row.passed_packets);
  visit("in_packets", row.in_packets);
  visit("flows", row.flows);
  visit("delay_us", row.delay);
  visit("each", row.each);
  visit("priority", row.priority);
  visit("depth_bytes", row.depth);
  visit("wait_us", row.wait);
  visit("held_by", row.held_by);
  visit("delay_counts", row.delay_counts);
}

template <typename Visit>
void fields(Visit& visit, Either<LimitReport> auto& limit) {
  visit("name", limit.name);
  visit("id", limit.id);
  visit("limit_bps", limit.limit);
  visit("rate_bps", limit.rate);
  visit("scope", limit.scope);
  visit("state", limit.state);
  visit("credit_bytes", limit.credit);
  visit("expires", limit.expires);
  visit("by", limit.by);
  visit("keys", limit.keys);
  visit("depth_bytes", limit.depth);
  visit("late_bytes", limit.late_bytes);
  visit("other_flows", limit.other_flows);
  visit("selector", limit.selector);
  visit("strategy", limit.strategy);
  visit("wait_us", limit.wait);
  visit("wire_bytes", limit.wire_bytes);
}

template <typename Visit>
void fields(Visit& visit, Either<QueueReport> auto& queue) {
  visit("number", queue.number);
  visit("held", queue.held);
  visit("kernel_dropped", queue.kernel_dropped);
  visit("socket_dropped", queue.socket_dropped);
  visit("lost_verdicts", queue.lost_verdicts);
  visit("split_packets", queue.split_packets);
}

template <typename Visit>
void fields(Visit& visit, Either<OwnerTotal> auto& total) {
  visit("cgroup", total.cgroup);
  visit("container", total.container);
  visit("sent_packets", total.sent_packets);
  visit("wire_bytes", total.wire_bytes);
}

template <typename Visit>
void fields(Visit& visit, Either<OwnersReport> auto& owners) {
  visit("found", owners.found);
  visit("late", owners.late);
  visit("unasked", owners.unasked);
  visit("totals", owners.totals);
}

template <typename Visit>
void fields(Visit& visit, Either<StatusReport> auto& report) {
  visit("version", report.version);
  visit("mode", report.mode);
  visit("links", report.links);
  visit("classes", report.classes);
  visit("queues", report.queues);
  visit("limits", report.limits);
  visit("rules", report.rules);
  visit("warnings", report.warnings);
  visit("mark_mask", report.mark_mask);
  visit("advice", report.advice);
  visit("delay_bounds_us", report.delay_bounds);
  visit("owners", report.owners);
}

template <typename Visit>
void fields(Visit& visit, Either<FlowReport> auto& flow) {
  visit("class", flow.class_name);
  visit("link", flow.link);
  visit("family", flow.family);
  visit("protocol", flow.protocol);
  visit("source", flow.source);
  visit("source_port", flow.source_port);
  visit("destination", flow.destination);
  visit("destination_port", flow.destination_port);
  visit("user", flow.user);
  visit("owner", flow.owner);
  visit("packets", flow.packets);
  visit("bytes", flow.bytes);
  visit("wire_bytes", flow.wire_bytes);
  visit("dropped_packets", flow.dropped_packets);
  visit("dropped_bytes", flow.dropped_bytes);
  visit("drops", flow.drops);
  visit("marked_packets", flow.marked_packets);
  visit("rate_bps", flow.rate);
  visit("backlog_packets", flow.backlog_packets);
  visit("backlog_bytes", flow.backlog_bytes);
  visit("delay_us", flow.delay);
  visit("first_seen", flow.first_seen);
  visit("last_seen", flow.last_seen);
  visit("state", flow.activity);
  visit("held_by", flow.held_by);
}

template <typename Visit>
void fields(Visit& visit, Either<FlowsReport> auto& report) {
  visit("flows", report.flows);
  visit("total_flows", report.total_flows);
  visit("evicted_flows", report.evicted_flows);
}

template <typename Visit>
void fields(Visit& visit, Either<ClusterLimitReport> auto& limit) {
  visit("name", limit.name);
  visit("strategy", limit.strategy);
  visit("state", limit.state);
  visit("reason", limit.reason);
  visit("limit_bps", limit.limit);
  visit("share_bps", limit.share);
  visit("fallback_rate_bps", limit.fallback_rate);
  visit("members", limit.members);
  visit("buckets", limit.buckets);
  visit("granted_bytes", limit.granted);
  visit("returned_bytes", limit.returned);
  visit("unmetered_bytes", limit.unmetered);
  visit("fallback_bytes", limit.in_fallback);
  visit("fallback_us", limit.fallback_time);
  visit("fallbacks", limit.fallbacks);
  visit("asks", limit.asks);
  visit("failed_asks", limit.failed_asks);
  visit("clock_jumps", limit.clock_jumps);
  visit("generation", limit.generation);
  visit("wallet_bytes", limit.wallet);
  visit("sent_bytes", limit.sent);
  visit("debt_bytes", limit.debt);
  visit("settled_bytes", limit.settled);
  visit("told", limit.told);
  visit("want_bps", limit.want);
  visit("lease_age_us", limit.lease_age);
  visit("bucket_bytes", limit.lacks);
  visit("wait_us", limit.wait);
  visit("contended", limit.contended);
  visit("config", limit.config);
  visit("config_mismatch", limit.config_mismatch);
  visit("fallback_reasons", limit.fallback_reasons);
}

template <typename Visit>
void fields(Visit& visit, Either<ClusterReport> auto& cluster) {
  visit("host", cluster.host);
  visit("redis", cluster.redis);
  visit("trouble", cluster.trouble);
  visit("round_trip_us", cluster.round_trip);
  visit("slow_round_trip_us", cluster.slow_round_trip);
  visit("timeout_us", cluster.timeout);
  visit("calls", cluster.calls);
  visit("connects", cluster.connects);
  visit("no_script", cluster.no_script);
  visit("replays", cluster.replays);
  visit("stale", cluster.stale);
  visit("clock_offset_us", cluster.clock_offset);
  visit("limits", cluster.limits);
  visit("warnings", cluster.warnings);
  visit("namesake", cluster.namesake);
}

}  // namespace shaper
