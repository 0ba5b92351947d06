// One netlink socket to NFQUEUE: binds queues, reads packets, sends verdicts. It decides nothing.
//
// All queues of one link are bound on one socket: a detour puts a packet into the other queue at once, behind
// everything that was read so far. A verdict is carried out inside send(): the rest of the packet's way through the
// kernel, the driver too, runs there. Opening and binding throw std::system_error with the call's name; receiving and
// sending never throw. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "shaper/core/packet.h"
#include "shaper/live/fd.h"
#include "shaper/live/nfqueue_wire.h"

namespace shaper {

/// The pairs of queues that a daemon tries begin at an unusual number: 0 and its neighbours are what other programs
/// take without thinking.
inline constexpr std::uint16_t kFirstQueue = 41'200;
inline constexpr int kPairsTried = 256;

/// Packets that the kernel may hold per queue. Its own bound is 65,536 (two per hash bucket); at the bound it drops
/// without telling why, so ours is lower and the core's lower still.
inline constexpr std::uint32_t kQueueLength = 49'152;

/// Captured of each packet: IPv6, some extension headers and TCP with all options.
inline constexpr std::uint32_t kCopyBytes = 128;

/// The kernel's memory for messages that we have not read yet. A header-only message is charged 832 bytes.
struct ReceiveBuffer {
  ByteCount granted;    ///< as the kernel counts: it doubles what is asked for
  bool forced = false;  ///< false: without CAP_NET_ADMIN outside the namespace; bounded by net.core.rmem_max
};

/// A queue that is ours now.
struct BoundQueue {
  std::uint16_t number = 0;
  bool owners = false;  ///< false: this kernel does not tell users and groups
};

/// Why a queue could not be bound.
struct BindRefusal {
  enum class Reason : std::uint8_t { taken, no_permission };
  Reason reason = Reason::taken;
  std::uint16_t number = 0;
  std::optional<std::uint32_t> owner;  ///< netlink port id (mostly the process id) of who has it, where known

  /// "queue 7 belongs to another process (port id 1234)", or the capability that is missing.
  [[nodiscard]] std::string text() const;
};

/// What one receive() found.
struct Received {
  std::size_t messages = 0;
  bool dry = false;  ///< nothing was left to read
};

struct SocketCounters {
  std::uint64_t overruns = 0;          ///< ENOBUFS: the kernel could not deliver a message
  std::uint64_t receive_failures = 0;  ///< any other error
  std::uint64_t strangers = 0;         ///< datagrams that the kernel did not send
  std::uint64_t send_failures = 0;     ///< sends that did nothing
  std::error_code last_error;          ///< of any of these
};

class NfqueueSocket {
 public:
  /// Opens the socket, non-blocking. Throws std::system_error.
  NfqueueSocket();
  /// Goes on with a socket that was opened by another process of ours, and with the queues that are bound on it.
  explicit NfqueueSocket(Fd opened);
  NfqueueSocket(NfqueueSocket&&) noexcept;
  NfqueueSocket& operator=(NfqueueSocket&&) noexcept;
  ~NfqueueSocket();

  /// Binds queue `number` and waits for the kernel's word (a second at most). Rules may already lead to it: packets
  /// that come meanwhile are kept for the next receive(), so call that once after the last bind(), whatever poll says.
  /// Bind a link's split queue before its fast one. Throws std::system_error for what is no BindRefusal.
  [[nodiscard]] tl::expected<BoundQueue, BindRefusal> bind(std::uint16_t number, QueueKind kind,
                                                           std::uint32_t length = kQueueLength);

  /// From now on the kernel accepts what comes for the queue; what it holds still waits for verdicts. The way to end
  /// without losing a packet while rules lead here. False: the kernel refused.
  [[nodiscard]] bool let_through(std::uint16_t number);

  /// Gives the queue back; the kernel drops what it still holds.
  void unbind(std::uint16_t number);

  /// Gives everything that the socket's queues hold one verdict: drop in the queues of `blocked`, accept in all others.
  /// Returns the last packet of each queue that this reached; what came later waits as before. For the death of who
  /// would have given the verdicts.
  [[nodiscard]] std::vector<PacketId> release_all(std::span<const std::uint16_t> blocked) const;

  /// The kernel's table of the queues of this network namespace as it is now, for parse_queue_table(); empty if /proc
  /// does not tell.
  [[nodiscard]] std::string kernel_table() const;

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] std::uint32_t port() const { return port_; }
  [[nodiscard]] ReceiveBuffer receive_buffer() const { return receive_buffer_; }
  [[nodiscard]] const SocketCounters& counters() const { return counters_; }
  /// Counters (core/image.h).
  template <typename Image>
  void carry(Image& image) {
    image(counters_.overruns, counters_.receive_failures, counters_.strangers, counters_.send_failures);
  }

  /// Reads up to 64 messages (and those kept by bind()) and calls visit(const NfqueueMessage&) for each, in order. A
  /// packet's payload is valid inside that call only.
  template <typename Visit>
  Received receive(Visit&& visit) {
    const std::vector<std::vector<std::uint8_t>> early = std::exchange(early_, {});
    for (const std::vector<std::uint8_t>& bytes : early) visit(parse_nfqueue_message(bytes));
    Received received = read_datagrams();
    for (std::size_t i = 0; i < received.messages; ++i) {
      if (const std::optional<std::span<const std::uint8_t>> bytes = datagram(i)) visit(parse_nfqueue_message(*bytes));
    }
    received.messages += early.size();
    return received;
  }

  /// Sends and clears. False: the kernel took none of them and they are still in the buffer (out of memory: try again).
  /// A verdict that fails by itself is told later, by an ErrorReply; without the privilege one reply stands for the
  /// whole send.
  [[nodiscard]] bool send(VerdictBuffer& verdicts);

 private:
  struct Buffers;

  Received read_datagrams();
  [[nodiscard]] std::optional<std::span<const std::uint8_t>> datagram(std::size_t i);
  /// Sends and waits for the answer: an errno, 0 for success. Keeps what else comes in `early_`.
  int ask(const ConfigMessage& message, std::uint32_t sequence);
  std::optional<int> find_answer(std::uint32_t sequence);

  Fd fd_;
  Fd table_;  // opened at once: a confined process may not
  std::uint32_t port_ = 0;
  ReceiveBuffer receive_buffer_;
  SocketCounters counters_;
  std::unique_ptr<Buffers> buffers_;
  std::vector<std::vector<std::uint8_t>> early_;  ///< came while an answer was awaited
  std::uint32_t config_sequence_ = 0;
};

/// Whether we may bind queues here (CAP_NET_ADMIN in the user namespace of this network namespace), found by trying.
/// Throws std::system_error, also when this kernel has no NFQUEUE.
[[nodiscard]] bool probe_permission();

}  // namespace shaper
