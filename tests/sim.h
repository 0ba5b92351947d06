// A shaper in simulated time: traffic that is generated, wake-ups that come as late as asked, and rules that are
// checked after every step whatever the experiment is about.
//
//   Sim sim({.policy = policy_of(default_class(10_mbit))});
//   sim.add(greedy(flow_of(1, 0)));
//   sim.run_for(10s);
//   EXPECT_EQ(sim.broken(), "");
//
// The driver plays the kernel: it holds packets until their verdict, answers a detour by cutting the super-packet into
// segments that stand behind everything that has arrived, and tells the core when its queues are dry.
//
// Rules: each packet gets one final verdict; a flow is never reordered; accepted bytes and frames are what wire_size()
// says; every bucket obeys the rate law (sim_law.h); nothing departs later than max_delay plus the lateness; after a
// release nothing is due; something waits exactly if there is a next departure; counters add up for every class; no
// credit is lost while wake-ups are punctual.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/sim_experiment.h"
#include "tests/sim_law.h"
#include "tests/sim_policy.h"
#include "tests/sim_traffic.h"

namespace shaper::sim {

class Sim {
 public:
  static constexpr HashKey kKey{0x0123456789abcdef, 0xfedcba9876543210};
  static constexpr Instant kStart{1s};

  explicit Sim(Experiment experiment)
      : policy_(experiment.policy),
        lateness_(experiment.lateness),
        sending_(experiment.sending),
        count_every_(experiment.count_every),
        random_(experiment.seed),
        law_(experiment.policy),
        mtu_(experiment.policy.links.size(), 1500),
        core_(experiment.policy, experiment.credit, kKey, kStart) {}

  /// Traffic that starts now (or at `source.start` from now).
  void add(const Source& source) {
    sources_.push_back(source);
    plan(now_ + source.start, {.packet = source.packet, .source = sources_.size() - 1, .generates = true});
    if (!source.gap) {
      for (std::uint32_t n = 1; n < source.window; ++n) plan(now_ + source.start, fresh_packet(sources_.size() - 1));
    }
  }

  /// One packet, now.
  void send(const Packet& packet) {
    plan(now_, {.packet = packet});
    run_until(now_);
  }

  void run_for(Nanos time) { run_until(now_ + time); }

