// Drives the core with the kernel's packets: reads the queues, tells the core the time, sends its verdicts.
//
// The clock is read once for a batch of packets. Verdicts are flushed at the end of every batch and of every wake-up,
// so none waits for the next packet. How often the timer wakes it is bounded (wake_pace.h): the buckets keep what that
// costs. Nothing in here throws once it runs, and every error is counted.
//
// A packet that tells of congestion is sent through its hook again with our mark bit, and our first rules there set CE,
// clear the bit and accept it (model/rules.h). One that comes back here with the bit has met no such rule: it was
// charged already, so it goes, with the bit cleared.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "shaper/core/shaper.h"
#include "shaper/live/event_loop.h"
#include "shaper/live/nfqueue.h"
#include "shaper/live/timer.h"
#include "shaper/live/verdict_code.h"
#include "shaper/live/wake_pace.h"
#include "shaper/model/event_log.h"
#include "shaper/model/rules.h"

namespace shaper {

class PacketLoop {
 public:
  struct QueueCounters {
    std::uint64_t split_packets = 0;
    std::uint64_t lost_verdicts = 0;
  };
  struct Counters {
    std::uint64_t truncated_messages = 0;
    std::uint64_t unknown_messages = 0;
    std::uint64_t other_errors = 0;  ///< error replies that are not ENOENT
    std::optional<int> latest_error;
    std::uint64_t unmarked_packets = 0;  ///< came back without CE: the rules that set it are not there
    std::optional<Instant> latest_unmarked;
  };

  PacketLoop(EventLoop& loop, NfqueueSocket socket)
      : loop_(loop), timer_(loop, [this] { on_timer(); }), socket_(std::move(socket)) {}

  /// Binds the two queues of a link, the split one first. Throws std::system_error; a refusal is returned.
  [[nodiscard]] tl::expected<void, BindRefusal> bind(const QueuePair& queues);
  /// Goes on with the two queues of a link that the socket has bound already.
  void adopt(const QueuePair& queues);
  /// The packets up to these, one for each queue, have got their verdicts from somebody else.
  void skip(std::vector<PacketId> released) { released_ = std::move(released); }
  /// The links that the bound queues belong to from now on. A queue that is not named lets its packets pass unmetered:
  /// rules may still lead to it.
  void assign(std::span<const QueuePair> queues);

  /// Starts to read, for `shaper`, which obeys `policy` and has decided `due` already. Call once, after the first
  /// bind().
  void drive(Shaper& shaper, const Policy& policy, Verdicts due = {});
  /// Reads no more, for another process goes on.
  void stop();
  /// Counters and what is on its way (core/image.h).
  template <typename Image>
  void carry(Image& image);

  /// Calls of the core that come from elsewhere go through here, so that their verdicts are sent and logged.
  void swap(PreparedPolicy prepared, std::string_view policy_text, std::span<const event::Name> names);
  void set_mtu(LinkIndex link, std::uint32_t mtu);
  void grant(const Grant& grant);
  [[nodiscard]] ByteCount take_back(const LimitKey& from, ByteCount bytes);
  void refuse(const LimitKey& at, bool on);
  void tell_owner(const FlowKey& flow, const Owner& owner);
  /// Lets everything go that is held or waits to be read.
  void pass_all();

  /// From now on every call and verdict is appended to `text`, or to nothing.
  void log_to(EventLog* log) { log_ = log; }

  [[nodiscard]] const Counters& counters() const { return counters_; }
  [[nodiscard]] QueueCounters queue_counters(std::uint16_t number) const;
  [[nodiscard]] const NfqueueSocket& socket() const { return socket_; }

 private:
  struct Role {
    std::uint16_t number = 0;
    std::optional<LinkIndex> link;
    QueueKind kind = QueueKind::fast;
    std::uint16_t split = 0;  // the link's split queue
    QueueCounters counters;
  };

  void obey(const Policy& policy);
  void on_readable();
  void on_timer();
  void release_due(Instant now);
  [[nodiscard]] Received read_batch(Instant now);
  void on_packet(const QueuedPacket& queued, Instant now);
  [[nodiscard]] bool was_released(PacketId id);
  void on_unmarked(const QueuedPacket& queued, Instant now);
  void on_error(const ErrorReply& reply, Instant now);
  void send_verdicts();
  void settle(Instant now);
  void put(const Verdict& verdict);
  void read_dry(Instant now);
  void flush();
  void arm_timer();
  [[nodiscard]] Role* role_of(std::uint16_t number);

  EventLoop& loop_;
  Timer timer_;
  Shaper* shaper_ = nullptr;  // the one that is driven; until then nothing is read
  NfqueueSocket socket_;
  std::vector<Role> roles_;
  std::vector<PacketId> released_;
  Verdicts verdicts_;
  VerdictBuffer buffer_;
  VerdictCode code_;
  WakePace pace_;
  std::uint32_t mark_bit_ = 0;  // where the policy tells of congestion
  bool detours_sent_ = false;   // since the queues were last read dry
  bool passing_ = false;        // everything goes at once
  EventLog* log_ = nullptr;
  Counters counters_;
};

template <typename Image>
void PacketLoop::carry(Image& image) {
  image(released_, detours_sent_, counters_);
  socket_.carry(image);
  code_.carry(image);
  std::size_t count = roles_.size();
  image(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t number = Image::kReads ? 0 : roles_[i].number;
    image(number);
    Role* const role = role_of(number);
    QueueCounters counters = role == nullptr ? QueueCounters{} : role->counters;
    image(counters);
    if (role != nullptr) role->counters = counters;
  }
}

}  // namespace shaper
