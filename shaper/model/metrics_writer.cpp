#include "shaper/model/metrics_writer.h"

#include <fmt/format.h>

#include <string>

namespace shaper {
namespace {

/// `number` of 10^-decimals, without trailing zeros.
std::string decimal(Uint128 number, unsigned decimals) {
  Uint128 unit = 1;
  for (unsigned i = 0; i < decimals; ++i) unit *= 10;
  std::string text = fmt::format("{}", static_cast<std::uint64_t>(number / unit));
  const auto rest = static_cast<std::uint64_t>(number % unit);
  if (rest == 0) return text;
  text += fmt::format(".{:0{}}", rest, decimals);
  return text.substr(0, text.find_last_not_of('0') + 1);
}

std::string_view type_name(MetricsWriter::Type type) {
  switch (type) {
    case MetricsWriter::Type::counter:
      return "counter";
    case MetricsWriter::Type::gauge:
      return "gauge";
    case MetricsWriter::Type::histogram:
      return "histogram";
  }
  return "";
}

}  // namespace

MetricValue metric(std::uint64_t count) {
  return fmt::format("{}", count);
}

MetricValue metric(ByteCount bytes) {
  return metric(bytes.value);
}

MetricValue metric(DataRate rate) {
  return decimal(Uint128{rate.bits_per_second} * 125, 3);
}

MetricValue metric(Nanos time) {
  const bool negative = time < Nanos{0};
  const auto nanos = static_cast<std::uint64_t>(negative ? -time.count() : time.count());
  return (negative ? "-" : "") + decimal(nanos, 9);
}

MetricValue metric_of_nanoseconds(Uint128 sum) {
  return decimal(sum, 9);
}

/// In the text format a label's value has \\, \" and \n escaped, and is UTF-8. Whatever else could steer a terminal or
/// is not ASCII is written as \xNN, as in tables.
std::string label(std::string_view name, std::string_view value) {
  std::string text = fmt::format("{}=\"", name);
  for (const char c : value) {
    if (c == '\n') {
      text += "\\n";
    } else if (c == '"') {
      text += "\\\"";
    } else if (c == '\\') {
      text += R"(\\)";
    } else if (c >= ' ' && c <= '~') {
      text += c;
    } else {
      text += fmt::format(R"(\\x{:02x})", static_cast<unsigned char>(c));
    }
  }
  return text + '"';
}

std::string labels(std::initializer_list<std::pair<std::string_view, std::string_view>> pairs) {
  std::string text;
  for (const auto& [name, value] : pairs) {
    if (value.empty()) continue;
    if (!text.empty()) text += ',';
    text += label(name, value);
  }
  return text;
}

void MetricsWriter::family(Type type, std::string_view name, std::string_view help) {
  name_ = name;
  head_ = fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type_name(type));
}

void MetricsWriter::value(std::string_view of_labels, const MetricValue& value, std::string_view suffix) {
  if (!value) return;
  text_ += head_;
  head_.clear();
  text_ += name_;
  text_ += suffix;
  if (!of_labels.empty()) {
    text_ += '{';
    text_ += of_labels;
    text_ += '}';
  }
  text_ += ' ';
  text_ += *value;
  text_ += '\n';
}

}  // namespace shaper
