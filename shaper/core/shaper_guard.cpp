// How flows enter the guard and leave it (guard.h).
#include <algorithm>

#include "shaper/core/guard.h"
#include "shaper/core/shaper_state.h"

namespace shaper {

/// A flow of a guarded port has a bucket of its own, full at first.
void Shaper::State::follow_guard_ports(Flow& flow, Instant now) const {
  if (!classifier_.guard_of(flow.key)) {
    flow.guard_credit.reset();
  } else if (!flow.guard_credit) {
    flow.guard_credit = TokenBucket::full(kGuardedFlow, now);
  }
}

/// Where a sparse flow goes: to the guard, unless nothing makes it wait in the class of the policy.
ClassIndex Shaper::State::class_while_sparse(const Flow& flow, ClassIndex by_policy) const {
  if (!flow.guard_credit || !scheduler_->classes()[by_policy]->queue.may_wait()) return by_policy;
  return *classifier_.guard_of(flow.key);
}

/// Back to the guard, if the flow's bucket is full again and so nothing is given away by leaving its class.
void Shaper::State::enter_guard(Flow& flow, Instant now) {
  const ClassIndex index = class_while_sparse(flow, flow.owner->index());
  if (index == flow.owner->index() || !flow.idle() || !flow.owner->may_forget(flow, now)) return;
  flow.owner->detach(flow);
  scheduler_->classes()[index]->queue.attach(flow, now);
}

/// A packet of a guarded flow has come: it is charged to the flow's bucket, whatever class it goes to.
void Shaper::State::charge_guarded(Flow& flow, ByteCount length, Instant now, Verdicts& out) {
  TokenBucket& credit = *flow.guard_credit;
  credit.accrue(kGuardedFlow, now);
  const bool sparse = credit.covers(length);
  credit.charge(std::min(length, credit.credit()));
  if (!sparse && flow.owner->policy().is_guard) leave_guard(flow, now, out);
}

/// To the class of the policy.
void Shaper::State::leave_guard(Flow& flow, Instant now, Verdicts& out) {
  move_flow(flow, classifier_.classify(packet_like(flow, flow.key.link)).class_index, {}, now, out);
}

}  // namespace shaper
