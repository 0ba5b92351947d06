// The bytes between the kernel's NFQUEUE and us: what it sends, read; what we send, written. No system call in here.
//
// Reading is our own: libnetfilter_queue 1.0.5 drops attributes that it does not know, and a length that lies must not
// lead past the buffer. The kernel puts one message into one datagram (net/netfilter/nfnetlink_queue.c), its last
// attribute may have an unaligned length, and the order of attributes is not promised. Writing uses libmnl and
// nfq_nlmsg_*. Numbers in the structures here are in host order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "shaper/core/packet.h"

namespace shaper {

/// A packet that waits for a verdict.
struct QueuedPacket {
  PacketId id;
  std::uint8_t hook = 0;            ///< NF_INET_LOCAL_IN, ...
  bool super = false;               ///< GSO: several segments in one
  bool checksum_not_ready = false;  ///< the checksum is still to be filled in by the kernel or the device
  bool truncated = false;           ///< the datagram was cut; what could not be read is as if absent
  std::uint32_t mark = 0;
  std::uint32_t in_interface = 0;   ///< index; 0 if the packet came from this machine
  std::uint32_t out_interface = 0;  ///< index; 0 where none is known yet
  std::optional<std::uint32_t> user, group;
  std::uint32_t ip_bytes = 0;             ///< length of the whole packet, captured or not
  std::span<const std::uint8_t> payload;  ///< its first bytes, inside the datagram
};

/// The kernel's answer to one of our messages. Verdicts are answered only when they fail.
struct ErrorReply {
  int error = 0;                   ///< errno; 0 acknowledges
  std::uint32_t sequence = 0;      ///< of the message that is answered
  bool config = false;             ///< it was a configuration message
  std::uint16_t queue = 0;         ///< 0 in an acknowledgement, which echoes no more than the sequence
  std::optional<PacketId> packet;  ///< the packet of a failed verdict
};

/// Anything else, and what is too short to be anything.
struct UnknownMessage {
  std::uint16_t type = 0;
};

using NfqueueMessage = std::variant<QueuedPacket, ErrorReply, UnknownMessage>;

/// Reads one datagram. The payload of a packet points into it.
[[nodiscard]] NfqueueMessage parse_nfqueue_message(std::span<const std::uint8_t> datagram);

/// The packet as the core sees it; link and queue are for the caller to say.
[[nodiscard]] Packet packet_from(const QueuedPacket& queued);

/// Verdicts on their way to the kernel, in one send: packing 8 to 64 gets nearly all that packing can give. They ask
/// for no acknowledgement. The sequence number comes back in the ErrorReply of a verdict that failed.
class VerdictBuffer {
 public:
  static constexpr std::size_t kCapacity = 64;

  // None of these may be called when full().
  void accept(PacketId id, std::uint32_t sequence);
  void drop(PacketId id, std::uint32_t sequence);
  /// Into another queue of this network namespace, at its end and with another number; accepted if nobody listens
  /// there.
  void detour(PacketId id, std::uint16_t queue, std::uint32_t sequence);
  /// Gives the packet the fwmark, all 32 bits of it, and lets it run through the same hook again, from its first rule
  /// on.
  void repeat(PacketId id, std::uint32_t fwmark, std::uint32_t sequence);
  /// Gives the packet the fwmark and accepts it.
  void accept_with(PacketId id, std::uint32_t fwmark, std::uint32_t sequence);

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] bool full() const { return size_ == kCapacity; }
  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return std::span(bytes_).first(used_); }
  void clear() { size_ = used_ = 0; }

 private:
  static constexpr std::size_t kLongestMessage = 40;  // netlink 16, nfnetlink 4, attributes: verdict 12, mark 8

  void append(PacketId id, std::uint32_t verdict, std::optional<std::uint32_t> fwmark, std::uint32_t sequence);

  alignas(4) std::array<std::uint8_t, kCapacity * kLongestMessage> bytes_;
  std::size_t size_ = 0;  // verdicts
  std::size_t used_ = 0;  // bytes of them
};

/// One verdict on everything that a queue holds up to a packet's number. It asks for no acknowledgement.
class VerdictOnAll {
 public:
  VerdictOnAll(PacketId last, bool accept, std::uint32_t sequence);
  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return bytes_; }

 private:
  alignas(4) std::array<std::uint8_t, 32> bytes_{};  // netlink 16, nfnetlink 4, verdict 12
};

/// How the kernel shall treat a queue.
struct QueueConfig {
  std::uint16_t number = 0;
  std::uint32_t length = 0;      ///< packets that may wait; more are dropped
  std::uint32_t copy_bytes = 0;  ///< of each packet
  bool super_packets = false;    ///< GSO packets stay whole
  bool owners = false;           ///< tell user and group of the sending socket
};

/// A message of ours that asks for an acknowledgement.
class ConfigMessage {
 public:
  /// Everything in one message: between a bind and its parameters the kernel would drop packets and count none.
  [[nodiscard]] static ConfigMessage bind(const QueueConfig& config, std::uint32_t sequence);
  /// The queue holds no further packet: the kernel accepts them at once (no room, and fail-open). What is held stays.
  [[nodiscard]] static ConfigMessage let_through(std::uint16_t number, std::uint32_t sequence);
  /// Releases the queue; the kernel drops what it holds.
  [[nodiscard]] static ConfigMessage unbind(std::uint16_t number, std::uint32_t sequence);
  /// Does nothing, but needs the same privilege as the others (PF_BIND, without effect since Linux 3.8).
  [[nodiscard]] static ConfigMessage nothing(std::uint32_t sequence);

  [[nodiscard]] std::span<const std::uint8_t> bytes() const;

 private:
  ConfigMessage() = default;

  alignas(4) std::array<std::uint8_t, 128> bytes_{};
};

/// One line of /proc/net/netfilter/nfnetlink_queue. Not counted by the kernel: packets that it cleared because a base
/// chain or an interface went away, and packets that came before the queue had parameters.
struct KernelQueueCounters {
  std::uint16_t number = 0;
  std::uint32_t port = 0;            ///< netlink port id of the owner
  std::uint32_t held = 0;            ///< packets that wait for a verdict
  std::uint32_t queue_dropped = 0;   ///< the queue was full
  std::uint32_t socket_dropped = 0;  ///< the socket was full
  std::uint32_t last_id = 0;         ///< the number given last

  friend bool operator==(const KernelQueueCounters&, const KernelQueueCounters&) = default;
};

/// The lines of that file; one that cannot be read is left out.
[[nodiscard]] std::vector<KernelQueueCounters> parse_queue_table(std::string_view text);

/// The line of queue `number`; nothing if nobody has bound it.
[[nodiscard]] std::optional<KernelQueueCounters> parse_queue_counters(std::string_view text, std::uint16_t number);

}  // namespace shaper
