// What others ask of the packet loop: queues, another policy, the end. The loop itself: packet_loop.cpp.
#include <utility>

#include "shaper/live/clock.h"
#include "shaper/live/packet_loop.h"

namespace shaper {

tl::expected<void, BindRefusal> PacketLoop::bind(const QueuePair& queues) {
  if (auto split = socket_.bind(queues.split, QueueKind::split); !split) return tl::unexpected(split.error());
  if (auto fast = socket_.bind(queues.fast, QueueKind::fast); !fast) {
    socket_.unbind(queues.split);
    return tl::unexpected(fast.error());
  }
  adopt(queues);
  return {};
}

void PacketLoop::adopt(const QueuePair& queues) {
  roles_.push_back({queues.split, queues.link, QueueKind::split, queues.split, {}});
  roles_.push_back({queues.fast, queues.link, QueueKind::fast, queues.split, {}});
}

void PacketLoop::assign(std::span<const QueuePair> queues) {
  for (Role& role : roles_) {
    role.link.reset();
    for (const QueuePair& pair : queues) {
      if (pair.split == role.split) role.link = pair.link;
    }
  }
}

void PacketLoop::swap(PreparedPolicy prepared, std::string_view policy_text, std::span<const event::Name> names) {
  const Instant now = monotonic_now();
  if (log_ != nullptr) log_->swap(now, prepared.policy, policy_text, names);
  obey(prepared.policy);
  code_.swapped(shaper_->swap(std::move(prepared), now, verdicts_));
  settle(now);
}

/// What a call from elsewhere has decided.
void PacketLoop::settle(Instant now) {
  if (log_ != nullptr) log_->outcomes(now, verdicts_);
  send_verdicts();
  arm_timer();
}

void PacketLoop::grant(const Grant& grant) {
  const Instant now = monotonic_now();
  if (log_ != nullptr) log_->grant(now, grant);
  shaper_->on_grant(grant, now, verdicts_);
  settle(now);
}

ByteCount PacketLoop::take_back(const LimitKey& from, ByteCount bytes) {
  const Instant now = monotonic_now();
  if (log_ != nullptr) log_->take_back(now, from, bytes);
  const ByteCount taken = shaper_->take_back(from, bytes, now);
  arm_timer();
  return taken;
}

void PacketLoop::refuse(const LimitKey& at, bool on) {
  const Instant now = monotonic_now();
  if (log_ != nullptr) log_->refuse(now, at, on);
  shaper_->refuse(at, on, now, verdicts_);
  settle(now);
}

void PacketLoop::tell_owner(const FlowKey& flow, const Owner& owner) {
  const Instant now = monotonic_now();
  if (log_ != nullptr) log_->owner(now, flow, owner);
  shaper_->on_owner(flow, owner, now, verdicts_);
  settle(now);
}

void PacketLoop::set_mtu(LinkIndex link, std::uint32_t mtu) {
  shaper_->set_mtu(link, mtu);
  if (log_ != nullptr) log_->mtu(monotonic_now(), link, mtu);
}

void PacketLoop::pass_all() {
  const Instant now = monotonic_now();
  passing_ = true;
  shaper_->pass_all(now, verdicts_);
  if (log_ != nullptr) {
    log_->pass_all(now);
    log_->outcomes(now, verdicts_);
  }
  send_verdicts();
  read_dry(now);
  // Rules may still lead here: what comes from now on does not wait in the kernel, so closing the socket loses nothing.
  // (Where the kernel refuses, what comes between the last verdict and the close is lost.)
  for (const Role& role : roles_) static_cast<void>(socket_.let_through(role.number));
  read_dry(now);
  arm_timer();
}

/// Gives verdicts until nothing is left to read; a flood does not keep it here for ever.
void PacketLoop::read_dry(Instant now) {
  constexpr int kMostBatches = 10'000;
  bool dry = false;
  for (int batch = 0; batch < kMostBatches && !dry; ++batch) {
    dry = read_batch(now).dry;
    send_verdicts();
  }
}

}  // namespace shaper
