// The inside of Shaper: the classes of the policy in force, the flows, and which class acts next.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "shaper/core/classifier.h"
#include "shaper/core/flow_table.h"
#include "shaper/core/owner_table.h"
#include "shaper/core/scheduler.h"
#include "shaper/core/shaper.h"

namespace shaper {

class Shaper::State {
 public:
  static constexpr std::uint32_t kUsualMtu = 1500;
  /// In place of a class: a shared flow that a change of policy found busy.
  static constexpr std::uint32_t kLingering = ~std::uint32_t{0};

  State(PreparedPolicy prepared, StartCredit credit, HashKey key, Instant now);

  void on_packet(const Packet& packet, Instant now, Verdicts& out);
  void release(Instant now, Verdicts& out);
  [[nodiscard]] std::optional<Instant> next_departure() const;
  void on_departed(Instant at);
  void on_queues_dry() { ++epoch_; }
  void on_lost(const Verdict& verdict);
  void set_mtu(LinkIndex link, std::uint32_t mtu);
  std::vector<std::optional<ClassIndex>> swap(PreparedPolicy prepared, Instant now, Verdicts& out);
  void save(ImageWriter& image, Instant now);
  void restore(ImageReader& image, Instant now, Verdicts& out);
  void on_grant(const Grant& grant, Instant now, Verdicts& out);
  [[nodiscard]] ByteCount take_back(const LimitKey& from, ByteCount bytes, Instant now);
  void refuse(const LimitKey& at, bool on, Instant now, Verdicts& out);
  void demand(Instant now, std::vector<Demand>& demands) const;
  [[nodiscard]] std::optional<Demand> demand(const LimitKey& from, Instant now) const;
  void stirred(std::vector<LimitKey>& buckets);
  [[nodiscard]] std::vector<WalletState> wallets(Instant now) const;
  void set_wallet(const WalletState& wallet, Instant now);
  void on_owner(const FlowKey& flow, const Owner& owner, Instant now, Verdicts& out);
  void owners_wanted(std::vector<FlowKey>& flows);
  void pass_all(Instant now, Verdicts& out);
  [[nodiscard]] Explanation explain(const Packet& packet) const;
  [[nodiscard]] std::optional<HoldSnapshot> hold(const Packet& packet, Instant now) const;
  [[nodiscard]] CoreSnapshot without_classes(Instant now) const;
  [[nodiscard]] CoreSnapshot with_class(ClassIndex index, Instant now) const;
  void snapshot(ClassCursor& cursor, std::size_t budget, Instant now, CoreSnapshot& snapshot) const;
  void flows(FlowCursor& cursor, std::size_t budget, Instant now, std::vector<FlowSnapshot>& flows) const;

 private:
  void begin(Instant now);
  [[nodiscard]] ScheduledClass& class_of(const Flow& flow) const { return *scheduler_->classes()[flow.owner->index()]; }
  [[nodiscard]] FlowKey key_of(const Packet& packet) const;
  [[nodiscard]] FlowSnapshot snapshot_of(const Flow& flow, Instant now) const;
  Flow& flow_of(const Packet& packet, Instant now);
  Flow& make_flow(const FlowKey& key, const Packet& packet, ClassIndex index, Instant now);
  void follow_user(Flow& flow, const Packet& packet, Instant now, Verdicts& out);
  void move_flow(Flow& flow, ClassIndex index, ByteCount owed, Instant now, Verdicts& out);
  void offer(Flow& flow, const HeldPacket& packet, Instant now, Verdicts& out);
  [[nodiscard]] bool takes_detour(Flow& flow, const Packet& packet) const;
  static void learn_segment(Flow& flow, const Packet& packet);

  [[nodiscard]] bool busy(const Flow& flow) const { return !flow.idle() || flow.on_detour(epoch_); }
  void drop_from_fattest_class(Instant now, Verdicts& out);
  using SharedKeys = std::array<FlowKey, 2>;  // the second one is by hash
  [[nodiscard]] SharedKeys shared_keys(const FlowKey& key, ClassIndex index) const;
  [[nodiscard]] Flow* shared_while_busy(const SharedKeys& shared);

  // Owners (shaper_owners.cpp).
  void want_owner(Flow& flow, Instant now);
  void want_owner_of_new(Flow& flow, Instant now);
  void want_owner_again(Flow& flow, Instant now);
  void want_owners_anew(Instant now);
  void follow_quoted(Flow& flow, const Packet& packet, Instant now, Verdicts& out);
  void settle(Flow& flow, ByteCount owed, Instant now, Verdicts& out);
  void give_up_waiting(Instant now, Verdicts& out);
  void forget_answered();

  // The guard (shaper_guard.cpp).
  void follow_guard_ports(Flow& flow, Instant now) const;
  [[nodiscard]] ClassIndex class_while_sparse(const Flow& flow, ClassIndex by_policy) const;
  void enter_guard(Flow& flow, Instant now);
  void charge_guarded(Flow& flow, ByteCount length, Instant now, Verdicts& out);
  void leave_guard(Flow& flow, Instant now, Verdicts& out);

  // Change of policy (shaper_swap.cpp).
  struct Move;
  [[nodiscard]] std::vector<Move> unlink_flows();
  [[nodiscard]] ClassIndex class_after(const Move& move) const;
  [[nodiscard]] FlowKey key_after(const Move& move) const;
  void rename_flows(std::vector<Move>& moves);
  void merge(Move& move, Move& into);
  void settle_flow(const Move& move, Instant now, Verdicts& out);
  void dissolve(const Move& move, Instant now, Verdicts& out);

  // Another process goes on (shaper_image.cpp).
  template <typename Image>
  void carry(Image& image);
  [[nodiscard]] Flow* restore_flow(ImageReader& image, Instant now);

  Policy policy_;
  Classifier classifier_;
  HashKey key_;
  std::unique_ptr<Scheduler> scheduler_;
  OwnerTable owners_;
  FlowTable flows_;
  std::uint32_t epoch_ = 1;         // counts the times at which no detour was on its way
  std::size_t shared_flows_ = 0;    // made so far: while there are none, nobody looks for them
  std::uint64_t shared_turns_ = 0;  // counts packets that found a shared flow empty
  std::vector<FlowKey> lingering_;  // shared flows that the latest change of policy found busy, in whatever class
  std::vector<HeldPacket> moving_;  // from one class to another
  struct Pending {
    FlowKey flow;
    Instant until;
  };
  std::deque<Pending> pending_;         // flows whose owner is being found out
  std::vector<FlowKey> owners_wanted_;  // for owners_wanted()
  OwnerCounters owner_counters_;
  Instant latest_;
};

}  // namespace shaper
