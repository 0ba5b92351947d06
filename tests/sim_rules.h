// The rules that a simulation checks after every step, whatever the experiment is about.
//
// Each packet gets one final verdict; a flow is never reordered; accepted bytes and frames are what wire_size() says;
// every bucket obeys the rate law (sim_law.h); nothing departs later than max_delay; nothing waits while every bucket
// on its way must have credit; counters add up; no credit is lost while wake-ups are punctual.
#pragma once

#include <string>

#include "tests/sim_kernel.h"
#include "tests/sim_law.h"

namespace shaper::sim {

class Rules {
 public:
  Rules(const Experiment& experiment, const Kernel& kernel)
      : policy_{experiment.policy},
        kernel_{kernel},
        punctual_{experiment.lateness.most + experiment.sending == Nanos{0}},
        few_flows_{policy_.max_flows < RateLaw::kManyFlows},
        law_{policy_, frames(), experiment.credit == StartCredit::empty ? std::optional{kStart} : std::nullopt, kStart},
        largest_frames_{frames()} {}

  // --- What happens --------------------------------------------------------------------------------------------------

  void arrived(const Held& held, ClassIndex index, Instant now) {
    static_cast<void>(law_.path(index, held.packet, now));  // its buckets exist from now on
    frames_held_ += held.size.frames;
    bytes_held_ += held.size.bytes.value;
    frames_in_ += held.size.frames;
  }

  /// The packet was not sent on a detour.
  void stays(const Held& held, ClassIndex index, Instant now) {
    if (!guard_of(held.packet) && !may_share()) return law_.seen(index, held.packet, held.size.bytes, now);
    is_somewhere(held, index);
  }
  /// It was policed: nothing needs to become deep enough for it.
  void refused(const Held& held, ClassIndex index) { law_.may_have_seen(index, held.size.bytes); }

  void detoured(const Held& held) {
    frames_in_ -= held.size.frames;
    gone(held);
  }

  /// A final verdict, decided upon at `decided` and carried out now.
  void ended(const Verdict& verdict, const Held& held, ClassIndex explained, Instant decided, Instant now) {
    gone(held);
    if (verdict.decision == Decision::pass && !passing_ && swaps_ == 0) broke("a packet passed unmetered");
    const bool as_told = verdict.wire_bytes == held.size.bytes && verdict.frames == held.size.frames;
    if (!as_told && !may_be_learnt(held.packet)) broke("a wrong size is charged");
    if (!as_told || verdict.class_index != explained) law_.may_have_seen(verdict.class_index, verdict.wire_bytes);
    if (verdict.decision == Decision::drop) return check_drop(verdict, held);
    Order& departed = departed_[finest_flow(held.packet)];
    if (held.order <= departed) broke("flow " + std::to_string(flow_number(held.packet.headers)) + " is reordered");
    departed = held.order;
    if (verdict.decision == Decision::pass) return;
    const bool guarded = guard_of(held.packet) == verdict.class_index;
    if (!may_share() && verdict.class_index != explained && !guarded) broke("a packet of another class");
    if (verdict.delay != decided - held.arrival) broke("the verdict tells a wrong delay");
    const std::string bucket = law_.charge(verdict.class_index, held.packet, now, verdict.wire_bytes);
    if (!bucket.empty()) broke("above the rate law: " + bucket);
    const std::string limit = law_.pay(verdict.class_index, held.packet, decided, verdict.wire_bytes);
    if (!limit.empty()) broke("nothing is left of the grants for limit " + limit);
    if (verdict.decision == Decision::mark) check_mark(policy_.classes[verdict.class_index], held.packet);
    check_delay(policy_.classes[verdict.class_index], held, decided);
  }

  void swapped(const Policy& policy, const Shaper& core, Instant now) {
    policy_ = policy;
    few_flows_ |= policy.max_flows < RateLaw::kManyFlows;
    law_ = RateLaw(policy, law_, now);
    ++swaps_;
    for (const auto& [id, held] : kernel_.held()) is_somewhere(held, core.explain(held.packet).class_index);
  }

  void mtu_changed(LinkIndex link, Instant now) {
    const ByteCount frame = kernel_.framing(link).full_frame();
    largest_frames_[link] = std::max(largest_frames_[link], frame);
    same_mtu_ = false;
    law_.set_frame(link, frame, now);
  }

  void let_all_pass(bool begins) { passing_ = begins; }

  // --- What is looked at now and then --------------------------------------------------------------------------------

