#include "shaper/replay/punctual_driver.h"

#include <algorithm>
#include <cassert>

#include "shaper/replay/report_collector.h"

namespace shaper {
namespace {

/// So many wake-ups in a row that release nothing would mean that the core never lets go.
constexpr int kMostIdleReleases = 100'000;

}  // namespace

PunctualDriver::PunctualDriver(const Policy& policy, std::uint32_t mtu, Instant start, const Listeners& told)
    : shaper_(policy, StartCredit::full, HashKey{}, start), mtu_(mtu), now_(start), told_(told) {
  for (std::size_t link = 0; link < policy.links.size(); ++link) shaper_.set_mtu(static_cast<LinkIndex>(link), mtu);
}

void PunctualDriver::arrive(Packet packet, Instant at) {
  run_until(at);
  packet.queue = QueueKind::fast;
  packet.id = {static_cast<std::uint16_t>(2 * packet.link), next_number_++};
  feed(packet);
  if (segments_.empty()) return;
  const std::vector<Packet> segments = std::exchange(segments_, {});
  for (const Packet& segment : segments) feed(segment);
  shaper_.on_queues_dry();
  if (told_.log != nullptr) told_.log->queues_dry(now_);
}

void PunctualDriver::drain() {
  while (const auto next = shaper_.next_departure()) {
    now_ = std::max(now_, *next);
    release();
  }
}

void PunctualDriver::run_until(Instant end) {
  for (auto next = shaper_.next_departure(); next && *next <= end; next = shaper_.next_departure()) {
    now_ = std::max(now_, *next);
    release();
  }
  now_ = std::max(now_, end);
}

void PunctualDriver::release() {
  verdicts_.clear();
  shaper_.release(now_, verdicts_);
  idle_releases_ = verdicts_.empty() ? idle_releases_ + 1 : 0;
  assert(idle_releases_ < kMostIdleReleases);
  if (told_.log != nullptr) told_.log->release(now_);
  tell_outcomes();
}

void PunctualDriver::feed(const Packet& packet) {
  verdicts_.clear();
  shaper_.on_packet(packet, now_, verdicts_);
  if (told_.log != nullptr) told_.log->arrival(now_, packet);
  if (told_.report != nullptr) told_.report->arrived(packet, now_);
  tell_outcomes();
  for (const Verdict& verdict : verdicts_) {
    if (verdict.decision != Decision::detour) continue;
    assert(verdict.id == packet.id);
    cut(packet);
  }
}

void PunctualDriver::tell_outcomes() {
  if (told_.log != nullptr) told_.log->outcomes(now_, verdicts_);
  if (told_.report == nullptr) return;
  for (const Verdict& verdict : verdicts_) told_.report->decided(verdict, now_);
}

/// Segments of a super-packet, each with the headers and as much payload as the MTU holds; a plain packet stays whole.
void PunctualDriver::cut(const Packet& packet) {
  Packet segment = packet;
  segment.queue = QueueKind::split;
  segment.super = false;
  const std::uint32_t headers = std::uint32_t{packet.headers.network_bytes} + packet.headers.transport_bytes;
  const bool whole = !packet.super || headers >= mtu_ || headers >= packet.ip_bytes;
  std::uint32_t left = packet.ip_bytes - (whole ? 0 : headers);
  while (left > 0) {
    const std::uint32_t payload = whole ? left : std::min(left, mtu_ - headers);
    left -= payload;
    segment.id = {static_cast<std::uint16_t>(2 * packet.link + 1), next_number_++};
    segment.ip_bytes = payload + (whole ? 0 : headers);
    segments_.push_back(segment);
  }
}

}  // namespace shaper
