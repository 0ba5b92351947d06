// The parts of metrics_text() that stand in files of their own.
#pragma once

#include "shaper/model/metrics_writer.h"
#include "shaper/model/report.h"

namespace shaper {

void write_cluster(MetricsWriter& out, const ClusterReport& cluster);

}  // namespace shaper