  /// Whether the counters add up and the buckets are what they must be.
  void count(const CoreSnapshot& snapshot, Instant now) {
    std::uint64_t in = 0, waiting = 0, waiting_bytes = 0;
    if (snapshot.classes.size() != policy_.classes.size()) return broke("a class is missing in the snapshot");
    for (const ClassSnapshot& entry : snapshot.classes) {
      check_class(entry);
      check_bucket("class " + policy_.classes[entry.index].name, entry, law_.total(entry.index), now);
      in += entry.in_packets;
      waiting += entry.backlog_packets;
      waiting_bytes += entry.backlog_bytes.value;
    }
    for (const LinkSnapshot& entry : snapshot.links) {
      check_bucket("link " + policy_.links[entry.index].name, entry, law_.link(entry.index), now);
    }
    for (const LimitSnapshot& entry : snapshot.limits) {
      check_bucket("limit " + policy_.limits[entry.index].name, entry, law_.limit(entry.index), now);
    }
    if (snapshot.links.size() != policy_.links.size()) broke("a link is missing in the snapshot");
    if (snapshot.limits.size() != policy_.limits.size()) broke("a limit is missing in the snapshot");
    if (!same_mtu_) return;  // then the frames of super-packets are not known here
    if (swaps_ == 0 && in != frames_in_) {
      broke("frames in: " + std::to_string(frames_in_) + ", counted " + std::to_string(in));
    }
    if (waiting != frames_held_ || waiting_bytes != bytes_held_) broke("the backlog is not what is held");
  }

  /// Work conservation. A packet at the head of its flow may wait only at a bucket on its way that is not full and does
  /// not cover what stands there: of a link or a ceil the largest head, because that one may be saved for; of a limit
  /// or a key all heads, because what they need may be set aside for them.
  void check_no_idling(const Shaper& core, Instant now) {
    if (few_flows_) return;  // whose bucket a packet obeys is not known then
    const std::vector<Head> heads = heads_of_flows(core);
    std::unordered_map<const Meter*, ByteCount> needed;
    for (const Head& head : heads) {
      const ByteCount bytes = head.held->size.bytes;
      for (const RateLaw::Bucket& bucket : possible_path(head, now)) {
        ByteCount& sum = needed[bucket.meter];
        sum = bucket.shared ? sum + bytes : std::max(sum, bytes);
      }
    }
    for (const Head& head : heads) {
      const std::vector<RateLaw::Bucket> path = possible_path(head, now);
      const bool waits = std::any_of(path.begin(), path.end(), [&](const RateLaw::Bucket& bucket) {
        return !bucket.meter->covers(std::min(needed[bucket.meter], bucket.meter->depth()), now);
      });
      if (waits || law_.waits_for_grants(head.index)) continue;
      std::string story = "class " + policy_.classes[head.index].name +
                          " waits while every bucket has credit: " + std::to_string(head.held->size.bytes.value) +
                          " bytes";
      for (const RateLaw::Bucket& bucket : path) {
        story += ", " + std::string(bucket.kind) + " has " + std::to_string(bucket.meter->saved(now).value) + " of " +
                 std::to_string(needed[bucket.meter].value);
      }
      broke(story);
    }
  }

  void broke(const std::string& rule) {
    if (broken_.empty()) broken_ = rule;
  }
  [[nodiscard]] const std::string& broken() const { return broken_; }
  [[nodiscard]] const Policy& policy() const { return policy_; }
  [[nodiscard]] const RateLaw& law() const { return law_; }
  [[nodiscard]] RateLaw& law() { return law_; }
  [[nodiscard]] bool punctual() const { return punctual_; }
  void not_punctual() { punctual_ = false; }

 private:
  /// The first packet of a flow that waits.
  struct Head {
    const Held* held;
    ClassIndex index;
  };

  /// Whether packets may share a flow for want of room and stay with it after a change of policy, in whatever class:
  /// the order goes first.
  [[nodiscard]] bool may_share() const { return few_flows_ && swaps_ > 0; }

  /// Each class that the packet may be in may have become deep enough for it.
  void is_somewhere(const Held& held, ClassIndex explained) {
    const std::optional<ClassIndex> guard = guard_of(held.packet);
    for (ClassIndex index = 0; index < policy_.classes.size(); ++index) {
      const bool shared = may_share() && policy_.classes[index].link == held.packet.link;
      if (shared || index == explained || index == guard) law_.may_have_seen(index, held.size.bytes);
    }
  }

  /// The guard of a packet that may be in it: whether its flow is sparse is not worked out here.
  [[nodiscard]] std::optional<ClassIndex> guard_of(const Packet& packet) const {
    const Headers& headers = packet.headers;
    const bool egress = policy_.links[packet.link].direction == Direction::egress;
    const std::uint16_t local_port = egress ? headers.source_port : headers.destination_port;
    if (headers.protocol != kTcp || std::count(policy_.guard_ports.begin(), policy_.guard_ports.end(), local_port) == 0)
      return std::nullopt;
    for (ClassIndex index = 0; index < policy_.classes.size(); ++index) {
      if (policy_.classes[index].is_guard && policy_.classes[index].link == packet.link) return index;
    }
    return std::nullopt;
  }

  /// All buckets at which it may wait.
  [[nodiscard]] std::vector<RateLaw::Bucket> possible_path(const Head& head, Instant now) {
    std::vector<RateLaw::Bucket> path = law_.path(head.index, head.held->packet, now);
    if (const auto guard = guard_of(head.held->packet)) {
      for (const RateLaw::Bucket& bucket : law_.path(*guard, head.held->packet, now)) path.push_back(bucket);
    }
    return path;
  }

