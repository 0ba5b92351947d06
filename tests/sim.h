// A shaper in simulated time: traffic that is generated, wake-ups that come as late as asked, and rules that are
// checked after every step whatever the experiment is about (sim_rules.h).
//
//   Sim sim({.policy = policy_of(default_class(10_mbit))});
//   sim.add(greedy(flow_of(1, 0)));
//   sim.run_for(10s);
//   EXPECT_EQ(sim.broken(), "");
//
// This is the driver: it reads what has come (sim_kernel.h), asks the core, carries out verdicts, and sets the timer.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "shaper/core/image.h"
#include "shaper/live/verdict_code.h"
#include "tests/sim_rules.h"

namespace shaper::sim {

class Sim {
 public:
  static constexpr HashKey kKey{0x0123456789abcdef, 0xfedcba9876543210};
  static constexpr Instant kStart = sim::kStart;

  explicit Sim(Experiment experiment)
      : lateness_(experiment.lateness),
        sending_(experiment.sending),
        count_every_(experiment.count_every),
        random_(experiment.seed),
        kernel_(experiment.policy, experiment.seed + 1),
        rules_(experiment, kernel_),
        core_(experiment.policy, experiment.credit, kKey, kStart) {}
  Sim(const Sim&) = delete;
  Sim& operator=(const Sim&) = delete;

  // --- Traffic and time ----------------------------------------------------------------------------------------------

  /// Traffic that starts now (or at `source.start` from now).
  void add(const Source& source) { kernel_.add(source, now_); }
  void stop(std::size_t source) { kernel_.stop(source); }

