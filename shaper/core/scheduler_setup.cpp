// How links, limits and classes begin, change their MTU, hand over to a new policy, and what they look like from
// outside.
#include <algorithm>

#include "shaper/core/scheduler.h"

namespace shaper {
namespace {

/// A class without a rate counts as so much of what it shares: 1 %.
constexpr std::uint64_t kShareWithoutRate = 100;
/// Where nothing is shared that has a rate, all such classes weigh the same.
constexpr DataRate kAnyWeight{1'000'000};

DataRate weight_of(const ClassPolicy& cls, std::optional<DataRate> shared) {
  if (cls.guarantee()) return *cls.guarantee();
  return shared ? DataRate{shared->bits_per_second / kShareWithoutRate} : kAnyWeight;
}

/// How long a guarantee may wait for its turn without loss: behind two frames of all `classes` that have one. It is no
/// upper bound, so it may be deep.
Nanos guarantee_burst(const Link& link, std::uint64_t classes) {
  return std::max(kDefaultBurst, time_for(link.spec->rate, {2 * classes * link.spec->frame.value}));
}

}  // namespace

void Guarantee::wait(Instant now) {
  BucketSpec waiting = spec;
  waiting.burst += owed;
  bucket.accrue(waiting, now);
  waited = now;
}

void Guarantee::rest(Instant now) {
  bucket.change(spec, spec, now);
}

ScheduledClass::ScheduledClass(const Policy& policy, ClassIndex index, Link& of_link, const Framing& framing,
                               std::span<Limit* const> of_limits, Schedule& schedule, HashKey key,
                               std::optional<Instant> empty_since, Instant now)
    : Alarm(Of::ceil),
      queue(policy, index, framing, of_limits, schedule, key, empty_since, now),
      link(of_link),
      lent(*this, policy.classes[index].priority, index,
           weight_of(policy.classes[index], policy.links[policy.classes[index].link].rate)),
      promised(lent) {
  const ClassPolicy& cls = policy.classes[index];
  for (Limit* limit : of_limits) {
    if (!limit->meter) continue;
    limits.push_back({limit, Seat(*this, cls.priority, index, weight_of(cls, limit->policy.rate))});
  }
}

void ScheduledClass::inherit(ScheduledClass& before, Instant now) {
  queue.inherit(before.queue, now);
  borrowed = before.borrowed;
  if (!guarantee || !before.guarantee) return;
  guarantee->spec.frame = std::max(guarantee->spec.frame, before.guarantee->spec.frame);
  guarantee->bucket = before.guarantee->bucket;
  guarantee->bucket.change(before.guarantee->spec, guarantee->spec, now);
}

LinkSnapshot Link::snapshot(LinkIndex index, Instant now) const {
  LinkSnapshot snapshot;
  snapshot.index = index;
  snapshot.detoured_packets = detoured_packets;
  if (meter) {
    snapshot.depth = spec->depth();
    snapshot.credit = meter->credit_at(now);
  }
  snapshot.late_bytes = {static_cast<std::uint64_t>(late_nanobits / kNanobitsPerByte)};
  return snapshot;
}

Scheduler::Scheduler(const Policy& policy, std::span<const std::uint32_t> mtus, HashKey key,
                     std::optional<Instant> empty_since, Instant now) {
  const auto start = [&](const BucketSpec& spec) {
    return empty_since ? TokenBucket::empty(*empty_since) : TokenBucket::full(spec, now);
  };
  ByteCount largest_frame;
  for (std::size_t i = 0; i < policy.links.size(); ++i) {
    const LinkPolicy& wanted = policy.links[i];
    Link& link = *links_.emplace_back(std::make_unique<Link>());
    link.framing = {mtus[i], wanted.overhead, wanted.smallest_frame, wanted.cells};
    largest_frame = std::max(largest_frame, link.framing.full_frame());
    if (!wanted.rate) continue;
    link.spec = BucketSpec{*wanted.rate, link.framing.full_frame(), burst_bytes(kDefaultBurst, *wanted.rate)};
    link.meter.emplace(*link.spec, start(*link.spec), link.late_nanobits);
  }
  for (const LimitPolicy& limit : policy.limits) {
    limits_.push_back(std::make_unique<Limit>(limit, largest_frame, key, empty_since, now));
  }
  std::vector<DataRate> promised(policy.links.size());
  std::vector<std::uint64_t> promising(policy.links.size());
  for (const ClassPolicy& cls : policy.classes) {
    if (!cls.guarantee()) continue;
    if (!cls.is_guard) promised[cls.link].bits_per_second += cls.guarantee()->bits_per_second;
    ++promising[cls.link];
  }
  for (ClassIndex index = 0; index < policy.classes.size(); ++index) {
    const ClassPolicy& cls = policy.classes[index];
    Link& link = *links_[cls.link];
    // In one order for all classes, so that none waits in a circle.
    std::vector<LimitIndex> of_class = cls.limits;
    std::sort(of_class.begin(), of_class.end());
    std::vector<Limit*> limits;
    for (const LimitIndex limit : of_class) limits.push_back(limits_[limit].get());
    ScheduledClass& made = *classes_.emplace_back(
        std::make_unique<ScheduledClass>(policy, index, link, link.framing, limits, schedule_, key, empty_since, now));
    if (!cls.guarantee() || !link.spec) continue;
    const DataRate rate = cls.is_guard ? std::min(*cls.rate, link.spec->rate)
                                       : guarantee_in_force(*cls.guarantee(), promised[cls.link], link.spec->rate);
    if (rate == DataRate{}) continue;
    const Nanos burst = guarantee_burst(link, promising[cls.link]);
    const BucketSpec spec{rate, link.framing.full_frame(), bytes_in(rate, burst)};
    // No more than all guarantees of the link save.
    const ByteCount owed = bytes_in(link.spec->rate, burst) + ByteCount{promising[cls.link] * spec.frame.value};
    made.guarantee = Guarantee{spec, start(spec), owed, now};
  }
}

void Scheduler::set_mtu(LinkIndex index, std::uint32_t mtu, Instant now) {
  Link& link = *links_[index];
  link.framing.mtu = mtu;
  const ByteCount frame = link.framing.full_frame();
  const auto deepen = [&](BucketSpec& spec, std::optional<Meter>& meter) {
    const BucketSpec before = spec;
    spec.admit(frame);
    if (meter) meter->follow(before, now);
  };
  if (link.spec) deepen(*link.spec, link.meter);
  for (const auto& cls : classes_) {
    if (&cls->link != &link) continue;
    cls->queue.set_framing(link.framing, now);
    if (cls->guarantee) cls->guarantee->spec.admit(frame);
  }
  for (const auto& limit : limits_) {
    deepen(limit->spec, limit->meter);
    if (!limit->keyed) continue;
    BucketSpec spec = limit->keyed->spec();
    spec.admit(frame);
    limit->keyed->change(spec, now);
  }
}

void Scheduler::inherit(Scheduler& before, const Policy& old_policy, const Policy& policy, Instant now) {
  schedule_.held = std::move(before.schedule_.held);
  for (std::size_t i = 0; i < links_.size(); ++i) {
    Link& link = *links_[i];
    for (std::size_t old = 0; old < before.links_.size(); ++old) {
      if (old_policy.links[old].name != policy.links[i].name) continue;
      Link& heir_of = *before.links_[old];
      link.detoured_packets = heir_of.detoured_packets;
      link.late_nanobits = heir_of.late_nanobits;
      if (!link.meter || !heir_of.meter) continue;
      link.spec->frame = std::max(link.spec->frame, heir_of.spec->frame);
      link.meter.emplace(Meter(*link.spec, link.late_nanobits, std::move(*heir_of.meter), now));
    }
  }
  for (const auto& limit : limits_) {
    for (const auto& old : before.limits_) {
      if (old->policy.name == limit->policy.name) limit->inherit(*old, now);
    }
  }
}

ClassSnapshot Scheduler::snapshot(const ScheduledClass& cls, Instant now) const {
  ClassSnapshot snapshot = cls.queue.snapshot(now);
  snapshot.borrowed_bytes = cls.borrowed;
  if (cls.guarantee) snapshot.guarantee = cls.guarantee->spec.rate;
  snapshot.held_by = held_by(cls);
  return snapshot;
}

// --- What packets wait for -------------------------------------------------------------------------------------------

std::optional<HeldBy> Scheduler::held_by(const ScheduledClass& cls) const {
  const std::optional<Holder> holder = cls.queue.standing.holder();
  if (!holder) return std::nullopt;
  HeldBy held{*holder, std::nullopt};
  for (std::size_t i = 0; i < limits_.size() && cls.waits_at != nullptr; ++i) {
    if (limits_[i].get() == cls.waits_at->limit) held.limit = static_cast<LimitIndex>(i);
  }
  return held;
}

std::optional<HeldBy> Scheduler::held_by(const Flow& flow) const {
  if (flow.idle()) return std::nullopt;
  if (flow.sleeps == nullptr) return held_by(*classes_[flow.owner->index()]);
  HeldBy held{flow.owner->holder_of(*flow.sleeps), std::nullopt};
  for (std::size_t i = 0; i < limits_.size(); ++i) {
    const auto& keyed = limits_[i]->keyed;
    if (keyed && &*keyed == flow.sleeps->home) held.limit = static_cast<LimitIndex>(i);
  }
  return held;
}

void Scheduler::describe_holder(const Flow& flow, Instant now, HoldSnapshot& hold) const {
  if (!hold.flow.held_by) return;
  const ScheduledClass& cls = *classes_[flow.owner->index()];
  const auto [meter, spec] = [&]() -> std::pair<const Meter*, const BucketSpec*> {
    if (flow.sleeps != nullptr) return {&flow.sleeps->meter, &flow.sleeps->home->spec()};
    if (cls.waits_at != nullptr) return {&*cls.waits_at->limit->meter, &cls.waits_at->limit->spec};
    if (hold.flow.held_by->holder == Holder::ceil) return {&*cls.queue.ceil(), &*cls.queue.ceil_spec()};
    return {cls.link.meter ? &*cls.link.meter : nullptr, cls.link.spec ? &*cls.link.spec : nullptr};
  }();
  if (meter == nullptr) return;
  if (const Wallet* wallet = meter->wallet()) {
    hold.credit = wallet->left_at(now);
  } else {
    hold.rate = spec->rate;
    hold.depth = spec->depth();
    hold.credit = meter->credit_at(now);
  }
  const std::optional<Instant> ready = meter->ready_at(flow.head->wire_bytes);
  if (ready) hold.earliest = std::max(*ready, now);
}

}  // namespace shaper
