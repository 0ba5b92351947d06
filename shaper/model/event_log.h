// The event log: every call of the core and what came of it, one line of text each (docs/event-log.md).
//
// The lines of the calls are enough to repeat them: a log replayed gives the same verdicts, to the last one. Times are
// nanoseconds of the core's clock. Writing appends to a string and allots nothing once that has grown. Reading trusts
// nothing: it takes a line apart and says what is wrong with it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

#include "shaper/core/policy.h"
#include "shaper/core/shaper.h"
#include "shaper/core/verdict.h"

namespace shaper {

namespace event {

/// The text of the policy, as it was written, for `Shaper`'s constructor.
struct PolicyText {
  std::string text;
};

/// A name that the policy uses, and the number that it stood for where the log was written.
struct Name {
  enum class Kind : std::uint8_t { user, group };
  Kind kind = Kind::user;
  std::string name;
  std::uint32_t number = 0;
};

/// The guarded ports of the policy that follows; without this line there are none.
struct GuardPorts {
  std::vector<std::uint16_t> ports;
};

/// Owners are found out under the policy that follows.
struct FindsOwners {};

/// A live limit of the policy that follows.
struct Live {
  std::uint64_t id = 0;
  DataRate rate;
  std::string selector;
};

/// The largest IP packet of a link when the log begins.
struct Mtu {
  LinkIndex link = 0;
  std::uint32_t bytes = 0;
};

/// The core was made.
struct Start {
  StartCredit credit = StartCredit::full;
  std::optional<HashKey> key;  ///< absent: of no consequence
};

/// What a cluster limit has of its grants when the log begins.
struct Granting {
  WalletState wallet;
};

struct Arrival {
  Packet packet;
};
struct Release {};
struct QueuesDry {};
/// What was accepted so far has left.
struct Departed {};
struct Swap {
  std::string policy_text;
};
struct MtuChange {
  LinkIndex link = 0;
  std::uint32_t bytes = 0;
};
struct Lost {
  Verdict verdict;
};
struct PassAll {};
/// A cluster limit has got something to spend.
struct Granted {
  Grant grant;
};
struct TakenBack {
  LimitKey from;
  ByteCount bytes;  ///< asked for; what was there follows from the log
};

/// A cluster limit drops everything from now on, or no more.
struct Refused {
  LimitKey at;
  bool on = false;
};

/// Who sends a flow.
struct Owned {
  FlowKey flow;
  Owner owner;
};

/// A verdict that the call before it gave.
struct Outcome {
  Verdict verdict;
};

/// The reader of a live log was too slow: this many lines are missing here.
struct Skipped {
  std::uint64_t lines = 0;
};

using Body =
    std::variant<PolicyText, Name, GuardPorts, FindsOwners, Live, Mtu, Start, Granting, Arrival, Release, QueuesDry,
                 Departed, Swap, MtuChange, Lost, PassAll, Granted, TakenBack, Refused, Owned, Outcome, Skipped>;

}  // namespace event

/// The first line of a log.
inline constexpr std::string_view kFirstEventLine = "shaper events 1";

/// One line. `at` is zero where the line has no time.
struct Event {
  Instant at;
  event::Body body;
};

/// Takes one line apart (without its line feed; not the first line of a log). The error is a sentence.
[[nodiscard]] tl::expected<Event, std::string> parse_event(std::string_view line);

/// Verdicts are the same if all that is meant is: the reason only for drops.
[[nodiscard]] bool same_verdict(const Verdict& a, const Verdict& b);

/// `verdict` as its line says it, behind the time. `class_name` is for the eyes only.
[[nodiscard]] std::string describe_verdict(const Verdict& verdict, std::string_view class_name);

/// Appends events to a string that the caller owns, empties and writes somewhere.
class EventLog {
 public:
  explicit EventLog(std::string& text) : text_(text) {}

  /// The lines that a log begins with. `mtus` has one for each link of `policy`, `names` the numbers of the users and
  /// groups that its text names.
  void begin(Instant now, const event::Start& start, const Policy& policy, std::string_view policy_text,
             std::span<const event::Name> names, std::span<const std::uint32_t> mtus);

  /// A line of the head behind those of begin().
  void wallet(const WalletState& wallet);

  void arrival(Instant now, const Packet& packet);
  void release(Instant now);
  void queues_dry(Instant now);
  void departed(Instant at);
  void swap(Instant now, const Policy& policy, std::string_view policy_text, std::span<const event::Name> names);
  void mtu(Instant now, LinkIndex link, std::uint32_t bytes);
  void lost(Instant now, const Verdict& verdict);
  void pass_all(Instant now);
  void grant(Instant now, const Grant& grant);
  void take_back(Instant now, const LimitKey& from, ByteCount bytes);
  void refuse(Instant now, const LimitKey& at, bool on);
  void owner(Instant now, const FlowKey& flow, const Owner& owner);
  void outcomes(Instant now, std::span<const Verdict> verdicts);
  void skipped(std::uint64_t lines);

 private:
  void in_front_of(const Policy& policy, std::span<const event::Name> names);
  void limit(const LimitKey& of);
  void verdict(Instant now, std::string_view before, const Verdict& verdict);

  std::string& text_;
  std::vector<std::string> class_names_;
  std::vector<std::string> limit_names_;
};

}  // namespace shaper
