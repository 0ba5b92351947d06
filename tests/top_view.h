// What `shaper top` may have to show: a link that is full, its classes, limits of each kind, and flows.
#pragma once

#include <string>

#include "cli/top/frame.h"
#include "cli/top/keys.h"

namespace shaper::top {

inline constexpr Instant kStart{std::chrono::hours{5}};

inline FlowReport flow_of(std::uint16_t port, std::uint64_t bits_per_second) {
  FlowReport flow;
  flow.class_name = "backup";
  flow.link = "uplink";
  flow.protocol = "tcp";
  flow.source = "10.77.2.1";
  flow.source_port = 58'608;
  flow.destination = "10.77.2.2";
  flow.destination_port = port;
  flow.user = "root";
  flow.rate = {bits_per_second};
  flow.wire_bytes = {bits_per_second};
  flow.activity = FlowActivity::passing;
  return flow;
}

/// The third one waits, the fastest one is the second.
inline FlowsReport three_flows() {
  FlowReport slow = flow_of(5203, 2'000'000);
  slow.class_name = "sync";
  slow.activity = FlowActivity::limited;
  slow.backlog_packets = 2;
  slow.backlog_bytes = {3'028};
  slow.delay.p50 = std::chrono::microseconds{18'430};
  slow.delay.p99 = std::chrono::microseconds{106'500};
  slow.drops = {0, 0, 20, 0, 123, 0};
  slow.dropped_packets = 143;
  return {{flow_of(5201, 400'000), flow_of(5202, 9'890'000), slow}, 3, 0};
}

inline ClassReport class_of(const char* name, std::uint64_t bits_per_second, std::optional<DataRate> limit) {
  ClassReport row;
  row.name = name;
  row.link = "uplink";
  row.rate = {bits_per_second};
  row.limit = limit;
  return row;
}

inline StatusReport a_status() {
  StatusReport status;
  status.version = "0.1.0";
  status.rules = RulesStatus::present;
  LinkReport link;
  link.name = "uplink";
  link.interface = "eth0";
  link.limit = DataRate{100'000'000};
  link.rate = {98'310'000};
  link.backlog_bytes = {61'200};
  status.links = {link};
  status.classes = {class_of("web", 71'200'000, std::nullopt), class_of("backup", 27'110'000, DataRate{60'000'000}),
                    class_of("default", 0, DataRate{1'000'000})};
  status.classes[1].backlog_bytes = {58'170};
  status.classes[1].backlog_packets = 39;
  status.classes[1].delay.p99 = std::chrono::microseconds{11'800};
  LimitReport live;
  live.name = "live-1";
  live.id = 1;
  live.limit = {5'000'000};
  live.rate = {4'900'000};
  live.selector = "remote_port=5203";
  live.expires = "2026-01-31T23:59:59.123456Z";
  LimitReport tenant;
  tenant.name = "tenant";
  tenant.limit = {200'000'000};
  tenant.scope = Scope::cluster;
  tenant.state = "leased";
  status.limits = {tenant, live};
  return status;
}

inline State a_state() {
  State state(NameLookup{[](const std::string&) { return std::optional<std::uint32_t>(0); }, {}});
  StatusReport status = a_status();
  state.take(status, kStart);
  status.classes[1].drops = {0, 0, 3, 0, 14, 0};
  state.take(status, kStart + std::chrono::seconds{1});
  state.take(three_flows(), std::nullopt);
  return state;
}

inline Order press(State& state, char character) {
  return on_key(state, {KeyCode::character, character});
}
inline Order press(State& state, KeyCode code) {
  return on_key(state, {code, 0});
}
/// Types it and ends with Enter.
inline Order type(State& state, const std::string& text) {
  for (const char c : text) (void)press(state, c);
  return press(state, KeyCode::enter);
}

inline std::string text_of(const Frame& frame) {
  std::string text;
  for (const Line& line : frame.lines) text += line.text + '\n';
  return text;
}

inline std::string screen_of(State& state, std::size_t columns = 80, std::size_t rows = 24,
                             Charset charset = Charset::utf8) {
  return text_of(draw(state, {columns, rows}, charset));
}

}  // namespace shaper::top
