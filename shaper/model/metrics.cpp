#include "shaper/model/metrics.h"

#include <algorithm>

#include "shaper/model/metrics_parts.h"
#include "shaper/model/metrics_writer.h"

namespace shaper {
namespace {

using enum MetricsWriter::Type;

constexpr Metric<LinkReport> kLinkMetrics[]{
    {gauge, "shaper_link_limit_bytes_per_second", "Rate that the policy sets for the link.",
     [](const LinkReport& link) { return metric(link.limit); }},
    {gauge, "shaper_link_credit_bytes", "What the link's bucket has.",
     [](const LinkReport& link) { return metric(link.credit); }},
    {gauge, "shaper_link_depth_bytes", "The most that the link's bucket saves.",
     [](const LinkReport& link) { return metric(link.depth); }},
    {counter, "shaper_link_late_bytes_total", "Credit of the link that late wake-ups cost.",
     [](const LinkReport& link) { return link.limit ? metric(link.late_bytes) : std::nullopt; }},
};

constexpr Metric<ClassReport> kClassMetrics[]{
    {gauge, "shaper_class_limit_bytes_per_second", "The most that the class may send; absent: what its link has.",
     [](const ClassReport& row) { return metric(row.limit); }},
    {gauge, "shaper_class_guarantee_bytes_per_second", "Rate that the class is guaranteed, as it is in force.",
     [](const ClassReport& row) { return metric(row.guarantee); }},
    {gauge, "shaper_class_each_limit_bytes_per_second", "The most for each flow, host or network of the class.",
     [](const ClassReport& row) { return row.each ? metric(row.each->limit) : std::nullopt; }},
    {counter, "shaper_class_sent_packets_total", "Packets sent, as frames on the wire; those lost later included.",
     [](const ClassReport& row) { return metric(row.delay_counts.total()); }},
    {counter, "shaper_class_sent_bytes_total", "IP bytes sent.",
     [](const ClassReport& row) { return metric(row.sent_bytes); }},
    {counter, "shaper_class_wire_bytes_total", "Bytes sent, as charged on the wire.",
     [](const ClassReport& row) { return metric(row.wire_bytes); }},
    {counter, "shaper_class_borrowed_bytes_total", "Wire bytes sent beyond the guarantee.",
     [](const ClassReport& row) { return metric(row.borrowed); }},
    {counter, "shaper_class_dropped_bytes_total", "IP bytes dropped.",
     [](const ClassReport& row) { return metric(row.dropped_bytes); }},
    {counter, "shaper_class_marked_packets_total", "Packets sent with CE set by CoDel.",
     [](const ClassReport& row) { return metric(row.marked_packets); }},
    {counter, "shaper_class_lost_packets_total", "Packets that the kernel cleared while they were held.",
     [](const ClassReport& row) { return metric(row.lost_packets); }},
    {counter, "shaper_class_passed_packets_total", "Packets let go unmetered.",
     [](const ClassReport& row) { return metric(row.passed_packets); }},
    {counter, "shaper_class_late_bytes_total", "Credit of the class that late wake-ups cost.",
     [](const ClassReport& row) { return metric(row.late_bytes); }},
    {gauge, "shaper_class_backlog_packets", "Packets that wait.",
     [](const ClassReport& row) { return metric(row.backlog_packets); }},
    {gauge, "shaper_class_backlog_bytes", "Wire bytes that wait.",
     [](const ClassReport& row) { return metric(row.backlog_bytes); }},
    {gauge, "shaper_class_credit_bytes", "What the class's bucket has.",
     [](const ClassReport& row) { return metric(row.credit); }},
    {gauge, "shaper_class_depth_bytes", "The most that the class's bucket saves.",
     [](const ClassReport& row) { return metric(row.depth); }},
    {gauge, "shaper_class_wait_seconds", "What a full frame that came now would wait for the class's bucket.",
     [](const ClassReport& row) { return metric(row.wait); }},
    {gauge, "shaper_class_flows", "Flows that are known, those that ended within the last minute included.",
     [](const ClassReport& row) { return metric(row.flows); }},
};

constexpr Metric<LimitReport> kLimitMetrics[]{
    {gauge, "shaper_limit_limit_bytes_per_second", "Rate that is set, of each of the limit's buckets.",
     [](const LimitReport& limit) { return metric(limit.limit); }},
    {counter, "shaper_limit_wire_bytes_total", "Wire bytes sent by all of the limit's buckets.",
     [](const LimitReport& limit) { return metric(limit.wire_bytes); }},
    {gauge, "shaper_limit_credit_bytes", "What the limit's bucket has; absent where each key has its own.",
     [](const LimitReport& limit) { return metric(limit.credit); }},
    {gauge, "shaper_limit_depth_bytes", "The most that the limit's bucket saves.",
     [](const LimitReport& limit) { return metric(limit.depth); }},
    {counter, "shaper_limit_late_bytes_total", "Credit of the limit that late wake-ups cost.",
     [](const LimitReport& limit) { return metric(limit.late_bytes); }},
    {gauge, "shaper_limit_keys", "Buckets that exist.", [](const LimitReport& limit) { return metric(limit.keys); }},
    {gauge, "shaper_limit_other_flows", "Flows of keys beyond the most that there may be; they share one bucket.",
     [](const LimitReport& limit) { return limit.by ? metric(limit.other_flows) : std::nullopt; }},
};

constexpr Metric<QueueReport> kQueueMetrics[]{
    {gauge, "shaper_queue_held_packets", "Packets that the kernel holds in the queue.",
     [](const QueueReport& queue) { return metric(queue.held); }},
    {counter, "shaper_queue_kernel_dropped_packets_total", "Packets that the kernel dropped: the queue was full.",
     [](const QueueReport& queue) { return metric(queue.kernel_dropped); }},
    {counter, "shaper_queue_socket_dropped_packets_total", "Packets that did not fit the daemon's socket.",
     [](const QueueReport& queue) { return metric(queue.socket_dropped); }},
    {counter, "shaper_queue_lost_verdicts_total", "Verdicts on packets that the kernel had cleared already.",
     [](const QueueReport& queue) { return metric(queue.lost_verdicts); }},
    {counter, "shaper_queue_split_packets_total", "Packets sent from here to the split queue.",
     [](const QueueReport& queue) { return metric(queue.split_packets); }},
};

constexpr Metric<OwnerTotal> kOwnerMetrics[]{
    {counter, "shaper_owner_sent_packets_total",
     "Packets that the cgroup or container has sent, as frames on the wire.",
     [](const OwnerTotal& total) { return metric(total.sent_packets); }},
    {counter, "shaper_owner_wire_bytes_total", "Bytes that the cgroup or container has sent, as charged on the wire.",
     [](const OwnerTotal& total) { return metric(total.wire_bytes); }},
};

std::string owner_labels(const OwnerTotal& total) {
  return labels({{"cgroup", total.cgroup}, {"container", total.container}});
}

void write_daemon(MetricsWriter& out, const StatusReport& status) {
  out.family(gauge, "shaper_build_info", "The version; always 1.");
  out.value(label("version", status.version), metric(1));
  out.family(gauge, "shaper_up", "1 where a daemon shapes, 0 where none answers.");
  out.value({}, metric(std::uint64_t{status.mode == Mode::shaping}));
  out.family(gauge, "shaper_mode", "1 for what happens to traffic now.");
  for (const Mode mode : {Mode::shaping, Mode::bypassed, Mode::blocked}) {
    out.value(label("mode", mode_name(mode)), metric(std::uint64_t{status.mode == mode}));
  }
  out.family(gauge, "shaper_rules", "1 for the state of our iptables rules; absent: they were not looked at.");
  for (const RulesStatus state : {RulesStatus::present, RulesStatus::missing, RulesStatus::foreign}) {
    if (status.rules) {
      out.value(label("state", rules_status_name(state)), metric(std::uint64_t{*status.rules == state}));
    }
  }
  if (status.owners) {
    out.family(counter, "shaper_owner_answers_total", "Answers to the question who sends a flow.");
    out.value({}, metric(status.owners->found));
    out.family(counter, "shaper_owner_late_total", "Flows taken for unknown: there was no answer within 20 ms.");
    out.value({}, metric(status.owners->late));
    out.family(counter, "shaper_owner_unasked_total", "Times that nobody was asked: too many answers were awaited.");
    out.value({}, metric(status.owners->unasked));
    write_metrics(out, labelled(status.owners->totals, owner_labels), kOwnerMetrics);
  }
  out.family(gauge, "shaper_warnings", "Warnings that 'shaper status' tells.");
  out.value({}, metric(status.warnings.size()));
}

void write_links(MetricsWriter& out, const std::vector<LinkReport>& links) {
  out.family(gauge, "shaper_link_info", "What the link is; always 1.");
  for (const LinkReport& link : links) {
    out.value(labels({{"link", link.name},
                      {"interface", link.interface},
                      {"direction", direction_name(link.direction)},
                      {"without_daemon", without_daemon_name(link.without_daemon)}}),
              metric(1));
  }
  write_metrics(out, labelled(links, [](const LinkReport& link) { return label("link", link.name); }), kLinkMetrics);
}

/// In cumulative buckets, as Prometheus wants them.
void write_delays(MetricsWriter& out, const std::vector<Labelled<ClassReport>>& classes) {
  out.family(histogram, "shaper_class_delay_seconds", "Time from arrival to departure of the packets sent.");
  for (std::size_t i = 0; i < std::min(classes.size(), kMostDelayHistograms); ++i) {
    const auto& [row, of_class] = classes[i];
    const DelayCounts& counts = row->delay_counts;
    std::uint64_t sum = 0;
    for (std::size_t bound = 0; bound < kDelayBounds.size(); ++bound) {
      sum += counts.packets[bound];
      out.value(of_class + ',' + label("le", *metric(kDelayBounds[bound])), metric(sum), "_bucket");
    }
    const MetricValue all = metric(counts.total());
    out.value(of_class + R"(,le="+Inf")", all, "_bucket");
    out.value(of_class, metric_of_nanoseconds(counts.nanoseconds), "_sum");
    out.value(of_class, all, "_count");
  }
}

void write_classes(MetricsWriter& out, const std::vector<ClassReport>& classes) {
  const auto rows = labelled(classes, [](const ClassReport& row) {
    return labels({{"link", row.link}, {"class", row.name}});
  });
  write_metrics(out, rows, kClassMetrics);
  out.family(counter, "shaper_class_dropped_packets_total", "Packets dropped, by reason.");
  for (const auto& [row, of_class] : rows) {
    for (std::size_t reason = 0; reason < kDropReasons; ++reason) {
      out.value(of_class + ',' + label("reason", kDropReasonNames[reason]), metric(row->drops[reason]));
    }
  }
  write_delays(out, rows);
}

void write_limits(MetricsWriter& out, const std::vector<LimitReport>& limits) {
  out.family(gauge, "shaper_limit_info", "What the limit is, and for which flows if it is a live one; always 1.");
  for (const LimitReport& limit : limits) {
    out.value(labels({{"limit", limit.name},
                      {"scope", scope_name(limit.scope)},
                      {"by", limit.by.value_or("")},
                      {"selector", limit.selector.value_or("")}}),
              metric(1));
  }
  write_metrics(out, labelled(limits, [](const LimitReport& limit) { return label("limit", limit.name); }),
                kLimitMetrics);
}

/// Each link has a fast queue and a split one, in the order of the links.
void write_queues(MetricsWriter& out, const StatusReport& status) {
  std::vector<Labelled<QueueReport>> rows;
  for (std::size_t i = 0; i < status.queues.size() && i / 2 < status.links.size(); ++i) {
    const QueueReport& queue = status.queues[i];
    rows.push_back({&queue, labels({{"link", status.links[i / 2].name},
                                    {"queue", std::to_string(queue.number)},
                                    {"kind", i % 2 == 0 ? "fast" : "split"}})});
  }
  write_metrics(out, rows, kQueueMetrics);
}

}  // namespace

std::string metrics_text(const StatusReport& status, const ClusterReport* cluster) {
  MetricsWriter out;
  write_daemon(out, status);
  write_links(out, status.links);
  write_classes(out, status.classes);
  write_limits(out, status.limits);
  write_queues(out, status);
  if (cluster != nullptr) write_cluster(out, *cluster);
  return out.take();
}

}  // namespace shaper
