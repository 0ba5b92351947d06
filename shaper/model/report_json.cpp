// The JSON of the reports. The only file that includes nlohmann's header, which costs seconds of compile time.
//
// Writing goes straight into a string: the daemon lists 100,000 flows between packets. Reading uses the library.
#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <iterator>
#include <nlohmann/json.hpp>

#include "shaper/model/report.h"
#include "shaper/model/report_fields.h"

namespace shaper {
namespace {

using Json = nlohmann::json;

/// Whole microseconds, to the nearest.
std::int64_t microseconds(Nanos time) {
  return time.count() / 1000 + (time.count() % 1000 + 500) / 1000;
}

/// Appends the fields of one object to a string.
class Writer {
 public:
  explicit Writer(std::string& text) : text_(text) {}

  void operator()(const char* key, const auto& value) {
    if (!first_) text_ += ',';
    first_ = false;
    fmt::format_to(std::back_inserter(text_), "\"{}\":", key);
    write(value);
  }

  void object(const auto& report) {
    text_ += '{';
    first_ = true;
    fields(*this, report);
    text_ += '}';
    first_ = false;
  }

 private:
  void write(std::same_as<bool> auto value) { text_ += value ? "true" : "false"; }
  void write(std::uint64_t value) { fmt::format_to(std::back_inserter(text_), "{}", value); }
  void write(ByteCount value) { write(value.value); }
  void write(DataRate value) { write(value.bits_per_second); }
  void write(std::same_as<Uint128> auto nanoseconds) { write(static_cast<std::uint64_t>(nanoseconds / 1000)); }
  void write(Nanos value) { fmt::format_to(std::back_inserter(text_), "{}", microseconds(value)); }
  void write(std::string_view value) { text_ += json_string(value); }
  void write(const std::string& value) { write(std::string_view(value)); }
  void write(Mode value) { write(mode_name(value)); }
  void write(RulesStatus value) { write(rules_status_name(value)); }
  void write(Direction value) { write(direction_name(value)); }
  void write(WithoutDaemon value) { write(without_daemon_name(value)); }
  void write(Scope value) { write(scope_name(value)); }
  void write(FlowActivity value) { write(activity_name(value)); }

  void write(const DropCounts& drops) {
    text_ += '{';
    for (std::size_t reason = 0; reason < kDropReasons; ++reason) {
      if (drops[reason] == 0) continue;
      if (text_.back() != '{') text_ += ',';
      fmt::format_to(std::back_inserter(text_), "\"{}\":{}", kDropReasonNames[reason], drops[reason]);
    }
    text_ += '}';
  }

  void write(const NamedCounts& counts) {
    text_ += '{';
    for (const auto& [name, count] : counts) {
      if (text_.back() != '{') text_ += ',';
      fmt::format_to(std::back_inserter(text_), "{}:{}", json_string(name), count);
    }
    text_ += '}';
  }

  template <typename Value>
  void write(const std::optional<Value>& value) {
    if (value) {
      write(*value);
    } else {
      text_ += "null";
    }
  }

  template <typename Value>
  void write(const std::vector<Value>& values) {
    write_list(values);
  }

  template <typename Value, std::size_t kCount>
  void write(const std::array<Value, kCount>& values) {
    write_list(values);
  }

  void write_list(const auto& values) {
    text_ += '[';
    for (const auto& value : values) {
      if (&value != &values.front()) text_ += ',';
      write(value);
    }
    text_ += ']';
  }

  template <typename Report>
  requires requires(Writer& writer, const Report& report) { fields(writer, report); }
  void write(const Report& report) { object(report); }

  std::string& text_;
  bool first_ = true;
};

/// Fills the fields of one object. Throws nlohmann's exceptions where a key is absent or of another type.
class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}

  void operator()(const char* key, auto& value) { read(json_.at(key), value); }

