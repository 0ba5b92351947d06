#include "shaper/live/nfqueue_wire.h"

// In this order: linux/netfilter.h defines again what netinet/in.h has, unless it comes second.
// clang-format off
#include <netinet/in.h>
#include <linux/netfilter.h>
#include <libmnl/libmnl.h>
#include <libnetfilter_queue/libnetfilter_queue.h>
// clang-format on

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <charconv>

#include "shaper/live/netlink_bytes.h"

namespace shaper {
namespace {

using namespace netlink;

constexpr std::uint16_t kPacketType = NFNL_SUBSYS_QUEUE << 8 | NFQNL_MSG_PACKET;
constexpr std::uint16_t kConfigType = NFNL_SUBSYS_QUEUE << 8 | NFQNL_MSG_CONFIG;

std::optional<std::uint32_t> read_number(Bytes value) {
  if (value.size() < sizeof(std::uint32_t)) return std::nullopt;
  return ntohl(read<std::uint32_t>(value));
}

/// Fills what one attribute tells. True if it is the packet's number.
bool read_attribute(int type, Bytes value, std::size_t claimed, QueuedPacket& packet) {
  switch (type) {
    case NFQA_PACKET_HDR: {
      if (value.size() < sizeof(nfqnl_msg_packet_hdr)) return false;
      const auto header = read<nfqnl_msg_packet_hdr>(value);
      packet.id.number = ntohl(header.packet_id);
      packet.hook = header.hook;
      return true;
    }
    case NFQA_MARK:
      packet.mark = read_number(value).value_or(0);
      break;
    case NFQA_IFINDEX_INDEV:
      packet.in_interface = read_number(value).value_or(0);
      break;
    case NFQA_IFINDEX_OUTDEV:
      packet.out_interface = read_number(value).value_or(0);
      break;
    case NFQA_SKB_INFO: {
      const std::uint32_t info = read_number(value).value_or(0);
      packet.super = (info & NFQA_SKB_GSO) != 0;
      packet.checksum_not_ready = (info & NFQA_SKB_CSUMNOTREADY) != 0;
      break;
    }
    case NFQA_UID:
      packet.user = read_number(value);
      break;
    case NFQA_GID:
      packet.group = read_number(value);
      break;
    case NFQA_PAYLOAD:
      packet.payload = value;
      packet.ip_bytes = std::max(packet.ip_bytes, static_cast<std::uint32_t>(claimed));
      break;
    case NFQA_CAP_LEN:  // there only if the payload is not the whole packet
      packet.ip_bytes = std::max(packet.ip_bytes, read_number(value).value_or(0));
      break;
    default:
      break;
  }
  return false;
}

NfqueueMessage parse_packet(Bytes body, bool truncated) {
  const UnknownMessage unreadable{kPacketType};
  if (body.size() < sizeof(nfgenmsg)) return unreadable;
  QueuedPacket packet;
  packet.id.queue = ntohs(read<nfgenmsg>(body).res_id);
  packet.truncated = truncated;
  bool has_number = false;
  for_each_attribute(body.subspan(sizeof(nfgenmsg)), [&](int type, Bytes value, std::size_t claimed) {
    has_number |= read_attribute(type, value, claimed, packet);
  });
  if (!has_number) return unreadable;
  return packet;
}

/// The body of an answer: errno, then the header of the message that it answers, then (errors only) that message's
/// body.
NfqueueMessage parse_error(Bytes body) {
  constexpr std::size_t kFixed = sizeof(nlmsgerr);
  if (body.size() < kFixed) return UnknownMessage{NLMSG_ERROR};
  const auto answer = read<nlmsgerr>(body);
  ErrorReply reply;
  // The kernel's errors are -1 to -4095; anything else is no errno.
  reply.error = answer.error <= 0 && answer.error >= -4095 ? -answer.error : EPROTO;
  reply.sequence = answer.msg.nlmsg_seq;
  reply.config = answer.msg.nlmsg_type == kConfigType;
  const Bytes echoed = body.subspan(kFixed);
  if (answer.error == 0 || echoed.size() < sizeof(nfgenmsg)) return reply;
  reply.queue = ntohs(read<nfgenmsg>(echoed).res_id);
  for_each_attribute(echoed.subspan(sizeof(nfgenmsg)), [&](int type, Bytes value, std::size_t) {
    if (reply.config || type != NFQA_VERDICT_HDR || value.size() < sizeof(nfqnl_msg_verdict_hdr)) return;
    reply.packet = PacketId{reply.queue, ntohl(read<nfqnl_msg_verdict_hdr>(value).id)};
  });
  return reply;
}

}  // namespace

NfqueueMessage parse_nfqueue_message(std::span<const std::uint8_t> datagram) {
  if (datagram.size() < sizeof(nlmsghdr)) return UnknownMessage{};
  const auto header = read<nlmsghdr>(datagram);
  if (header.nlmsg_len < sizeof header) return UnknownMessage{header.nlmsg_type};
  const Bytes body = first(datagram, header.nlmsg_len).subspan(sizeof header);
  switch (header.nlmsg_type) {
    case kPacketType:
      return parse_packet(body, header.nlmsg_len > datagram.size());
    case NLMSG_ERROR:
      return parse_error(body);
    default:
      return UnknownMessage{header.nlmsg_type};
  }
}

Packet packet_from(const QueuedPacket& queued) {
  Packet packet;
  packet.id = queued.id;
  packet.super = queued.super;
  packet.headers = parse_headers(queued.payload);
  packet.about = parse_error_about(queued.payload, packet.headers);
  packet.ip_bytes = queued.ip_bytes;
  packet.mark = queued.mark;
  packet.user = queued.user;
  packet.group = queued.group;
  return packet;
}

void VerdictBuffer::accept(PacketId id, std::uint32_t sequence) {
  append(id, NF_ACCEPT, std::nullopt, sequence);
}

void VerdictBuffer::drop(PacketId id, std::uint32_t sequence) {
  append(id, NF_DROP, std::nullopt, sequence);
}

void VerdictBuffer::detour(PacketId id, std::uint16_t queue, std::uint32_t sequence) {
  append(id, NF_QUEUE | NF_VERDICT_FLAG_QUEUE_BYPASS | std::uint32_t{queue} << 16, std::nullopt, sequence);
}

void VerdictBuffer::repeat(PacketId id, std::uint32_t fwmark, std::uint32_t sequence) {
  append(id, NF_REPEAT, fwmark, sequence);
}

void VerdictBuffer::accept_with(PacketId id, std::uint32_t fwmark, std::uint32_t sequence) {
  append(id, NF_ACCEPT, fwmark, sequence);
}

void VerdictBuffer::append(PacketId id, std::uint32_t verdict, std::optional<std::uint32_t> fwmark,
                           std::uint32_t sequence) {
  assert(!full());
  char* const place = reinterpret_cast<char*>(bytes_.data() + used_);
  nlmsghdr* const message = nfq_nlmsg_put(place, NFQNL_MSG_VERDICT, id.queue);
  message->nlmsg_seq = sequence;
  nfq_nlmsg_verdict_put(message, static_cast<int>(id.number), static_cast<int>(verdict));
  if (fwmark) nfq_nlmsg_verdict_put_mark(message, *fwmark);
  assert(message->nlmsg_len <= kLongestMessage);
  used_ += message->nlmsg_len;  // a multiple of four: all parts of it are
  ++size_;
}

VerdictOnAll::VerdictOnAll(PacketId last, bool accept, std::uint32_t sequence) {
  nlmsghdr* const message = nfq_nlmsg_put(reinterpret_cast<char*>(bytes_.data()), NFQNL_MSG_VERDICT_BATCH, last.queue);
  message->nlmsg_seq = sequence;
  nfq_nlmsg_verdict_put(message, static_cast<int>(last.number), accept ? NF_ACCEPT : NF_DROP);
  assert(message->nlmsg_len == bytes_.size());
}

namespace {

nlmsghdr* begin_config(std::span<std::uint8_t> bytes, std::uint16_t number, std::uint32_t sequence) {
  nlmsghdr* const message = nfq_nlmsg_put(reinterpret_cast<char*>(bytes.data()), NFQNL_MSG_CONFIG, number);
  message->nlmsg_flags |= NLM_F_ACK;
  message->nlmsg_seq = sequence;
  return message;
}

nlmsghdr* begin_command(std::span<std::uint8_t> bytes, std::uint16_t number, std::uint8_t command,
                        std::uint32_t sequence) {
  nlmsghdr* const message = begin_config(bytes, number, sequence);
  nfq_nlmsg_cfg_put_cmd(message, AF_UNSPEC, command);
  return message;
}

}  // namespace

ConfigMessage ConfigMessage::bind(const QueueConfig& config, std::uint32_t sequence) {
  constexpr std::uint32_t kOurs = NFQA_CFG_F_GSO | NFQA_CFG_F_UID_GID;
  const std::uint32_t flags = (config.super_packets ? NFQA_CFG_F_GSO : 0U) | (config.owners ? NFQA_CFG_F_UID_GID : 0U);
  ConfigMessage made;
  nlmsghdr* const message = begin_command(made.bytes_, config.number, NFQNL_CFG_CMD_BIND, sequence);
  nfq_nlmsg_cfg_put_params(message, NFQNL_COPY_PACKET, static_cast<int>(config.copy_bytes));
  nfq_nlmsg_cfg_put_qmaxlen(message, config.length);
  mnl_attr_put_u32(message, NFQA_CFG_FLAGS, htonl(flags));
  mnl_attr_put_u32(message, NFQA_CFG_MASK, htonl(kOurs));
  assert(message->nlmsg_len <= made.bytes_.size());
  return made;
}

ConfigMessage ConfigMessage::let_through(std::uint16_t number, std::uint32_t sequence) {
  ConfigMessage made;
  nlmsghdr* const message = begin_config(made.bytes_, number, sequence);
  nfq_nlmsg_cfg_put_qmaxlen(message, 0);
  mnl_attr_put_u32(message, NFQA_CFG_FLAGS, htonl(NFQA_CFG_F_FAIL_OPEN));
  mnl_attr_put_u32(message, NFQA_CFG_MASK, htonl(NFQA_CFG_F_FAIL_OPEN));
  return made;
}

ConfigMessage ConfigMessage::unbind(std::uint16_t number, std::uint32_t sequence) {
  ConfigMessage made;
  begin_command(made.bytes_, number, NFQNL_CFG_CMD_UNBIND, sequence);
  return made;
}

ConfigMessage ConfigMessage::nothing(std::uint32_t sequence) {
  ConfigMessage made;
  begin_command(made.bytes_, 0, NFQNL_CFG_CMD_PF_BIND, sequence);
  return made;
}

std::span<const std::uint8_t> ConfigMessage::bytes() const {
  return std::span<const std::uint8_t>(bytes_).first(read<nlmsghdr>(bytes_).nlmsg_len);
}

std::vector<KernelQueueCounters> parse_queue_table(std::string_view text) {
  // number, port, held, copy mode, copy range, queue dropped, socket dropped, last id, 1
  constexpr std::size_t kColumns = 8;
  std::vector<KernelQueueCounters> table;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    std::array<std::uint32_t, kColumns> column{};
    const char* at = line.data();
    const char* const end = at + line.size();
    std::size_t read_columns = 0;
    for (; read_columns < kColumns; ++read_columns) {
      at = std::find_if(at, end, [](char c) { return c != ' '; });
      const auto [next, error] = std::from_chars(at, end, column[read_columns]);
      if (error != std::errc{}) break;
      at = next;
    }
    if (read_columns < kColumns || column[0] > 0xffff) continue;
    table.push_back({static_cast<std::uint16_t>(column[0]), column[1], column[2], column[5], column[6], column[7]});
  }
  return table;
}

std::optional<KernelQueueCounters> parse_queue_counters(std::string_view text, std::uint16_t number) {
  const auto table = parse_queue_table(text);
  const auto line = std::find_if(table.begin(), table.end(), [&](const auto& each) { return each.number == number; });
  if (line == table.end()) return std::nullopt;
  return *line;
}

}  // namespace shaper