  [[nodiscard]] std::vector<Head> heads_of_flows(const Shaper& core) const {
    std::unordered_map<std::uint64_t, const Held*> first;
    for (const auto& [id, held] : kernel_.held()) {
      const Held*& known = first.try_emplace(finest_flow(held.packet), &held).first->second;
      if (held.order < known->order) known = &held;
    }
    std::vector<Head> heads;
    for (const auto& [flow, held] : first) heads.push_back({held, core.explain(held->packet).class_index});
    return heads;
  }

  [[nodiscard]] std::vector<ByteCount> frames() const {
    std::vector<ByteCount> frames;
    for (LinkIndex link = 0; link < policy_.links.size(); ++link) frames.push_back(kernel_.framing(link).full_frame());
    return frames;
  }

  /// After a change of MTU the core goes by the segments that a flow had before, for a while.
  [[nodiscard]] bool may_be_learnt(const Packet& packet) const { return packet.super && !same_mtu_; }

  void gone(const Held& held) {
    frames_held_ -= held.size.frames;
    bytes_held_ -= held.size.bytes.value;
  }

  void check_class(const ClassSnapshot& entry) {
    const std::string name = "class " + policy_.classes[entry.index].name;
    const std::uint64_t out = entry.traffic.sent_packets + entry.traffic.dropped_packets() + entry.lost_packets +
                              entry.passed_packets + entry.backlog_packets;
    if (out != entry.in_packets) {
      broke(name + ": in " + std::to_string(entry.in_packets) + ", accounted " + std::to_string(out));
    }
    if (entry.traffic.marked_packets > entry.traffic.sent_packets) broke(name + " marks more than it sends");
  }

  /// What a snapshot says of a bucket against the same bucket seen from outside.
  template <typename Snapshot>
  void check_bucket(const std::string& name, const Snapshot& entry, const std::optional<Meter>& meter, Instant now) {
    if (entry.late_bytes.value != 0 && punctual_) broke(name + " lost credit to late wake-ups, and there are none");
    // Where flows share a place, it is not known here which class a packet belongs to after a swap.
    const bool classes_known = !few_flows_ || swaps_ == 0;
    if (!meter || !entry.credit || !entry.depth || !classes_known) return;
    if (*entry.credit < meter->saved(now)) {
      broke(name + " has " + std::to_string(entry.credit->value) + " bytes of credit instead of " +
            std::to_string(meter->saved(now).value));
    }
    if (*entry.credit > *entry.depth) broke(name + " is too full");
    if (*entry.depth > meter->depth() && same_mtu_) broke(name + " is too deep");
  }

  void check_drop(const Verdict& verdict, const Held& held) {
    if (swaps_ != 0 || verdict.class_index >= policy_.classes.size()) return;
    const ClassPolicy& policy = policy_.classes[verdict.class_index];
    if (verdict.reason == DropReason::policed && policy.over != Over::drop) broke("a class that delays polices");
    if (verdict.reason == DropReason::aqm && !policy.aqm) broke("CoDel drops where it is off");
    if (verdict.reason == DropReason::aqm && policy.ecn &&
        (held.packet.headers.ecn == 1 || held.packet.headers.ecn == 2)) {
      broke("CoDel drops what it could mark");
    }
  }

  void check_mark(const ClassPolicy& policy, const Packet& packet) {
    if (!policy.aqm || !policy.ecn) broke("a mark where marks are off");
    if (packet.headers.ecn == 0) broke("a mark on a packet that does not know ECN");
  }

  void check_delay(const ClassPolicy& policy, const Held& held, Instant decided) {
    const std::optional<DataRate> rate = policy_.smallest_rate(policy);
    if (!rate || swaps_ != 0) return;
    Nanos most = policy.max_delay.value_or(default_max_delay(*rate, largest_frames_[held.packet.link]));
    for (const LimitIndex index : policy.limits) {
      // Who obeys a limit that others do not has more time where that is slower.
      const LimitPolicy& limit = policy_.limits[index];
      if (policy.max_delay || limit.match.empty()) continue;
      if (!obeys(held.packet, limit, policy_.links[policy.link].direction)) continue;
      most = std::max(most,
                      default_max_delay(limit.rate, *std::max_element(largest_frames_.begin(), largest_frames_.end())));
    }
    if (decided - held.arrival > most) broke("later than max_delay");
    // Nothing of its own makes these wait; the link or a limit that others use may.
    const bool alone = !policy_.links[policy.link].rate && policy.limits.empty();
    // What comes from the guard has waited there.
    if (policy.over != Over::delay && alone && decided != held.arrival && !guard_of(held.packet))
      broke("a class that does not delay has delayed");
  }

  Policy policy_;
  const Kernel& kernel_;
  bool punctual_;
  bool few_flows_;  // now or in an earlier policy
  RateLaw law_;
  std::vector<ByteCount> largest_frames_;
  std::unordered_map<std::uint64_t, Order> departed_;
  std::uint64_t swaps_ = 0, frames_in_ = 0, frames_held_ = 0, bytes_held_ = 0;
  bool passing_ = false;
  bool same_mtu_ = true;
  std::string broken_;
};

}  // namespace shaper::sim
