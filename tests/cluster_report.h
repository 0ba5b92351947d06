// What a host with one limit over several hosts reports, for tests of JSON, tables and metrics.
#pragma once

#include "shaper/model/report.h"

namespace shaper {

inline ClusterReport cluster_report() {
  using namespace std::chrono_literals;
  ClusterReport report;
  report.host = "h1";
  report.redis = "10.0.0.5:6379";
  report.round_trip = 300us;
  report.slow_round_trip = 2ms;
  report.timeout = 50ms;
  report.calls = {{"answered", 90}, {"timeout", 3}};
  report.connects = 2;
  report.no_script = 1;
  report.replays = 4;
  report.clock_offset = -1'500us;
  ClusterLimitReport& limit = report.limits.emplace_back();
  limit.name = "tenant-a";
  limit.strategy = "push";
  limit.state = "leased";
  limit.limit = DataRate{200'000'000};
  limit.sent = {123'456};
  limit.settled = {120'000};
  limit.told = 7;
  limit.lease_age = 12ms;
  limit.lacks = {1'000};
  limit.wait = 2ms;
  limit.contended = true;
  limit.config = 3;
  limit.config_mismatch = true;
  limit.fallback_reasons = {{"expired", 1}};
  return report;
}

}  // namespace shaper