  /// Runs until so many packets have come to their end, or until nothing happens any more.
  void run_for_packets(std::size_t packets) {
    stop_after_ = packets;
    run_until(now_ + 10'000h);
    stop_after_ = kNoLimit;
  }

  void run_until(Instant end) {
    while (broken_.empty() && departures_.size() < stop_after_) {
      const bool arrives = !coming_.empty() && (!wake_ || coming_.begin()->first <= *wake_);
      if (!arrives && !wake_) break;
      const Instant next = arrives ? coming_.begin()->first : *wake_;
      if (next > end) break;
      now_ = std::max(now_, next);
      if (arrives) {
        read_queues();
      } else {
        wake_up();
      }
    }
    if (departures_.size() < stop_after_) now_ = std::max(now_, end);
  }

  /// Ends all traffic and runs until nothing waits.
  void drain() {
    for (Source& source : sources_) source.stop = Nanos{0};
    for (int step = 0; step < 100'000'000 && broken_.empty() && (wake_ || !coming_.empty()); ++step) {
      run_until(coming_.empty() || (wake_ && *wake_ < coming_.begin()->first) ? *wake_ : coming_.begin()->first);
    }
    if (!held_.empty()) broke("packets wait for ever: " + std::to_string(held_.size()));
    count();
  }

  void stop(std::size_t source) { sources_[source].stop = Nanos{0}; }

  /// A policy with the same links.
  void swap(const Policy& policy) {
    last_is_lost_ = true;  // a verdict names its class by the policy's numbers
    core_.swap(policy, now_, out_);
    policy_ = policy;
    few_flows_ |= policy.max_flows < RateLaw::kManyFlows;
    law_ = RateLaw(policy, law_);
    for (const auto& [id, held] : held_) note_arrival(held);
    ++swaps_;
    settle();
  }

  void pass_all() {
    passing_ = true;
    core_.pass_all(now_, out_);
    settle();
    passing_ = false;
    if (!held_.empty()) broke("pass_all() kept packets");
  }

  void set_mtu(LinkIndex link, std::uint32_t mtu) {
    mtu_[link] = mtu;
    largest_mtu_ = std::max(largest_mtu_, mtu);
    core_.set_mtu(link, mtu);
    law_ = RateLaw(policy_, law_);
    for (const auto& [id, held] : held_) note_arrival(held);
    arm();
  }

  /// The kernel had cleared the packet of the latest verdict.
  void lose_last() {
    if (departures_.empty() || last_is_lost_) return;
    last_is_lost_ = true;
    core_.on_lost(last_verdict_);
    count();
  }

  /// Checks that the counters of all classes add up.
  void count() {
    const CoreSnapshot snapshot = core_.snapshot(now_);
    std::uint64_t in = 0, waiting = 0, waiting_bytes = 0;
    if (snapshot.classes.size() != policy_.classes.size()) return broke("a class is missing in the snapshot");
    for (const ClassSnapshot& entry : snapshot.classes) {
      const std::string& name = policy_.classes[entry.index].name;
      const std::uint64_t out = entry.traffic.sent_packets + entry.traffic.dropped_packets() + entry.lost_packets +
                                entry.passed_packets + entry.backlog_packets;
      if (out != entry.in_packets) {
        broke("class " + name + ": in " + std::to_string(entry.in_packets) + ", accounted " + std::to_string(out));
      }
      if (entry.late_bytes.value != 0 && lateness_.most + sending_ == Nanos{0}) {
        broke("class " + name + " lost credit to late wake-ups, and there are none");
      }
      in += entry.in_packets;
      waiting += entry.backlog_packets;
      waiting_bytes += entry.backlog_bytes.value;
    }
    if (swaps_ == 0 && in != frames_in_) {
      broke("frames in: " + std::to_string(frames_in_) + ", counted " + std::to_string(in));
    }
    if (waiting != frames_held_ || waiting_bytes != bytes_held_) broke("the backlog is not what is held");
  }

  /// The first rule that was broken, with its time; empty: none.
  [[nodiscard]] const std::string& broken() const { return broken_; }
  [[nodiscard]] const std::vector<Departure>& departures() const { return departures_; }
  [[nodiscard]] std::uint64_t detours() const { return detours_; }
  [[nodiscard]] std::size_t held() const { return held_.size(); }
  [[nodiscard]] Instant now() const { return now_; }
  [[nodiscard]] const RateLaw& law() const { return law_; }
  [[nodiscard]] const Verdict& last_verdict() const { return last_verdict_; }
  [[nodiscard]] const Shaper& core() const { return core_; }
  [[nodiscard]] CoreSnapshot snapshot() const { return core_.snapshot(now_); }

  /// All flows, read in pieces of `budget`.
  [[nodiscard]] std::vector<FlowSnapshot> flows(std::size_t budget = 1000) const {
    std::vector<FlowSnapshot> flows;
    for (FlowCursor cursor; !cursor.done;) core_.flows(cursor, budget, now_, flows);
    return flows;
  }

  /// Bytes on the wire of a flow (or of all) that departed from `begin` on.
  [[nodiscard]] ByteCount sent(std::optional<std::uint32_t> flow = {}, Instant begin = kStart) const {
    ByteCount sum;
    for (const Departure& departure : departures_) {
      const bool counts = departure.decision == Decision::accept && departure.when >= begin;
      if (counts && (!flow || departure.flow == *flow)) sum += departure.wire_bytes;
    }
    return sum;
  }

  [[nodiscard]] std::size_t dropped(std::optional<DropReason> reason = {},
                                    std::optional<std::uint32_t> flow = {}) const {
    return static_cast<std::size_t>(std::count_if(departures_.begin(), departures_.end(), [&](const Departure& d) {
      return d.decision == Decision::drop && (!reason || d.reason == *reason) && (!flow || d.flow == *flow);
    }));
  }

 private:
  using Order = std::pair<std::uint64_t, std::uint32_t>;  // number in its flow, segment of a super-packet
  static constexpr std::size_t kNoSource = ~std::size_t{0};
  static constexpr std::size_t kNoLimit = ~std::size_t{0};

  struct Arrival {
    Packet packet;
    std::size_t source = kNoSource;
    bool generates = false;           // the next packets of its source follow
    std::optional<Order> order = {};  // of a segment; others get theirs when they arrive
  };

  struct Held {
    Packet packet;
    WireSize size;
    Instant arrival;
    Order order;
    std::size_t source = kNoSource;
  };

  struct FlowOrder {
    std::uint64_t arrived = 0;
    Order departed{0, 0};
  };

  static std::uint64_t key_of(PacketId id) { return std::uint64_t{id.queue} << 32 | id.number; }
  static std::uint64_t flow_key(const Packet& packet) {
    return std::uint64_t{flow_number(packet.headers)} << 32 | (packet.mark & 0xff) << 24 |
           std::uint32_t{packet.headers.dscp} << 16 | std::uint32_t{packet.headers.protocol} << 8 | packet.link;
  }

  [[nodiscard]] Framing framing(LinkIndex link) const {
    return {mtu_[link], policy_.links[link].overhead, policy_.links[link].smallest_frame};
  }

  void broke(const std::string& rule) {
    if (broken_.empty()) broken_ = "at " + std::to_string((now_ - kStart).count()) + " ns: " + rule;
  }

  void plan(Instant at, Arrival arrival) { coming_.emplace(at, std::move(arrival)); }

  Arrival fresh_packet(std::size_t source) const { return {.packet = sources_[source].packet, .source = source}; }

  [[nodiscard]] bool stopped(std::size_t source) const {
    return sources_[source].stop && now_ >= kStart + *sources_[source].stop;
  }

  /// Reads what has arrived, a batch at a time as the live driver does, and gives the verdicts at the end of it.
  void read_queues() {
    constexpr int kBatch = 32;
    for (int n = 0; n < kBatch && !coming_.empty() && coming_.begin()->first <= now_; ++n) {
      const Arrival arrival = std::move(coming_.extract(coming_.begin()).mapped());
      if (arrival.source != kNoSource && !arrival.order && stopped(arrival.source)) continue;
      if (arrival.generates && sources_[arrival.source].gap) plan_next(arrival.source);
      arrive(arrival);
    }
    settle();
  }

  void plan_next(std::size_t source) {
    for (std::uint32_t n = 1; n < sources_[source].together; ++n) plan(now_, fresh_packet(source));
    Arrival next = fresh_packet(source);
    next.generates = true;
    plan(now_ + sources_[source].gap(random_), next);
  }

  void arrive(const Arrival& arrival) {
    Held held{.packet = arrival.packet, .size = {}, .arrival = now_, .order = {}, .source = arrival.source};
    Packet& packet = held.packet;
    const bool split = packet.queue == QueueKind::split;
    packet.id.queue = static_cast<std::uint16_t>(2 * packet.link + (split ? 1 : 0));
    packet.id.number = ++last_number_;
    held.size = wire_size(packet, framing(packet.link));
    held.order = arrival.order ? *arrival.order : Order{++order_[flow_key(packet)].arrived, 0};
    frames_held_ += held.size.frames;
    bytes_held_ += held.size.bytes.value;
    frames_in_ += held.size.frames;
    held_.emplace(key_of(packet.id), held);
    core_.on_packet(packet, now_, out_);
    const bool detoured = !out_.empty() && out_.back().id == packet.id && out_.back().decision == Decision::detour;
    if (!detoured) note_arrival(held);
  }

  /// A bucket keeps the depth for the largest frame of its link, also after the MTU has shrunk.
  [[nodiscard]] ByteCount largest_frame(LinkIndex link) const {
    Framing frame = framing(link);
    frame.mtu = largest_mtu_;
    return frame.full_frame();
  }

  void note_arrival(const Held& held) {
    law_.seen(core_.explain(held.packet).class_index, held.size.bytes, largest_frame(held.packet.link));
  }

  void wake_up() {
    wake_.reset();
    core_.release(now_, out_);
    const std::optional<Instant> next = core_.next_departure();
    if (next && *next <= now_) broke("a release left a packet that is due");
    settle();
  }

  /// Gives the verdicts, as the kernel takes them, and sets the timer.
  void settle() {
    decided_ = now_;
    if (sending_ > Nanos{0} && !out_.empty()) now_ += random_.up_to(sending_);
    for (const Verdict& verdict : out_) take(verdict);
    if (sending_ > Nanos{0} && !out_.empty()) core_.on_departed(now_);
    out_.clear();
    if (coming_.empty() || coming_.begin()->first > now_) core_.on_queues_dry();
    if (core_.next_departure().has_value() != !held_.empty()) {
      broke(held_.empty() ? "a departure is planned and nothing waits" : "a packet waits and no departure is planned");
    }
    arm();
    if (++steps_ % count_every_ == 0) count();
  }

  /// A timer that has run out stays: the wake-up is only late.
  void arm() {
    const std::optional<Instant> wanted = core_.next_departure();
    if (wanted == wanted_ && wake_) return;
    if (wanted && wake_ && wanted_ && *wanted_ <= now_) return;
    wanted_ = wanted;
    wake_.reset();
    if (wanted) wake_ = std::max(*wanted, now_) + lateness_.least + random_.up_to(lateness_.most - lateness_.least);
  }

  void take(const Verdict& verdict) {
    const auto found = held_.find(key_of(verdict.id));
    if (found == held_.end()) return broke("a second verdict, or one for an unknown packet");
    const Held held = found->second;
    held_.erase(found);
    frames_held_ -= held.size.frames;
    bytes_held_ -= held.size.bytes.value;
    if (verdict.decision == Decision::detour) return cut(held);
    last_verdict_ = verdict;
    last_is_lost_ = false;
    check(verdict, held);
    departures_.push_back({held.arrival, now_, flow_number(held.packet.headers), verdict.decision, verdict.reason,
                           verdict.class_index, held.size.frames, held.size.bytes});
    replace(held, verdict.decision);
  }

  void check(const Verdict& verdict, const Held& held) {
    if (verdict.decision == Decision::pass && !passing_ && swaps_ == 0) broke("a packet passed unmetered");
    if (verdict.wire_bytes != held.size.bytes || verdict.frames != held.size.frames) broke("a wrong size is charged");
    if (verdict.decision == Decision::drop) return;
    Order& departed = order_[flow_key(held.packet)].departed;
    if (held.order <= departed) broke("flow " + std::to_string(flow_number(held.packet.headers)) + " is reordered");
    departed = held.order;
    if (verdict.decision == Decision::pass) return;
    // What shares a flow for want of room stays with it after a change of policy: its order goes first.
    const bool may_share = few_flows_ && swaps_ > 0;
    if (!may_share && verdict.class_index != core_.explain(held.packet).class_index) broke("a packet of another class");
    if (verdict.delay != decided_ - held.arrival) broke("the verdict tells a wrong delay");
    const std::string bucket = law_.charge(verdict.class_index, held.packet, now_, held.size.bytes);
    if (!bucket.empty()) broke("above the rate law: " + bucket);
    check_delay(policy_.classes[verdict.class_index], held);
  }

  void check_delay(const ClassPolicy& policy, const Held& held) {
    const std::optional<DataRate> rate = policy.smallest_rate();
    if (!rate || swaps_ != 0) return;
    const Nanos most = policy.max_delay.value_or(default_max_delay(*rate, largest_frame(held.packet.link)));
    if (policy.over == Over::delay && decided_ - held.arrival > most + lateness_.most + sending_)
      broke("later than max_delay");
    if (policy.over != Over::delay && decided_ != held.arrival) broke("a class that does not delay has delayed");
  }

  /// What the kernel does with a packet that is sent to the split queue.
  void cut(const Held& held) {
    if (held.packet.queue != QueueKind::fast) return broke("a detour from the split queue");
    ++detours_;
    frames_in_ -= held.size.frames;
    const std::uint32_t header = std::uint32_t{held.packet.headers.network_bytes} + held.packet.headers.transport_bytes;
    const std::uint32_t room = held.packet.super ? mtu_[held.packet.link] - header : held.packet.ip_bytes;
    std::uint32_t payload = held.packet.super ? held.packet.ip_bytes - header : 0;
    Order order = held.order;
    do {
      Arrival segment{.packet = held.packet, .source = held.source, .order = order};
      segment.packet.queue = QueueKind::split;
      segment.packet.super = false;
      if (held.packet.super) segment.packet.ip_bytes = header + std::min(room, payload);
      payload -= std::min(room, payload);
      plan(now_, segment);
      ++order.second;
    } while (payload > 0);
    if (held.source != kNoSource) sources_[held.source].in_flight += order.second - held.order.second - 1;
  }

  /// A backlogged source sends the next packet when one has gone: soon if that had waited, else at a pace that a
  /// simulation bears; after a loss it waits.
  void replace(const Held& gone, Decision decision) {
    const std::size_t source = gone.source;
    if (source == kNoSource || sources_[source].gap || stopped(source)) return;
    if (sources_[source].in_flight > 0) {
      --sources_[source].in_flight;  // a segment whose super-packet has more of them
      return;
    }
    const Nanos pause = decision == Decision::drop ? 1ms : gone.arrival == decided_ ? 100us : 1us;
    plan(now_ + pause, fresh_packet(source));
  }

  Policy policy_;
  Lateness lateness_;
  Nanos sending_;
  unsigned count_every_;
  Random random_;
  RateLaw law_;
  std::vector<std::uint32_t> mtu_;
  std::uint32_t largest_mtu_ = 1500;
  Shaper core_;
  Instant now_ = kStart;
  Instant decided_ = kStart;                // when the core gave the verdicts that are carried out
  std::multimap<Instant, Arrival> coming_;  // first in first out at one instant
  std::vector<Source> sources_;
  std::unordered_map<std::uint64_t, Held> held_;
  std::unordered_map<std::uint64_t, FlowOrder> order_;
  std::vector<Departure> departures_;
  Verdicts out_;
  Verdict last_verdict_;
  std::optional<Instant> wanted_;  // what the core asked for
  std::optional<Instant> wake_;    // when the timer fires
  std::uint32_t last_number_ = 0;
  std::size_t stop_after_ = kNoLimit;
  std::uint64_t steps_ = 0, detours_ = 0, swaps_ = 0;
  bool few_flows_ = policy_.max_flows < RateLaw::kManyFlows;  // now or in an earlier policy
  std::uint64_t frames_in_ = 0, frames_held_ = 0, bytes_held_ = 0;
  bool passing_ = false;
  bool last_is_lost_ = true;
  std::string broken_;
};

}  // namespace shaper::sim
