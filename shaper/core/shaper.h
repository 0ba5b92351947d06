// The shaper: a passive machine that is told the time.
//
// A packet came: on_packet(). Time has passed: release(). When to call again: next_departure(). Each packet gets
// exactly one verdict, in `out`, from one of these calls; a packet without a verdict yet is held by whoever holds
// packets (the kernel, a replay, a test). No clock, no descriptor, no thread, no callback; nothing is allotted per
// packet once the containers have grown. Time given to the calls must not go backwards.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "shaper/core/classifier.h"
#include "shaper/core/flow_key.h"
#include "shaper/core/owner.h"
#include "shaper/core/policy.h"
#include "shaper/core/siphash.h"
#include "shaper/core/snapshot.h"
#include "shaper/core/units.h"
#include "shaper/core/verdict.h"

namespace shaper {

class ImageReader;
class ImageWriter;

/// Buckets start full at the first start and empty after a crash, so that a crash gives nobody a burst.
enum class StartCredit : std::uint8_t { full, empty };

/// A policy with what the core makes of it before it obeys it: prepared away from the packets, then swapped in.
struct PreparedPolicy {
  // Meant to be implicit: whoever has time on the spot passes a policy.
  PreparedPolicy(Policy wanted)
      : policy(std::move(wanted)), classifier(policy) {}  // NOLINT(google-explicit-constructor)

  Policy policy;
  Classifier classifier;
};

/// One bucket of a limit: the key is empty for a limit without `by`.
struct LimitKey {
  LimitIndex limit = 0;
  FlowKey key;

  friend bool operator==(const LimitKey&, const LimitKey&) = default;
};

/// Bytes of a cluster limit that this host may spend: they were paid for elsewhere.
struct Grant {
  LimitKey to;
  ByteCount bytes;      ///< added to what is left of earlier grants
  Instant valid_until;  ///< then nothing is left
  DataRate pace;        ///< they leave no faster than this
};

/// What a bucket of a cluster limit wants, for whoever asks for grants.
struct Demand {
  LimitKey from;
  ByteCount arrived;  ///< wire bytes since the bucket exists: what was wanted
  ByteCount spent;    ///< wire bytes charged since then
  ByteCount waiting;  ///< wire bytes that are held for want of credit
  ByteCount left;     ///< of the grants
  ByteCount debt{};   ///< charged beyond them: later ones pay it first
};

/// What a cluster limit without `by` has of its grants, between packets: enough to go on with it elsewhere.
struct WalletState {
  LimitIndex limit = 0;
  ByteCount left, debt, largest;  ///< as in Wallet
  DataRate pace;
  ByteCount frame;                     ///< the largest that it has seen, or one full frame
  std::uint64_t credit_nanobits = 0;   ///< at its pace
  std::optional<Instant> valid_until;  ///< absent: nothing was granted yet
  bool refuses = false;

  friend bool operator==(const WalletState&, const WalletState&) = default;
};

class Shaper {
 public:
  Shaper(PreparedPolicy prepared, StartCredit credit, HashKey key, Instant now);
  Shaper(Shaper&&) noexcept;
  Shaper& operator=(Shaper&&) noexcept;
  ~Shaper();

  /// A packet arrived. `out` gets its verdict if that is known now, and those of others that depart or lose with it.
  void on_packet(const Packet& packet, Instant now, Verdicts& out);

  /// Time has passed: everything that may depart by `now` does.
  void release(Instant now, Verdicts& out);

  /// When release() has something to do next; nothing if nothing waits.
  [[nodiscard]] std::optional<Instant> next_departure() const;

  /// The accepted packets of all calls so far have left by `at`. Optional: without it they left when they were told to.
  /// With it the rate law holds for real departures, also where the driver was late in carrying out a decision.
  void on_departed(Instant at);

  /// The driver has read its queues dry after all detours were sent: none is on its way any more.
  void on_queues_dry();

  /// The kernel had cleared the packet of this accepted or dropped verdict. Its class is one of the policy in force.
  void on_lost(const Verdict& verdict);

