#include "shaper/core/scheduler.h"

#include <algorithm>
#include <utility>

namespace shaper {

// --- Arrival ---------------------------------------------------------------------------------------------------------

void Scheduler::admit(ScheduledClass& cls, ByteCount length) {
  if (cls.link.spec) cls.link.spec->admit(length);
  if (cls.guarantee) cls.guarantee->spec.admit(length);
  for (const LimitSeat& seat : cls.limits) seat.limit->spec.admit(length);
}

void Scheduler::arrive(ScheduledClass& cls, Flow& flow, const HeldPacket& packet, Instant now, Verdicts& out) {
  const ByteCount length = packet.wire_bytes;
  Link& link = cls.link;
  if (link.meter) link.meter->accrue(now);
  const auto is_open = [&](const LimitSeat& seat) {
    return seat.limit->waiting.empty() && seat.limit->meter->has_free(length);
  };
  const bool open = !link.has_waiting() && (!link.meter || link.meter->covers(length)) &&
                    std::all_of(cls.limits.begin(), cls.limits.end(), is_open);
  if (open && cls.queue.is_open(flow, length)) {
    if (cls.guarantee) cls.guarantee->rest(now);
    charge(cls, length, cls.guarantee && cls.guarantee->bucket.covers(length), now);
    return cls.queue.pass_through(flow, packet, now, out);
  }
  cls.queue.hold(flow, packet, now, out);
  run(now, out);
}

// --- What has changed ------------------------------------------------------------------------------------------------

void Scheduler::release(Instant now, Verdicts& out) {
  while (!schedule_.alarms.empty() && schedule_.alarms.top().when <= now) {
    Alarm& alarm = schedule_.alarms.top();
    schedule_.alarms.remove(alarm);
    switch (alarm.of) {
      case Alarm::Of::bucket:
        ClassQueue::wake_sleepers(static_cast<KeyedBucket&>(alarm), schedule_, true, now, out);
        break;
      case Alarm::Of::ceil:
        place(static_cast<ScheduledClass&>(alarm), now, out);
        break;
      case Alarm::Of::limit:
        changed(static_cast<Limit&>(alarm));
        break;
      case Alarm::Of::link:
        changed(static_cast<Link&>(alarm));
        break;
    }
    run(now, out);
  }
}

/// Links before limits: who was let in by a limit departs, if it can, before the limit looks at the next.
void Scheduler::run(Instant now, Verdicts& out) {
  for (;;) {
    if (!schedule_.changed.empty()) {
      ClassQueue& queue = *schedule_.changed.back();
      schedule_.changed.pop_back();
      queue.changed = false;
      place(*classes_[queue.index()], now, out);
    } else if (!changed_links_.empty()) {
      Link& link = *changed_links_.back();
      changed_links_.pop_back();
      link.changed = false;
      serve(link, now, out);
    } else if (!changed_limits_.empty()) {
      Limit& limit = *changed_limits_.back();
      changed_limits_.pop_back();
      limit.changed = false;
      settle(limit, now, out);
    } else {
      return;
    }
  }
}

void Scheduler::changed(Limit& limit) {
  if (!std::exchange(limit.changed, true)) changed_limits_.push_back(&limit);
}

void Scheduler::changed(Link& link) {
  if (!std::exchange(link.changed, true)) changed_links_.push_back(&link);
}

void Scheduler::granted(Limit& limit, const FlowKey& key, Instant now, Verdicts& out) {
  if (limit.keyed) {
    ClassQueue::wake_sleepers(*limit.keyed->find(key), schedule_, false, now, out);
  } else {
    changed(limit);
  }
  run(now, out);
}

std::optional<Instant> Scheduler::next_departure() const {
  if (schedule_.alarms.empty()) return std::nullopt;
  return schedule_.alarms.top().when;
}

// --- Where a class stands --------------------------------------------------------------------------------------------

/// Works out again where the class stands. What cannot depart in time is dropped as soon as that is known.
void Scheduler::place(ScheduledClass& cls, Instant now, Verdicts& out) {
  take_out(cls, now);
  std::optional<Meter>& ceil = cls.queue.ceil();
  if (ceil) {
    ceil->accrue(now);
    ceil->set_waited(false);
  }
  while (Flow* flow = cls.queue.choose(now, out)) {
    const ByteCount length = flow->head->wire_bytes;
    const Instant deadline = cls.queue.deadline(*flow);
    if (ceil) {
      const Instant ready = *ceil->ready_at(length);
      if (std::max(now, ready) > deadline) {
        cls.queue.drop_head(*flow, DropReason::max_delay, now, out);
        continue;
      }
      if (!ceil->covers(length)) {
        ceil->set_waited(true);
        cls.queue.standing.move_to(Holder::ceil, now);
        return schedule_.set(cls, ready);
      }
    }
    cls.next = flow;
    if (enters_limits(cls, length, now)) return join_link(cls, length, now);
    const std::optional<Instant> ready = cls.waits_at->limit->meter->ready_at(length);
    if (std::max(now, ready.value_or(now)) <= deadline) return changed(*cls.waits_at->limit);
    take_out(cls, now);
    cls.queue.drop_head(*flow, DropReason::max_delay, now, out);
  }
}

bool Scheduler::lets_in(const Limit& limit, ByteCount length) {
  const Meter& meter = *limit.meter;
  return meter.has_free(length) || (meter.has_too_little_room(length) && meter.covers(length));
}

/// Out of every order; what was reserved is free again.
void Scheduler::take_out(ScheduledClass& cls, Instant now) {
  cls.queue.standing.move_to(std::nullopt, now);
  schedule_.alarms.remove(cls);
  if (ShareOrder::holds(cls.lent)) {
    changed(cls.link);
    if (cls.guarantee) cls.guarantee->wait(now);
  }
  cls.link.lent.leave(cls.lent);
  cls.link.promised.leave(cls.promised);
  cls.link.due.remove(cls);
  if (cls.waits_at != nullptr) {
    cls.waits_at->limit->waiting.leave(cls.waits_at->seat);
    changed(*cls.waits_at->limit);
    cls.waits_at = nullptr;
  }
  for (std::size_t i = 0; i < cls.reserved_limits; ++i) {
    Limit& limit = *cls.limits[i].limit;
    limit.meter->release(cls.reserved);
    if (!limit.waiting.empty()) changed(limit);
  }
  cls.reserved_limits = 0;
  cls.next = nullptr;
}

/// Reserves `length` in all limits of the class; or the class waits at the first that lacks it, and only there.
bool Scheduler::enters_limits(ScheduledClass& cls, ByteCount length, Instant now) {
  cls.reserved = length;
  for (LimitSeat& seat : cls.limits) {
    Limit& limit = *seat.limit;
    limit.meter->accrue(now);
    if (limit.waiting.would_be_first(seat.seat) && lets_in(limit, length)) {
      limit.meter->reserve(length);
      ++cls.reserved_limits;
      continue;
    }
    for (; cls.reserved_limits > 0; --cls.reserved_limits) {
      Limit& entered = *cls.limits[cls.reserved_limits - 1].limit;
      entered.meter->release(length);
      if (!entered.waiting.empty()) changed(entered);
    }
    limit.waiting.join(seat.seat);
    cls.queue.standing.move_to(limit.grants() ? Holder::cluster : Holder::limit, now);
    cls.waits_at = &seat;
    return false;
  }
  return true;
}

void Scheduler::join_link(ScheduledClass& cls, ByteCount length, Instant now) {
  Link& link = cls.link;
  link.lent.join(cls.lent);
  cls.queue.standing.move_to(Holder::link, now);
  changed(link);
  if (!cls.guarantee) return;
  Guarantee& guarantee = *cls.guarantee;
  if (guarantee.waited != now) guarantee.rest(now);
  if (guarantee.bucket.covers(length)) {
    link.promised.join(cls.promised);
  } else {
    cls.due = guarantee.bucket.covered_at(guarantee.spec, length);
    link.due.update(cls);
  }
}

/// Lets the first class in, while the limit covers its next packet, and sets the alarm for the next.
void Scheduler::settle(Limit& limit, Instant now, Verdicts& out) {
  limit.meter->accrue(now);
  schedule_.alarms.remove(limit);
  limit.meter->set_waited(!limit.waiting.empty() && limit.meter->reserved() == ByteCount{});
  if (limit.waiting.empty()) return;
  ScheduledClass& first = *limit.waiting.first().owner;
  const ByteCount length = first.next->head->wire_bytes;
  const Instant deadline = first.queue.deadline(*first.next);
  const std::optional<Instant> ready = limit.meter->ready_at(length);
  if (lets_in(limit, length) || std::max(now, ready.value_or(now)) > deadline) {
    place(first, now, out);
    return changed(limit);
  }
  const Instant too_late = deadline + Nanos{1};
  schedule_.set(limit, std::min(limit.meter->free_at(length).value_or(too_late), too_late));
}

// --- A link ----------------------------------------------------------------------------------------------------------

/// The class that sends next on the link.
ScheduledClass* Scheduler::first_of(Link& link, Instant now) {
  while (!link.due.empty() && link.due.top().due <= now) {
    ScheduledClass& cls = link.due.top();
    link.due.remove(cls);
    cls.guarantee->wait(now);
    link.promised.join(cls.promised);
  }
  if (!link.promised.empty()) return link.promised.first().owner;
  return link.lent.empty() ? nullptr : link.lent.first().owner;
}

/// One packet departs, or the link's alarm tells when one may.
void Scheduler::serve(Link& link, Instant now, Verdicts& out) {
  schedule_.alarms.remove(link);
  if (link.meter) link.meter->accrue(now);
  ScheduledClass* cls = first_of(link, now);
  if (link.meter) link.meter->set_waited(cls != nullptr);
  if (cls == nullptr) return;
  Flow& flow = *cls->next;
  const ByteCount length = flow.head->wire_bytes;
  const Instant ready = link.meter ? *link.meter->ready_at(length) : now;
  const bool too_late = std::max(now, ready) > cls->queue.deadline(flow);
  if (ready > now && !too_late) {
    return schedule_.set(link, link.due.empty() ? ready : std::min(ready, link.due.top().due));
  }
  changed(link);
  if (too_late) {
    cls->queue.drop_head(flow, DropReason::max_delay, now, out);
  } else if (!limits_cover(*cls, length, now)) {
    place(*cls, now, out);
  } else if (!cls->queue.keeps_place(flow, now, out)) {
    return;
  } else if (const Decision decision = cls->queue.judge(flow, now); decision == Decision::drop) {
    cls->queue.drop_head(flow, DropReason::aqm, now, out);
  } else {
    depart(*cls, decision, now, out);
  }
}

/// A limit that is too small for all promises may have served somebody else.
bool Scheduler::limits_cover(ScheduledClass& cls, ByteCount length, Instant now) {
  return std::all_of(cls.limits.begin(), cls.limits.end(), [&](const LimitSeat& seat) {
    seat.limit->meter->accrue(now);
    return seat.limit->meter->covers(length);
  });
}

void Scheduler::depart(ScheduledClass& cls, Decision decision, Instant now, Verdicts& out) {
  const bool promised = ShareOrder::holds(cls.promised);
  Flow& flow = *cls.next;
  const ByteCount length = flow.head->wire_bytes;
  take_out(cls, now);
  charge(cls, length, promised, now);
  cls.queue.send_head(flow, decision, now, out);
}

/// Charges the link, the guarantee and the limits; the class charges its own buckets.
void Scheduler::charge(ScheduledClass& cls, ByteCount length, bool promised, Instant now) {
  Link& link = cls.link;
  if (link.meter) schedule_.charge(*link.meter, length, now);
  if (promised) {
    cls.guarantee->bucket.charge(length);
    link.promised.served(cls.promised, length);
  } else {
    if (link.meter) cls.borrowed += length;
    link.lent.served(cls.lent, length);
  }
  for (LimitSeat& seat : cls.limits) {
    schedule_.charge(*seat.limit->meter, length, now);
    seat.limit->waiting.served(seat.seat, length);
    seat.limit->rate.add(length, now);
  }
}

}  // namespace shaper
