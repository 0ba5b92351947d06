#include "shaper/replay/replay_capture.h"

#include <algorithm>
#include <ostream>

#include "shaper/model/event_log.h"
#include "shaper/replay/punctual_driver.h"

namespace shaper {
namespace {

/// Events are handed on in pieces of this size.
constexpr std::size_t kEventPiece = 256 * 1024;

/// Packets between two looks at the progress.
constexpr std::uint64_t kProgressStep = 8192;

Packet packet_of(const IpPacket& ip, const Headers& headers, const ReplayOptions& options) {
  Packet packet;
  packet.link = options.link;
  packet.headers = headers;
  packet.ip_bytes = ip.length;
  // On an interface IP has cut its datagrams into fragments already: what is too long is to be cut by the card.
  packet.super = ip.length > options.mtu && !headers.fragment && headers.transport_bytes > 0;
  return packet;
}

/// Hands what is in `text` on, once it is much or at the end.
void flush(std::string& text, const ReplayOptions& options, bool all) {
  if (options.events == nullptr || (!all && text.size() < kEventPiece)) return;
  *options.events << text;
  text.clear();
}

FlowsReport flows_of(const PunctualDriver& driver, const Policy& policy) {
  constexpr std::size_t kEverything = 1 << 20;
  FlowsReport report;
  std::vector<FlowSnapshot> flows;
  for (FlowCursor cursor; !cursor.done;) driver.shaper().flows(cursor, kEverything, driver.now(), flows);
  for (const FlowSnapshot& flow : flows) report.flows.push_back(flow_report(policy, flow, {}, Nanos{0}));
  return report;
}

class Replay {
 public:
  Replay(const Policy& policy, const ReplayOptions& options, Instant start)
      : options_(options), log_(events_), driver_(policy, options.mtu, start, options.events ? &log_ : nullptr) {
    const std::vector<std::uint32_t> mtus(policy.links.size(), options.mtu);
    log_.begin(start, {StartCredit::full, std::nullopt}, policy, options.policy_text, options.names, mtus);
  }

  void add(const Capture::Item& item) {
    const Headers headers = parse_headers(item.ip.captured);
    if (headers.family == Family::other) {
      ++result_.other_frames;
      return;
    }
    if (is_never_queued(item.ip, headers)) {
      ++result_.never_queued;
      return;
    }
    const Instant at{item.time};
    if (at < last_stamp_) ++result_.late_stamps;
    last_stamp_ = std::max(last_stamp_, at);
    ++result_.ip_packets;
    driver_.arrive(packet_of(item.ip, headers, options_), at);
    flush(events_, options_, false);
  }

  ReplayResult finish(const Policy& policy) {
    driver_.drain();
    flush(events_, options_, true);
    const CoreSnapshot snapshot = driver_.shaper().snapshot(driver_.now());
    result_.status = status_report(policy, snapshot);
    result_.flows = flows_of(driver_, policy);
    result_.flows.total_flows = snapshot.flows;
    result_.flows.evicted_flows = snapshot.evicted_flows;
    return std::move(result_);
  }

 private:
  const ReplayOptions& options_;
  std::string events_;
  EventLog log_;
  PunctualDriver driver_;
  Instant last_stamp_;
  ReplayResult result_;
};

}  // namespace

bool is_never_queued(const IpPacket& ip, const Headers& headers) {
  if (headers.protocol != kIcmpv6 || headers.fragment || headers.network_bytes >= ip.captured.size()) return false;
  const std::uint8_t type = ip.captured[headers.network_bytes];
  return (type >= 130 && type <= 137) || type == 143;
}

tl::expected<ReplayResult, std::string> replay_capture(Capture& capture, const Policy& policy,
                                                       const ReplayOptions& options) {
  std::optional<Replay> replay;
  for (std::uint64_t packets = 1;; ++packets) {
    const auto item = capture.next();
    if (!item) return tl::unexpected(item.error());
    if (!*item) break;
    if (!replay) replay.emplace(policy, options, Instant{(*item)->time});
    replay->add(**item);
    if (options.progress && packets % kProgressStep == 0) options.progress(capture.percent());
  }
  if (!replay) replay.emplace(policy, options, Instant{});
  ReplayResult result = replay->finish(policy);
  result.other_frames += capture.other_frames();
  if (options.events != nullptr && !options.events->flush()) {
    return tl::unexpected(std::string("the event log cannot be written; is the disk full?"));
  }
  return result;
}

}  // namespace shaper
