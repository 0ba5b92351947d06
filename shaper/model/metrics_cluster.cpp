// Metrics of limits over several hosts.
#include "shaper/model/metrics_parts.h"

namespace shaper {
namespace {

using enum MetricsWriter::Type;

/// There has been an answer.
MetricValue if_known(Nanos round_trip) {
  return round_trip > Nanos{0} ? metric(round_trip) : std::nullopt;
}

/// What only Redis knows.
MetricValue if_answered(const ClusterLimitReport& limit, std::uint64_t value) {
  return limit.generation > 0 ? metric(value) : std::nullopt;
}

constexpr Metric<ClusterReport> kClusterMetrics[]{
    {gauge, "shaper_cluster_redis_up", "Whether the latest asks had an answer.",
     [](const ClusterReport& report) { return metric(std::uint64_t{!report.trouble}); }},
    {gauge, "shaper_cluster_round_trip_seconds", "Median of the last hundred answers of Redis.",
     [](const ClusterReport& report) { return if_known(report.round_trip); }},
    {gauge, "shaper_cluster_slow_round_trip_seconds", "99th percentile of the last hundred answers of Redis.",
     [](const ClusterReport& report) { return if_known(report.slow_round_trip); }},
    {gauge, "shaper_cluster_timeout_seconds", "An ask that has no answer after this time has failed.",
     [](const ClusterReport& report) { return metric(report.timeout); }},
    {counter, "shaper_cluster_connects_total", "Connections to Redis that came up.",
     [](const ClusterReport& report) { return metric(report.connects); }},
    {counter, "shaper_cluster_no_script_total", "Calls that had to bring the script along.",
     [](const ClusterReport& report) { return metric(report.no_script); }},
    {counter, "shaper_cluster_replays_total", "Answers of asks that had been answered before.",
     [](const ClusterReport& report) { return metric(report.replays); }},
    {counter, "shaper_cluster_stale_total", "Asks that were older than what Redis knew.",
     [](const ClusterReport& report) { return metric(report.stale); }},
    {gauge, "shaper_cluster_namesake", "1: within the last minute another host with this one's name was seen.",
     [](const ClusterReport& report) { return metric(std::uint64_t{report.namesake}); }},
    {gauge, "shaper_cluster_clock_offset_seconds", "The clock of Redis against this host's.",
     [](const ClusterReport& report) { return metric(report.clock_offset); }},
};

constexpr Metric<ClusterLimitReport> kLimitMetrics[]{
    {gauge, "shaper_cluster_limit_limit_bytes_per_second", "Rate in force for all hosts together.",
     [](const ClusterLimitReport& limit) { return metric(limit.limit); }},
    {gauge, "shaper_cluster_limit_share_bytes_per_second", "The most for one host while all want more than there is.",
     [](const ClusterLimitReport& limit) { return metric(limit.share); }},
    {gauge, "shaper_cluster_limit_fallback_bytes_per_second", "What this host keeps to without Redis.",
     [](const ClusterLimitReport& limit) { return limit.buckets > 0 ? metric(limit.fallback_rate) : std::nullopt; }},
    {gauge, "shaper_cluster_limit_want_bytes_per_second", "What this host's traffic could use, by its latest ask.",
     [](const ClusterLimitReport& limit) { return metric(limit.want); }},
    {gauge, "shaper_cluster_limit_members", "Hosts with traffic.",
     [](const ClusterLimitReport& limit) { return if_answered(limit, limit.members); }},
    {gauge, "shaper_cluster_limit_contended", "1 while all hosts together want more than there is.",
     [](const ClusterLimitReport& limit) { return if_answered(limit, std::uint64_t{limit.contended}); }},
    {gauge, "shaper_cluster_limit_buckets", "Buckets that this host asks for.",
     [](const ClusterLimitReport& limit) { return metric(limit.buckets); }},
    {counter, "shaper_cluster_limit_granted_bytes_total", "Granted to this host.",
     [](const ClusterLimitReport& limit) { return metric(limit.granted); }},
    {counter, "shaper_cluster_limit_returned_bytes_total", "Given back by this host.",
     [](const ClusterLimitReport& limit) { return metric(limit.returned); }},
    {counter, "shaper_cluster_limit_sent_bytes_total", "Wire bytes sent by this host, all that was charged.",
     [](const ClusterLimitReport& limit) { return metric(limit.sent); }},
    {counter, "shaper_cluster_limit_fallback_bytes_total", "Of those sent: in fallback.",
     [](const ClusterLimitReport& limit) { return metric(limit.in_fallback); }},
    {counter, "shaper_cluster_limit_unmetered_bytes_total", "Of those sent: without a grant.",
     [](const ClusterLimitReport& limit) { return metric(limit.unmetered); }},
    {counter, "shaper_cluster_limit_fallback_seconds_total", "Time in fallback; of several buckets, the longest.",
     [](const ClusterLimitReport& limit) { return metric(limit.fallback_time); }},
    {counter, "shaper_cluster_limit_asks_total", "Asks to Redis.",
     [](const ClusterLimitReport& limit) { return metric(limit.asks); }},
    {counter, "shaper_cluster_limit_failed_asks_total", "Asks that had no good answer.",
     [](const ClusterLimitReport& limit) { return metric(limit.failed_asks); }},
    {counter, "shaper_cluster_limit_clock_jumps_total", "How often the clock of Redis was set.",
     [](const ClusterLimitReport& limit) { return metric(limit.clock_jumps); }},
    {gauge, "shaper_cluster_limit_wallet_bytes", "Granted and not sent yet.",
     [](const ClusterLimitReport& limit) { return metric(limit.wallet); }},
    {gauge, "shaper_cluster_limit_debt_bytes", "Sent beyond the wallet by packets larger than a grant.",
     [](const ClusterLimitReport& limit) { return metric(limit.debt); }},
    {gauge, "shaper_cluster_limit_lease_age_seconds", "Since the latest answer; absent: nothing is granted now.",
     [](const ClusterLimitReport& limit) { return metric(limit.lease_age); }},
    {gauge, "shaper_cluster_limit_bucket_lacks_bytes", "What the bucket in Redis lacks to be full.",
     [](const ClusterLimitReport& limit) { return metric(limit.lacks); }},
    {gauge, "shaper_cluster_limit_wait_seconds", "Until that bucket covers what waits here, if nobody else takes.",
     [](const ClusterLimitReport& limit) { return metric(limit.wait); }},
    {gauge, "shaper_cluster_limit_generation", "Of the bucket in Redis; another one after a loss of data.",
     [](const ClusterLimitReport& limit) { return if_answered(limit, limit.generation); }},
    {gauge, "shaper_cluster_limit_config_version", "Version of rate and burst in force.",
     [](const ClusterLimitReport& limit) { return metric(limit.config); }},
    {gauge, "shaper_cluster_limit_config_mismatch", "1: rate and burst in force are not those of this host's file.",
     [](const ClusterLimitReport& limit) { return metric(std::uint64_t{limit.config_mismatch}); }},
};

void write_states(MetricsWriter& out, const std::vector<Labelled<ClusterLimitReport>>& rows) {
  out.family(gauge, "shaper_cluster_limit_state", "1 for the state of the limit on this host.");
  for (const auto& [limit, of_limit] : rows) {
    for (const std::string_view state : {"cold", "leased", "fallback"}) {
      out.value(of_limit + ',' + label("state", state), metric(std::uint64_t{limit->state == state}));
    }
  }
  out.family(counter, "shaper_cluster_limit_fallbacks_total", "How often it fell back, by reason.");
  for (const auto& [limit, of_limit] : rows) {
    for (const auto& [reason, count] : limit->fallback_reasons) {
      out.value(of_limit + ',' + label("reason", reason), metric(count));
    }
  }
}

}  // namespace

void write_cluster(MetricsWriter& out, const ClusterReport& cluster) {
  out.family(gauge, "shaper_cluster_info", "The name of this host in the cluster, and where Redis is; always 1.");
  out.value(labels({{"host", cluster.host}, {"redis", cluster.redis}}), metric(1));
  write_metrics(out, {{&cluster, {}}}, kClusterMetrics);
  out.family(counter, "shaper_cluster_calls_total", "Calls to Redis, by what came of them.");
  for (const auto& [result, count] : cluster.calls) out.value(label("result", result), metric(count));
  const auto rows =
      labelled(cluster.limits, [](const ClusterLimitReport& limit) { return label("limit", limit.name); });
  write_states(out, rows);
  write_metrics(out, rows, kLimitMetrics);
}

}  // namespace shaper
