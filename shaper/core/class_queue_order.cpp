// Which flow of a class sends next: the round robin among awake flows, and the sleep of those whose buckets lack
// credit.
#include <algorithm>
#include <tuple>

#include "shaper/core/class_queue.h"

namespace shaper {

bool ClassQueue::EarlierHead::before(const Flow& a, const Flow& b) {
  return std::tie(a.head->arrival, a.head->id) < std::tie(b.head->arrival, b.head->id);
}

void ClassQueue::note_change() {
  if (changed) return;
  changed = true;
  schedule_.changed.push_back(this);
}

// --- Whose turn it is ------------------------------------------------------------------------------------------------

bool ClassQueue::nothing_in_turn() const {
  return old_hosts_.empty() && by_arrival_.empty();
}

Flow* ClassQueue::choose(Instant now, Verdicts& out) {
  while (Flow* flow = next_in_turn()) {
    if (now <= deadline(*flow)) return flow;
    drop_head(*flow, DropReason::max_delay, now, out);
  }
  return nullptr;
}

Flow* ClassQueue::next_in_turn() {
  if (policy_.fair == Fair::off) return by_arrival_.empty() ? nullptr : &by_arrival_.top();
  if (!fresh_hosts_.empty()) return fresh_hosts_.front()->fresh.front();
  while (!old_hosts_.empty()) {
    Host& host = *old_hosts_.front();
    if (host.deficit <= 0) {
      if (host.round == round_) ++round_;
      host.round = round_;
      host.deficit += quantum_;
      relist(host);
    }
    if (host.deficit > 0) return &next_of(host, quantum_);
    old_hosts_.remove(host);
    old_hosts_.push_back(host);
  }
  return nullptr;
}

/// The awake flow of `host` whose turn it is.
Flow& ClassQueue::next_of(Host& host, std::int64_t quantum) {
  if (!host.fresh.empty()) return *host.fresh.front();
  for (;;) {
    Flow& flow = *host.old.front();
    if (flow.deficit > 0) return flow;
    if (flow.round == host.flow_round) ++host.flow_round;
    flow.round = host.flow_round;
    flow.deficit += quantum;
    if (flow.deficit > 0) return flow;
    host.old.remove(flow);
    host.old.push_back(flow);
  }
}

/// Whether what is left of its quantum covers the head. A packet longer than a quantum needs a whole one.
bool ClassQueue::is_fresh(const Flow& flow) const {
  return policy_.fair != Fair::off &&
         flow.deficit >= std::min(static_cast<std::int64_t>(flow.head->wire_bytes.value), quantum_);
}

/// A flow that held nothing holds a packet now: gives it the quanta that it and its host have missed, but no more than
/// one. Where nobody else waits, debts are forgotten, but a quantum that was used stays used: bulk that empties between
/// two of its packets would be fresh at each of them, and whoever is sparse would wait behind it.
void ClassQueue::activate(Flow& flow, Instant now, Verdicts& out) {
  Host& host = *flow.host;
  const auto catch_up = [&](std::int64_t& deficit, std::uint32_t& round, std::uint32_t current, bool alone) {
    const std::uint32_t rounds = current - round;
    round = current;
    if (alone) deficit = std::max<std::int64_t>(deficit, 0);
    if (rounds > 0) deficit = std::min(deficit + rounds * quantum_, quantum_);
  };
  const bool alone_in_host = host.backlog == flow.backlog;
  if (alone_in_host) catch_up(host.deficit, host.round, round_, backlog_ == flow.backlog);
  catch_up(flow.deficit, flow.round, host.flow_round, alone_in_host);
  // Rounds of a host do not end while one flow at a time holds packets there: it may use what the host may.
  if (alone_in_host) flow.deficit = std::max(flow.deficit, host.deficit);
  flow.fresh = is_fresh(flow);
  take_place(flow, false, now, out);
}

/// The flow takes a place in a list.
void ClassQueue::begin_hold(Flow& flow, Instant now) const {
  if (!flow.holds) flow.holds = std::make_unique<HoldMeter>();
  flow.holds->begin(standing, now);
}

void ClassQueue::enlist(Flow& flow, bool resumes, Instant now) {
  flow.state = FlowState::awake;
  begin_hold(flow, now);
  note_change();
  if (policy_.fair == Fair::off) return by_arrival_.update(flow);
  FlowList& list = flow.fresh ? flow.host->fresh : flow.host->old;
  resumes ? list.push_front(flow) : list.push_back(flow);
  relist(*flow.host);
}

/// Takes the flow out of whatever list it is in. Its host keeps its place until relist().
void ClassQueue::delist(Flow& flow, Instant now) {
  if (flow.state == FlowState::asleep) {
    flow.holds->end_asleep(holder_of(*flow.sleeps), now);
    (flow.fresh ? flow.sleeps->fresh : flow.sleeps->old).remove(flow);
    flow.sleeps = nullptr;
  } else if (flow.state == FlowState::awake) {
    flow.holds->end_awake(standing, now);
    note_change();
    if (policy_.fair == Fair::off) {
      by_arrival_.remove(flow);
    } else {
      (flow.fresh ? flow.host->fresh : flow.host->old).remove(flow);
    }
  }
  flow.state = FlowState::idle;
}

/// Puts the host where its flows and its debt say.
void ClassQueue::relist(Host& host) {
  const bool fresh = !host.fresh.empty() && host.deficit > -quantum_;
  if (fresh != host.in_fresh) {
    fresh ? fresh_hosts_.push_back(host) : fresh_hosts_.remove(host);
    host.in_fresh = fresh;
  }
  if (host.awake() != host.in_old) {
    host.awake() ? old_hosts_.push_back(host) : old_hosts_.remove(host);
    host.in_old = host.awake();
  }
}

// --- Departure -------------------------------------------------------------------------------------------------------

void ClassQueue::send_head(Flow& flow, Decision decision, Instant now, Verdicts& out) {
  release(flow);
  const ByteCount length = flow.head->wire_bytes;
  if (ceil_) schedule_.charge(*ceil_, length, now);
  for (KeyedBucket* bucket : flow.buckets) {
    schedule_.charge(bucket->meter, length, now);
    bucket->home->rate.add(length, now);
  }
  Host& host = *flow.host;
  delist(flow, now);
  const HeldPacket packet = take_head(flow);
  const auto bytes = static_cast<std::int64_t>(length.value);
  host.deficit -= bytes;
  flow.deficit -= bytes;
  flow.fresh = flow.fresh && !flow.idle() && is_fresh(flow);
  const bool resumes = flow.deficit > 0 && policy_.fair != Fair::off;  // there everyone goes by arrival
  if (!flow.idle()) take_place(flow, resumes, now, out);
  // Fresh hosts take turns by the packet, the others by the quantum.
  if (host.in_fresh) {
    fresh_hosts_.remove(host);
    fresh_hosts_.push_back(host);
  }
  if (old_hosts_.front() == &host && host.deficit <= 0) {
    old_hosts_.remove(host);
    old_hosts_.push_back(host);
  }
  relist(host);
  wake_at_buckets_of(flow, now, out);
  leave(flow, packet, decision, now, out);
}

void ClassQueue::drop_head(Flow& flow, DropReason reason, Instant now, Verdicts& out) {
  const bool awake = flow.state == FlowState::awake;
  if (awake) release(flow);
  KeyedBucket* sleeps = flow.sleeps;
  delist(flow, now);
  discard_head(flow, reason, now, out);
  if (!flow.idle()) take_place(flow, true, now, out);
  relist(*flow.host);
  if (awake) wake_at_buckets_of(flow, now, out);
  if (sleeps != nullptr) wake_sleepers(*sleeps, schedule_, false, now, out);
}

// --- Sleep -----------------------------------------------------------------------------------------------------------

/// The flow holds packets and is in no list: it joins the round robin, or sleeps at the first bucket that lacks credit.
/// If it resumes, it goes before others.
void ClassQueue::take_place(Flow& flow, bool resumes, Instant now, Verdicts& out) {
  while (!flow.idle()) {
    KeyedBucket* lacking = reserve(flow, resumes, now);
    if (lacking == nullptr) return enlist(flow, resumes, now);
    const std::optional<Instant> ready = lacking->meter.ready_at(flow.head->wire_bytes);
    if (std::max(now, ready.value_or(now)) <= deadline(flow)) {
      sleep(flow, *lacking, resumes, now);
      return set_alarm(*lacking, schedule_);
    }
    discard_head(flow, DropReason::max_delay, now, out);
  }
}

bool ClassQueue::keeps_place(Flow& flow, Instant now, Verdicts& out) {
  const bool covered = std::all_of(flow.buckets.begin(), flow.buckets.end(), [&](KeyedBucket* bucket) {
    bucket->meter.accrue(now);
    return bucket->meter.covers(flow.head->wire_bytes);
  });
  if (covered) return true;
  release(flow);
  delist(flow, now);
  take_place(flow, true, now, out);
  relist(*flow.host);
  return false;
}

/// Reserves what the flow's head needs in all its buckets. Where one lacks it, or others wait there that go first,
/// nothing is reserved and that bucket is returned.
KeyedBucket* ClassQueue::reserve(Flow& flow, bool resumes, Instant now) {
  const ByteCount length = flow.head->wire_bytes;
  for (std::size_t i = 0; i < flow.buckets.size(); ++i) {
    KeyedBucket& bucket = *flow.buckets[i];
    bucket.meter.accrue(now);
    const bool first = resumes || (bucket.fresh.empty() && (flow.fresh || bucket.old.empty()));
    const bool insists = resumes && bucket.meter.has_too_little_room(length) && bucket.meter.covers(length);
    if (insists || (first && bucket.meter.has_free(length))) {
      bucket.meter.reserve(length);
      continue;
    }
    while (i-- > 0) flow.buckets[i]->meter.release(length);
    return &bucket;
  }
  return nullptr;
}

void ClassQueue::release(Flow& flow) {
  for (KeyedBucket* bucket : flow.buckets) bucket->meter.release(flow.head->wire_bytes);
}

void ClassQueue::sleep(Flow& flow, KeyedBucket& bucket, bool resumes, Instant now) const {
  begin_hold(flow, now);
  FlowList& list = flow.fresh ? bucket.fresh : bucket.old;
  resumes ? list.push_front(flow) : list.push_back(flow);
  flow.sleeps = &bucket;
  flow.state = FlowState::asleep;
}

void ClassQueue::wake_at_buckets_of(const Flow& flow, Instant now, Verdicts& out) {
  for (KeyedBucket* bucket : flow.buckets) wake_sleepers(*bucket, schedule_, false, now, out);
}

/// Wakes sleepers, the first first, while the bucket covers them. Where it has no room for them beside what is
/// promised, those who hold the promise may depart first: then only an alarm, which comes after that, `insists` on one
/// of them.
void ClassQueue::wake_sleepers(KeyedBucket& bucket, Schedule& schedule, bool insists, Instant now, Verdicts& out) {
  bucket.meter.accrue(now);
  while (Flow* flow = bucket.first_sleeper()) {
    ClassQueue& owner = *flow->owner;
    const ByteCount length = flow->head->wire_bytes;
    const Instant ready = bucket.meter.ready_at(length).value_or(now);
    if (std::max(now, ready) > owner.deadline(*flow)) {
      owner.delist(*flow, now);
      owner.discard_head(*flow, DropReason::max_delay, now, out);
      owner.take_place(*flow, true, now, out);
    } else if (bucket.meter.has_free(length) || (insists && bucket.meter.covers(length))) {
      insists = false;
      owner.delist(*flow, now);
      owner.take_place(*flow, true, now, out);
    } else {
      break;
    }
  }
  set_alarm(bucket, schedule);
}

/// When to look at the sleepers again.
void ClassQueue::set_alarm(KeyedBucket& bucket, Schedule& schedule) {
  const Flow* first = bucket.first_sleeper();
  bucket.meter.set_waited(first != nullptr && bucket.meter.reserved() == ByteCount{});
  if (first == nullptr) return schedule.alarms.remove(bucket);
  const Instant too_late = first->owner->deadline(*first) + Nanos{1};
  const std::optional<Instant> ready = bucket.meter.free_at(first->head->wire_bytes);
  schedule.set(bucket, std::min(ready.value_or(too_late), too_late));
}

}  // namespace shaper