 private:
  static void read(const Json& json, bool& value) { value = json.get<bool>(); }
  static void read(const Json& json, NamedCounts& value) { value = json.get<NamedCounts>(); }
  static void read(const Json& json, std::uint64_t& value) { value = json.get<std::uint64_t>(); }
  static void read(const Json& json, std::uint32_t& value) { value = json.get<std::uint32_t>(); }
  static void read(const Json& json, std::uint16_t& value) { value = json.get<std::uint16_t>(); }
  static void read(const Json& json, ByteCount& value) { read(json, value.value); }
  static void read(const Json& json, DataRate& value) { read(json, value.bits_per_second); }
  static void read(const Json& json, std::string& value) { value = json.get<std::string>(); }
  static void read(const Json& json, Uint128& nanoseconds) { nanoseconds = Uint128{json.get<std::uint64_t>()} * 1000; }
  static void read(const Json& json, Nanos& value) {
    constexpr std::int64_t kMost = Nanos::max().count() / 1000;
    value = std::chrono::microseconds{std::clamp(json.get<std::int64_t>(), -kMost, kMost)};
  }
  static void read(const Json& json, Mode& value) {
    read_name(json, value, mode_name, {Mode::shaping, Mode::bypassed, Mode::blocked});
  }
  static void read(const Json& json, RulesStatus& value) {
    read_name(json, value, rules_status_name, {RulesStatus::present, RulesStatus::missing, RulesStatus::foreign});
  }
  static void read(const Json& json, Direction& value) {
    read_name(json, value, direction_name, {Direction::egress, Direction::ingress});
  }
  static void read(const Json& json, WithoutDaemon& value) {
    read_name(json, value, without_daemon_name, {WithoutDaemon::pass, WithoutDaemon::block});
  }
  static void read(const Json& json, Scope& value) {
    read_name(json, value, scope_name, {Scope::host, Scope::cluster});
  }
  static void read(const Json& json, FlowActivity& value) {
    read_name(
        json, value, activity_name,
        {FlowActivity::idle, FlowActivity::passing, FlowActivity::fresh, FlowActivity::bulk, FlowActivity::limited});
  }

  static void read(const Json& json, DropCounts& drops) {
    for (std::size_t reason = 0; reason < kDropReasons; ++reason) {
      const auto found = json.find(std::string(kDropReasonNames[reason]));
      if (found != json.end()) read(*found, drops[reason]);
    }
  }

  template <typename Value>
  static void read(const Json& json, std::optional<Value>& value) {
    if (!json.is_null()) read(json, value.emplace());
  }

  template <typename Value>
  static void read(const Json& json, std::vector<Value>& values) {
    for (const Json& element : json) read(element, values.emplace_back());
  }

  template <typename Value, std::size_t kCount>
  static void read(const Json& json, std::array<Value, kCount>& values) {
    for (std::size_t i = 0; i < kCount; ++i) read(json.at(i), values[i]);
  }

  template <typename Report>
  requires requires(Reader& reader, Report& report) { fields(reader, report); }
  static void read(const Json& json, Report& report) {
    Reader reader(json);
    fields(reader, report);
  }

  template <typename Value>
  static void read_name(const Json& json, Value& value, std::string_view (*name_of)(Value),
                        std::initializer_list<Value> known) {
    const std::string name = json.get<std::string>();
    const auto found = std::find_if(known.begin(), known.end(), [&](Value each) { return name_of(each) == name; });
    if (found == known.end()) throw Json::other_error::create(501, "an unknown word", &json);
    value = *found;
  }

  const Json& json_;
};

std::string write_report(const auto& report) {
  std::string text;
  Writer(text).object(report);
  return text;
}

template <typename Report>
tl::expected<Report, std::string> read_report(std::string_view json) {
  try {
    const Json parsed = Json::parse(json);
    Report report;
    Reader reader(parsed);
    fields(reader, report);
    return report;
  } catch (const Json::exception& error) {
    return tl::unexpected(fmt::format("the answer is not what this version of shaper expects ({})", error.what()));
  }
}

}  // namespace

std::string json_string(std::string_view text) {
  const auto is_plain = [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; };
  if (std::all_of(text.begin(), text.end(), is_plain)) return fmt::format("\"{}\"", text);
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string status_json(const StatusReport& report) {
  return write_report(report);
}

std::string flow_json(const FlowReport& flow) {
  return write_report(flow);
}

std::string flows_json_head() {
  return "{\"flows\":[";
}

std::string flows_json_tail(std::uint64_t total_flows, std::uint64_t evicted_flows) {
  return fmt::format("],\"total_flows\":{},\"evicted_flows\":{}}}", total_flows, evicted_flows);
}

std::string flows_json(const FlowsReport& report) {
  return write_report(report);
}

std::string replay_json(const StatusReport& status, const FlowsReport& flows) {
  std::string json = status_json(status);
  json.back() = ',';
  return json + flows_json(flows).substr(1);
}

std::string cluster_json(const ClusterReport& report) {
  return write_report(report);
}

tl::expected<ClusterReport, std::string> parse_cluster(std::string_view json) {
  return read_report<ClusterReport>(json);
}

tl::expected<StatusReport, std::string> parse_status(std::string_view json) {
  return read_report<StatusReport>(json);
}

tl::expected<FlowsReport, std::string> parse_flows(std::string_view json) {
  return read_report<FlowsReport>(json);
}

}  // namespace shaper
