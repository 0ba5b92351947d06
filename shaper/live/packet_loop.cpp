#include "shaper/live/packet_loop.h"

#include <algorithm>

#include "shaper/live/clock.h"

namespace shaper {
namespace {

/// Batches before other descriptors and the timer get their turn.
constexpr int kBatchesPerTurn = 8;

}  // namespace

void PacketLoop::drive(Shaper& shaper, const Policy& policy, Verdicts due) {
  shaper_ = &shaper;
  obey(policy);
  verdicts_ = std::move(due);
  send_verdicts();
  loop_.add(socket_.fd(), EPOLLIN, [this](std::uint32_t) { on_readable(); });
  on_readable();
}

void PacketLoop::stop() {
  loop_.remove(socket_.fd());
  timer_.set(std::nullopt);
}

void PacketLoop::obey(const Policy& policy) {
  pace_.set_quantum(wake_quantum(policy));
  mark_bit_ = sets_ce(policy, Direction::egress) || sets_ce(policy, Direction::ingress) ? policy.mark_mask : 0;
}

PacketLoop::Role* PacketLoop::role_of(std::uint16_t number) {
  for (Role& role : roles_) {
    if (role.number == number) return &role;
  }
  return nullptr;
}

PacketLoop::QueueCounters PacketLoop::queue_counters(std::uint16_t number) const {
  for (const Role& role : roles_) {
    if (role.number == number) return role.counters;
  }
  return {};
}

void PacketLoop::on_readable() {
  for (int batch = 0; batch < kBatchesPerTurn; ++batch) {
    const Instant now = monotonic_now();
    const bool detours_before = detours_sent_;
    const Received received = read_batch(now);
    const bool detours_now = std::any_of(verdicts_.begin(), verdicts_.end(),
                                         [](const Verdict& verdict) { return verdict.decision == Decision::detour; });
    send_verdicts();
    if (received.dry && !detours_now) {
      // Whatever was sent on a detour before this batch was read with it.
      if (detours_before) {
        shaper_->on_queues_dry();
        if (log_ != nullptr) log_->queues_dry(monotonic_now());
      }
      detours_sent_ = false;
      break;
    }
  }
  release_due(monotonic_now());
  arm_timer();
}

Received PacketLoop::read_batch(Instant now) {
  return socket_.receive([&](const NfqueueMessage& message) {
    if (const auto* packet = std::get_if<QueuedPacket>(&message)) {
      on_packet(*packet, now);
    } else if (const auto* error = std::get_if<ErrorReply>(&message)) {
      on_error(*error, now);
    } else {
      ++counters_.unknown_messages;
    }
  });
}

void PacketLoop::on_packet(const QueuedPacket& queued, Instant now) {
  if (!released_.empty() && was_released(queued.id)) return;
  if (queued.truncated) ++counters_.truncated_messages;
  if ((queued.mark & mark_bit_) != 0) return on_unmarked(queued, now);
  const Role* role = role_of(queued.id.queue);
  if (role == nullptr || !role->link || passing_) {
    // The queue of a link that the policy does not name any more, or the end: nothing is metered.
    verdicts_.push_back(unmetered(queued.id));
    return;
  }
  Packet packet = packet_from(queued);
  packet.link = *role->link;
  packet.queue = role->kind;
  const std::size_t before = verdicts_.size();
  shaper_->on_packet(packet, now, verdicts_);
  if (log_ != nullptr) {
    log_->arrival(now, packet);
    log_->outcomes(now, std::span(verdicts_).subspan(before));
  }
}

bool PacketLoop::was_released(PacketId id) {
  const auto last = std::find_if(released_.begin(), released_.end(),
                                 [id](const PacketId& packet) { return packet.queue == id.queue; });
  if (last == released_.end()) return false;
  // Numbers grow, and wrap around.
  if (static_cast<std::int32_t>(id.number - last->number) <= 0) return true;
  released_.erase(last);
  return false;
}

void PacketLoop::on_unmarked(const QueuedPacket& queued, Instant now) {
  ++counters_.unmarked_packets;
  counters_.latest_unmarked = now;
  if (buffer_.full()) flush();
  buffer_.accept_with(queued.id, queued.mark & ~mark_bit_, code_.encode(unmetered(queued.id)));
}

void PacketLoop::on_error(const ErrorReply& reply, Instant now) {
  if (reply.error == 0 || reply.config) return;
  if (reply.error != ENOENT) {
    ++counters_.other_errors;
    counters_.latest_error = reply.error;
    return;
  }
  // The kernel had cleared the packet: a link went down, or somebody removed a base chain.
  Verdict verdict = code_.decode(reply.sequence);
  if (reply.packet) verdict.id = *reply.packet;
  if (Role* role = role_of(reply.queue)) ++role->counters.lost_verdicts;
  if (verdict.class_index == kNoClass) return;
  shaper_->on_lost(verdict);
  if (log_ != nullptr) log_->lost(now, verdict);
}

void PacketLoop::on_timer() {
  const Instant now = monotonic_now();
  pace_.woke(now);
  release_due(now);
  arm_timer();
}

void PacketLoop::release_due(Instant now) {
  const std::optional<Instant> next = shaper_->next_departure();
  if (!next || *next > now) return;
  if (log_ != nullptr) log_->release(now);
  shaper_->release(now, verdicts_);
  if (log_ != nullptr) log_->outcomes(now, verdicts_);
  send_verdicts();
}

void PacketLoop::arm_timer() {
  std::optional<Instant> next = shaper_->next_departure();
  if (next) next = pace_.earliest(*next);
  timer_.set(next);
}

void PacketLoop::put(const Verdict& verdict) {
  const std::uint32_t code = code_.encode(verdict);
  switch (verdict.decision) {
    case Decision::accept:
    case Decision::pass:
      buffer_.accept(verdict.id, code);
      break;
    case Decision::mark:
      // Without a bit no rule of ours would catch it there, and it would come back.
      mark_bit_ != 0 ? buffer_.repeat(verdict.id, verdict.fwmark | mark_bit_, code) : buffer_.accept(verdict.id, code);
      break;
    case Decision::drop:
      buffer_.drop(verdict.id, code);
      break;
    case Decision::detour:
      if (Role* role = role_of(verdict.id.queue)) {
        buffer_.detour(verdict.id, role->split, code);
        ++role->counters.split_packets;
        detours_sent_ = true;
      }
      break;
  }
}

void PacketLoop::send_verdicts() {
  for (const Verdict& verdict : verdicts_) {
    if (buffer_.full()) flush();
    put(verdict);
  }
  flush();
  if (verdicts_.empty()) return;
  verdicts_.clear();
  if (shaper_ == nullptr) return;
  // A verdict is carried out inside send(): now they have left.
  const Instant sent = monotonic_now();
  shaper_->on_departed(sent);
  if (log_ != nullptr) log_->departed(sent);
}

void PacketLoop::flush() {
  // Each id must get its verdict: a kernel that had no memory for the message is asked again, but not for ever.
  constexpr int kTries = 10'000;
  for (int i = 0; i < kTries && !buffer_.empty(); ++i) {
    if (socket_.send(buffer_)) return;
  }
  buffer_.clear();
}

}  // namespace shaper
