#include "shaper/replay/replay_capture.h"

#include <fmt/format.h>

#include <algorithm>

#include "shaper/replay/event_stream.h"
#include "shaper/replay/punctual_driver.h"
#include "shaper/replay/report_collector.h"

namespace shaper {
namespace {

/// What Ethernet pads to, with a frame check sequence behind it.
constexpr std::uint32_t kMostPadded = 46 + 4;

constexpr Nanos kLongSilence = std::chrono::hours{1};

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

/// Whether the capture ends before the ports do, or where the length of a TCP header or the next extension stands.
bool lacks_headers(const IpPacket& ip, const Headers& headers) {
  const bool in_extensions = headers.family == Family::ipv6 && headers.protocol == 0;
  const std::size_t needed = headers.protocol == kTcp ? 13 : in_extensions ? 8 : 4;
  return ip.captured.size() < ip.length && ip.captured.size() < headers.network_bytes + needed;
}

class Replay {
 public:
  Replay(const Policy& policy, const ReplayOptions& options, Instant start)
      : options_(options),
        events_(options.events),
        driver_(policy, options.mtu, start, {events_.log(), options.report}),
        start_(start),
        last_stamp_(start) {
    if (options.report != nullptr) options.report->obeys(policy, start);
    if (events_.log() == nullptr) return;
    const std::vector<std::uint32_t> mtus(policy.links.size(), options.mtu);
    events_.log()->begin(start, {StartCredit::full, std::nullopt}, policy, options.policy_text, options.names, mtus);
  }

  void add(int link_type, const Capture::Frame& frame) {
    const auto note = [&](Oddity kind, bool holds) {
      if (holds) result_.oddities.note(kind, frame.number);
      return holds;
    };
    const auto ip = find_ip_packet(link_type, frame.captured, frame.bytes);
    if (note(Oddity::no_ip, !ip)) return;
    const Headers headers = parse_headers(ip->captured);
    if (note(Oddity::bad_header, headers.family == Family::other)) return;
    if (note(Oddity::never_shaped, is_never_queued(*ip, headers))) return;
    note(Oddity::headers_missing, lacks_headers(*ip, headers));
    note(Oddity::longer_than_frame, ip->header_length > ip->room);
    note(Oddity::shorter_than_frame, ip->length < ip->room && ip->room > kMostPadded);
    const Instant at{frame.time};
    note(Oddity::late_stamp, at < last_stamp_);
    note(Oddity::long_silence_before, at - last_stamp_ >= kLongSilence);
    last_stamp_ = std::max(last_stamp_, at);
    ++result_.ip_packets;
    driver_.arrive(packet_of(*ip, headers, options_), at);
    events_.flush();
  }

  [[nodiscard]] Nanos simulated() const { return last_stamp_ - start_; }

  tl::expected<ReplayResult, std::string> finish(const Policy& policy) {
    driver_.drain();
    if (std::string error = events_.finish(); !error.empty()) return tl::unexpected(std::move(error));
    static_cast<ReplayFigures&>(result_) = replay_figures(driver_.shaper(), policy, {}, driver_.now());
    result_.status.warnings = result_.oddities.sentences();
    return std::move(result_);
  }

 private:
  const ReplayOptions& options_;
  EventStream events_;
  PunctualDriver driver_;
  Instant start_;
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
  std::uint64_t packets = 0;
  for (;;) {
    const auto frame = capture.next();
    if (!frame) return tl::unexpected(frame.error());
    if (!*frame) break;
    packets = (*frame)->number;
    if (!replay) replay.emplace(policy, options, Instant{(*frame)->time});
    replay->add(capture.link_type(), **frame);
    if (options.progress && packets % kProgressStep == 0) {
      options.progress({capture.percent(), packets, replay->simulated()});
    }
  }
  if (!replay) replay.emplace(policy, options, Instant{});
  auto result = replay->finish(policy);
  if (result && capture.cut_short()) {
    result->status.warnings.push_back(
        fmt::format("the capture ends in the middle of packet {}; what came before counts", packets + 1));
  }
  return result;
}

}  // namespace shaper