  /// The link's largest IP packet has changed.
  void set_mtu(LinkIndex link, std::uint32_t mtu);

  /// Obeys another policy from now on. Counters, flows and credit stay where link and class keep their names; held
  /// packets go to the class that their flow has now, in order. Returns which class follows each of the policy before,
  /// with its counters.
  std::vector<std::optional<ClassIndex>> swap(PreparedPolicy prepared, Instant now, Verdicts& out);

  /// Writes down everything that another process needs to go on with the same policy and key. This one must not be told
  /// of packets any more.
  void save(ImageWriter& image, Instant now);

  /// Goes on in the place of the one that wrote the image. Nothing: it cannot be read.
  [[nodiscard]] static std::optional<Shaper> restore(PreparedPolicy prepared, HashKey key, ImageReader& image,
                                                     Instant now, Verdicts& out);

  /// A cluster limit has got something to spend. Until the first grant nothing of it passes. A grant for a bucket that
  /// is gone is ignored.
  void on_grant(const Grant& grant, Instant now, Verdicts& out);

  /// Takes back up to `bytes` of what is left: they were given to somebody else. Returns what was there.
  [[nodiscard]] ByteCount take_back(const LimitKey& from, ByteCount bytes, Instant now);

  /// While on, the bucket's packets are dropped, those that are held too.
  void refuse(const LimitKey& at, bool on, Instant now, Verdicts& out);

  /// Appends the demand of every bucket of cluster limits that exists.
  void demand(Instant now, std::vector<Demand>& demands) const;
  /// That of one; nothing: it is gone.
  [[nodiscard]] std::optional<Demand> demand(const LimitKey& from, Instant now) const;
  /// Appends the buckets of cluster limits that packets came to since the last call: the others want nothing new.
  void stirred(std::vector<LimitKey>& buckets);

  /// One for each cluster limit without `by`. The buckets of the others come and go with their flows.
  [[nodiscard]] std::vector<WalletState> wallets(Instant now) const;
  /// Goes on with it. Meant for a core that was told of no packet yet.
  void set_wallet(const WalletState& wallet, Instant now);

  /// Appends the flows whose owner is to be found out, where the policy says that somebody does so: of a new flow, and
  /// again now and then. To be asked after the other calls.
  void owners_wanted(std::vector<FlowKey>& flows);
  /// Who sends the flow. It moves to the class and the buckets that this gives it, with its held packets, in order.
  /// Until then, but for 20 ms at most, it obeys the strictest class that it may belong to. A flow that is gone is
  /// ignored.
  void on_owner(const FlowKey& flow, const Owner& owner, Instant now, Verdicts& out);

  /// Lets everything go unmetered, in order of arrival inside each flow.
  void pass_all(Instant now, Verdicts& out);

  /// Which class a packet gets by the policy, and which of its `match` tables held (absent: the class matches all, or
  /// by default); and the guard that it gets instead while its flow is sparse.
  struct Explanation {
    ClassIndex class_index = 0;
    std::optional<std::size_t> match;
    std::optional<ClassIndex> guard;
  };
  [[nodiscard]] Explanation explain(const Packet& packet) const;

  /// The flow of such packets, and why it is no faster; nothing: none was seen lately.
  [[nodiscard]] std::optional<HoldSnapshot> hold(const Packet& packet, Instant now) const;

  [[nodiscard]] CoreSnapshot snapshot(Instant now) const;

  /// The same with one class only.
  [[nodiscard]] CoreSnapshot snapshot(ClassIndex of_class, Instant now) const;

  /// The same in pieces: links, limits and totals come with the first call, then about `budget` classes with each.
  void snapshot(ClassCursor& cursor, std::size_t budget, Instant now, CoreSnapshot& snapshot) const;

  /// Appends about `budget` flows to `flows` and moves the cursor; flows that come or go meanwhile may be missed.
  void flows(FlowCursor& cursor, std::size_t budget, Instant now, std::vector<FlowSnapshot>& flows) const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace shaper
