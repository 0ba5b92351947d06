// The core's state on its way into another process (image.h). It goes on with the same policy: counters, credit, flows
// and what they hold stay. Places in the round robin and among classes are taken anew, as after a change of policy.
#include <algorithm>
#include <tuple>
#include <utility>

#include "shaper/core/image.h"
#include "shaper/core/shaper_state.h"

namespace shaper {

template <typename Image>
void HeldPacket::carry(Image& image) {
  image(id, frames, ip_bytes, wire_bytes, arrival, fwmark, can_be_marked);
}

template <typename Image>
void Owner::carry(Image& image) {
  image(user, cgroup, process, pid, started, lineage, container, container_name);
}

template <typename Image>
void OwnerTotal::carry(Image& image) {
  image(cgroup, container, sent_packets, wire_bytes);
}

template <typename Image>
void OwnerTable::carry(Image& image) {
  std::vector<OwnerTotal> all = totals();
  std::size_t count = all.size();
  image(count);
  if (Image::kReads) all.assign(std::min(count, kMostTotals + 1), {});
  for (OwnerTotal& total : all) {
    total.carry(image);
    if (Image::kReads) sums_[{total.cgroup, total.container}].total = total;
  }
}

template <typename Image, typename Value>
void carry_if_there(Image& image, std::unique_ptr<Value>& value) {
  bool is_there = value != nullptr;
  image(is_there);
  if (!is_there) return;
  if (!value) value = std::make_unique<Value>();
  image(*value);
}

template <typename Image>
void Flow::carry(Image& image) {
  image(user, group, owner_state, last_mark, last_dscp, codel, split, detour_epoch, segment, supers, guard_credit,
        busy_since, first_seen, last_seen, in_reserve, traffic, meter);
  carry_if_there(image, delays);
  carry_if_there(image, holds);
}

/// Nothing is promised or spent: the places are taken anew, and what was charged has left.
template <typename Image>
void Meter::carry(Image& image) {
  image(bucket_);
  image.expect(wallet_ != nullptr);
  if (!wallet_) return;
  image(*wallet_);
  if (!Image::kReads) return;
  wallet_->held = {};        // counted again with the packets
  wallet_->refuses = false;  // for whoever grants now to say
}

template <typename Image>
void KeyedBuckets::carry(Image& image, Instant now) {
  image(spec_.frame, empty_since_, late_nanobits, rate);
  std::size_t count = buckets_.size();
  image(count);
  if constexpr (Image::kReads) {
    for (; count > 0 && image.good(); --count) {
      FlowKey key;
      image(key);
      at(key, now).meter.carry(image);
    }
  } else {
    for (auto& [key, bucket] : buckets_) {
      image(key);
      bucket.meter.carry(image);
    }
  }
}

template <typename Image>
void Limit::carry(Image& image, Instant now) {
  image(spec.frame, late_nanobits, rate);
  image.expect(keyed.has_value());
  if (keyed) keyed->carry(image, now);
  if (meter) meter->carry(image);
}

template <typename Image>
void Link::carry(Image& image) {
  image(detoured_packets, late_nanobits);
  image.expect(meter.has_value());
  if (!meter) return;
  image(spec->frame);
  meter->carry(image);
}

template <typename Image>
void ClassQueue::carry(Image& image, Instant now) {
  image(splits_, traffic_, in_packets_, lost_packets_, passed_packets_, late_nanobits_, meter_, delays_, delay_counts_,
        recent_);
  image.expect(ceil_.has_value());
  image.expect(each_.has_value());
  if (ceil_) {
    image(ceil_spec_->frame);
    ceil_->carry(image);
  }
  if (each_) each_->carry(image, now);
}

template <typename Image>
void ScheduledClass::carry(Image& image, Instant now) {
  queue.carry(image, now);
  image(borrowed);
  image.expect(guarantee.has_value());
  if (guarantee) image(guarantee->spec.frame, guarantee->bucket, guarantee->waited);
}

template <typename Image>
void Scheduler::carry(Image& image, Instant now) {
  image.expect(links_.size());
  image.expect(limits_.size());
  image.expect(classes_.size());
  for (std::size_t i = 0; i < links_.size(); ++i) {
    std::uint32_t mtu = links_[i]->framing.mtu;
    image(mtu);
    if (Image::kReads) set_mtu(static_cast<LinkIndex>(i), mtu, now);
  }
  for (const auto& link : links_) link->carry(image);
  for (const auto& limit : limits_) limit->carry(image, now);
  for (const auto& cls : classes_) cls->carry(image, now);
}

template <typename Image>
void Shaper::State::carry(Image& image) {
  image(epoch_, shared_flows_, shared_turns_, lingering_, owner_counters_);
  scheduler_->carry(image, latest_);
  flows_.carry(image);
  owners_.carry(image);
}

void Shaper::State::save(ImageWriter& image, Instant now) {
  begin(now);
  on_departed(now);
  carry(image);
  image(flows_.size());
  for (Flow* flow : flows_.all()) {
    image(flow->key, flow->owner->index());
    flow->carry(image);
    if (flow->owner_state == OwnerState::known) {
      Owner owner = *flow->who.get();
      owner.carry(image);
    }
    std::size_t held = 0;
    for (const HeldPacket* packet = flow->head; packet != nullptr; packet = packet->behind) ++held;
    image(held);
    for (HeldPacket* packet = flow->head; packet != nullptr; packet = packet->behind) packet->carry(image);
  }
}

void Shaper::State::restore(ImageReader& image, Instant now, Verdicts& out) {
  carry(image);
  std::size_t count = 0;
  image(count);
  std::vector<Flow*> busy_flows;
  for (; count > 0 && image.good(); --count) {
    if (Flow* flow = restore_flow(image, now)) busy_flows.push_back(flow);
  }
  if (!image.complete()) return image.fail();
  std::sort(busy_flows.begin(), busy_flows.end(), [](const Flow* a, const Flow* b) {
    return std::tie(a->head->arrival, a->head->id) < std::tie(b->head->arrival, b->head->id);
  });
  for (Flow* flow : busy_flows) flow->owner->adopt(*flow, now, out);
  want_owners_anew(now);
  scheduler_->run(now, out);
}

/// The flow if it holds packets, which it does not wait with yet.
Flow* Shaper::State::restore_flow(ImageReader& image, Instant now) {
  FlowKey key;
  ClassIndex index = 0;
  image(key, index);
  if (index >= scheduler_->classes().size() || flows_.find(key) != nullptr) image.fail();
  if (!image.good()) return nullptr;
  Flow& flow = flows_.insert(key, now);
  flow.carry(image);
  if (flow.owner_state == OwnerState::known) {
    Owner owner;
    owner.carry(image);
    flow.who = owners_.at(owner);
  }
  scheduler_->classes()[index]->queue.attach(flow, now);
  std::size_t held = 0;
  image(held);
  for (; held > 0 && image.good(); --held) {
    HeldPacket& packet = scheduler_->held().take();
    packet.carry(image);
    packet.behind = nullptr;
    (flow.head == nullptr ? flow.head : flow.tail->behind) = &packet;
    flow.tail = &packet;
    flow.backlog += packet.wire_bytes;
    flow.backlog_packets += packet.frames;
  }
  return flow.idle() ? nullptr : &flow;
}

}  // namespace shaper
