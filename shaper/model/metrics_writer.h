// Families of metrics, written one behind the other: HELP, TYPE, then a line for each row that has a value.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shaper/core/units.h"

namespace shaper {

/// A number as it is written; absent: there is no such line.
using MetricValue = std::optional<std::string>;

[[nodiscard]] MetricValue metric(std::uint64_t count);
[[nodiscard]] MetricValue metric(ByteCount bytes);
[[nodiscard]] MetricValue metric(DataRate rate);  ///< in bytes per second, exact
[[nodiscard]] MetricValue metric(Nanos time);     ///< in seconds, exact
[[nodiscard]] MetricValue metric_of_nanoseconds(Uint128 sum);
template <typename Value>
[[nodiscard]] MetricValue metric(const std::optional<Value>& value) {
  return value ? metric(*value) : std::nullopt;
}

/// `name="value"`, escaped.
[[nodiscard]] std::string label(std::string_view name, std::string_view value);

/// Labels joined by commas, those without a value left out: to Prometheus both are the same.
[[nodiscard]] std::string labels(std::initializer_list<std::pair<std::string_view, std::string_view>> pairs);

class MetricsWriter {
 public:
  enum class Type : std::uint8_t { counter, gauge, histogram };

  /// What follows belongs to this family. It appears with its first value.
  void family(Type type, std::string_view name, std::string_view help);

  /// `suffix` is for histograms: _bucket, _sum, _count.
  void value(std::string_view of_labels, const MetricValue& value, std::string_view suffix = {});

  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
  std::string_view name_;
  std::string head_;  ///< not written yet
};

/// One family: what it says of each row.
template <typename Row>
struct Metric {
  MetricsWriter::Type type;
  const char* name;
  const char* help;
  MetricValue (*value)(const Row&);
};

/// A row and its labels.
template <typename Row>
struct Labelled {
  const Row* row;
  std::string labels;
};

template <typename Row, std::size_t kCount>
void write_metrics(MetricsWriter& out, const std::vector<Labelled<Row>>& rows, const Metric<Row> (&metrics)[kCount]) {
  for (const Metric<Row>& each : metrics) {
    out.family(each.type, each.name, each.help);
    for (const Labelled<Row>& row : rows) out.value(row.labels, each.value(*row.row));
  }
}

/// `report.rows`, each with what `labels_of` says.
template <typename Row, typename LabelsOf>
[[nodiscard]] std::vector<Labelled<Row>> labelled(const std::vector<Row>& rows, LabelsOf labels_of) {
  std::vector<Labelled<Row>> all;
  all.reserve(rows.size());
  for (const Row& row : rows) all.push_back({&row, labels_of(row)});
  return all;
}

}  // namespace shaper