  /// One packet, now.
  void send(const Packet& packet) {
    kernel_.send(packet, now_);
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
    while (broken().empty() && departures_.size() < stop_after_) {
      const std::optional<Instant> coming = kernel_.next_arrival();
      const bool arrives = coming && (!wake_ || *coming <= *wake_);
      if (!arrives && !wake_) break;
      const Instant next = std::max(arrives ? *coming : *wake_, asleep_until_);
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

  /// Nothing is read and nothing wakes up for this long: a stopped process, or a clock that jumps.
  void sleep(Nanos time) {
    asleep_until_ = now_ + time;
    rules_.not_punctual();
  }

  /// Ends all traffic and runs until nothing waits.
  void drain() {
    kernel_.stop_all();
    for (int step = 0; step < 100'000'000 && broken().empty(); ++step) {
      const std::optional<Instant> coming = kernel_.next_arrival();
      if (!wake_ && !coming) break;
      run_until(std::max(asleep_until_, !coming || (wake_ && *wake_ < *coming) ? *wake_ : *coming));
    }
    if (held() != 0) broke("packets wait for ever: " + std::to_string(held()));
    count();
  }

  // --- What else the core can be told --------------------------------------------------------------------------------

  /// A policy with the same links.
  void swap(const Policy& policy) {
    code_.swapped(core_.swap(policy, now_, out_));
    explained_.clear();
    rules_.swapped(policy, core_, now_);
    settle();
  }

  /// Another process goes on with the image of this one; `damage` may change it. False: it cannot be read, and nothing
  /// has happened.
  bool restart(const std::function<void(std::string&)>& damage = {}) {
    ImageWriter writer;
    core_.save(writer, now_);
    std::string bytes(writer.bytes());
    if (damage) damage(bytes);
    ImageReader reader(bytes);
    auto heir = Shaper::restore(rules_.policy(), kKey, reader, now_, out_);
    if (!heir) {
      out_.clear();
      return false;
    }
    core_ = std::move(*heir);
    settle();
    return true;
  }

  void pass_all() {
    rules_.let_all_pass(true);
    core_.pass_all(now_, out_);
    settle();
    rules_.let_all_pass(false);
    if (held() != 0) broke("pass_all() kept packets");
  }

  void set_mtu(LinkIndex link, std::uint32_t mtu) {
    kernel_.set_mtu(link, mtu);
    core_.set_mtu(link, mtu);
    rules_.mtu_changed(link, now_);
    arm();
  }

  void grant(const Grant& grant) {
    rules_.law().granted(grant, now_);
    core_.on_grant(grant, now_, out_);
    settle();
  }

  ByteCount take_back(const LimitKey& from, ByteCount bytes) {
    const ByteCount taken = core_.take_back(from, bytes, now_);
    Wallet& wallet = rules_.law().wallet(from.limit, from.key);
    if (taken > bytes || Int128{taken.value} > std::max<Int128>(wallet.left(now_), 0)) {
      broke("more was taken back than was there");
    }
    wallet.take_back(taken, now_);
    arm();
    return taken;
  }

  void refuse(const LimitKey& at, bool on) {
    core_.refuse(at, on, now_, out_);
    settle();
  }

  [[nodiscard]] std::vector<Demand> demand() {
    std::vector<Demand> demands;
    core_.demand(now_, demands);
    for (const Demand& entry : demands) {
      const Int128 left = rules_.law().wallet(entry.from.limit, entry.from.key).left(now_);
      if (Int128{entry.left.value} > std::max<Int128>(left, 0)) broke("more is left of a limit than was granted");
    }
    return demands;
  }

  /// The kernel had cleared the packet of the latest verdict.
  void lose_last() {
    if (departures_.empty() || last_is_lost_) return;
    last_is_lost_ = true;
    const Verdict verdict = code_.decode(last_code_);
    if (verdict.class_index != kNoClass) core_.on_lost(verdict);
    count();
  }

  // --- What came of it -----------------------------------------------------------------------------------------------

  /// Checks that the counters of all classes add up.
  void count() {
    rules_.count(core_.snapshot(now_), now_);
    note_time();
  }

  /// The first rule that was broken, with its time; empty: none.
  [[nodiscard]] const std::string& broken() const { return broken_; }
  [[nodiscard]] const std::vector<Departure>& departures() const { return departures_; }
  [[nodiscard]] std::uint64_t detours() const { return detours_; }
  [[nodiscard]] std::size_t held() const { return kernel_.held().size(); }
  [[nodiscard]] Instant now() const { return now_; }
  [[nodiscard]] const RateLaw& law() const { return rules_.law(); }
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
    return sum(begin, [flow](const Departure& d) { return !flow || d.flow == *flow; });
  }

  /// The same of a class of the latest policy.
  [[nodiscard]] ByteCount sent_by_class(ClassIndex index, Instant begin = kStart) const {
    return sum(begin, [index](const Departure& d) { return d.class_index == index; });
  }

  [[nodiscard]] std::size_t dropped(std::optional<DropReason> reason = {},
                                    std::optional<std::uint32_t> flow = {}) const {
    return static_cast<std::size_t>(std::count_if(departures_.begin(), departures_.end(), [&](const Departure& d) {
      return d.decision == Decision::drop && (!reason || d.reason == *reason) && (!flow || d.flow == *flow);
    }));
  }

  [[nodiscard]] std::size_t marked() const {
    return static_cast<std::size_t>(std::count_if(departures_.begin(), departures_.end(),
                                                  [](const Departure& d) { return d.decision == Decision::mark; }));
  }

  /// Delays from `begin` on of what departed (of one flow), shortest first.
  [[nodiscard]] std::vector<Nanos> delays(std::optional<std::uint32_t> flow = {}, Instant begin = kStart) const {
    std::vector<Nanos> delays;
    for (const Departure& d : departures_) {
      if (departs(d.decision) && d.when >= begin && (!flow || d.flow == *flow)) delays.push_back(d.delay());
    }
    std::sort(delays.begin(), delays.end());
    return delays;
  }

 private:
  static constexpr std::size_t kNoLimit = ~std::size_t{0};

  template <typename Counts>
  [[nodiscard]] ByteCount sum(Instant begin, Counts counts) const {
    ByteCount sum;
    for (const Departure& departure : departures_) {
      if (departs(departure.decision) && departure.when >= begin && counts(departure)) sum += departure.wire_bytes;
    }
    return sum;
  }

  void broke(const std::string& rule) {
    rules_.broke(rule);
    note_time();
  }

  void note_time() {
    if (!broken_.empty() || rules_.broken().empty()) return;
    broken_ = "at " + std::to_string((now_ - kStart).count()) + " ns: " + rules_.broken();
  }

  /// The class that the core explains; asked once for each kind of packet, because it may look through all classes.
  ClassIndex class_of(const Packet& packet) {
    if (packet.user) return core_.explain(packet).class_index;
    const auto [found, unknown] = explained_.try_emplace(finest_flow(packet));
    if (unknown) found->second = core_.explain(packet).class_index;
    return found->second;
  }

  /// Reads what has arrived, a batch at a time as the live driver does, and gives the verdicts at the end of it.
  void read_queues() {
    constexpr int kBatch = 32;
    for (int n = 0; n < kBatch; ++n) {
      const Held* const held = kernel_.read(now_);
      if (held == nullptr) break;
      rules_.arrived(*held, class_of(held->packet), now_);
      core_.on_packet(held->packet, now_, out_);
      const bool decided = !out_.empty() && out_.back().id == held->packet.id;
      if (decided && out_.back().decision == Decision::detour) continue;
      if (decided && out_.back().decision == Decision::drop && out_.back().reason == DropReason::policed) {
        rules_.refused(*held, class_of(held->packet));
      } else {
        rules_.stays(*held, class_of(held->packet), now_);
      }
    }
    settle();
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
    const Instant decided = now_;
    if (sending_ > Nanos{0} && !out_.empty()) now_ += random_.up_to(sending_);
    for (const Verdict& verdict : out_) take(verdict, decided);
    if (sending_ > Nanos{0} && !out_.empty()) core_.on_departed(now_);
    out_.clear();
    if (kernel_.dry(now_)) core_.on_queues_dry();
    const std::optional<Instant> next = core_.next_departure();
    if (next.has_value() != (held() != 0)) {
      broke(held() == 0 ? "a departure is planned and nothing waits" : "a packet waits and no departure is planned");
    }
    arm();
    if (++steps_ % count_every_ == 0) {
      count();
      if (next && *next > now_ && now_ == decided) rules_.check_no_idling(core_, now_);
    }
    note_time();
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

  void take(const Verdict& verdict, Instant decided) {
    const std::optional<Held> held = kernel_.take(verdict.id);
    if (!held) return broke("a second verdict, or one for an unknown packet");
    if (verdict.decision == Decision::detour) {
      if (held->packet.queue != QueueKind::fast) return broke("a detour from the split queue");
      ++detours_;
      rules_.detoured(*held);
      kernel_.cut(*held, now_);
      return;
    }
    last_verdict_ = verdict;
    last_code_ = code_.encode(verdict);
    last_is_lost_ = false;
    rules_.ended(verdict, *held, class_of(held->packet), decided, now_);
    departures_.push_back({held->arrival, now_, flow_number(held->packet.headers), verdict.decision, verdict.reason,
                           verdict.class_index, held->size.frames, held->size.bytes});
    kernel_.ended(*held, verdict.decision, decided, now_);
  }

  Lateness lateness_;
  Nanos sending_;
  unsigned count_every_;
  Random random_;
  Kernel kernel_;
  Rules rules_;
  Shaper core_;
  Instant now_ = kStart;
  Instant asleep_until_ = kStart;
  std::vector<Departure> departures_;
  std::unordered_map<std::uint64_t, ClassIndex> explained_;
  Verdicts out_;
  Verdict last_verdict_;
  VerdictCode code_;
  std::uint32_t last_code_ = 0;    // of the latest verdict, as the kernel would send it back
  std::optional<Instant> wanted_;  // what the core asked for
  std::optional<Instant> wake_;    // when the timer fires
  bool last_is_lost_ = true;
  std::size_t stop_after_ = kNoLimit;
  std::uint64_t steps_ = 0, detours_ = 0;
  std::string broken_;
};

}  // namespace shaper::sim
