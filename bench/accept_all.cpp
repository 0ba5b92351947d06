// The least that a program on a packet queue can do: accept everything. bench/passthrough compares the shaper with it.
//
// It does what costs nothing to do well: super-packets stay whole, 128 bytes of each packet are copied, a full socket
// never reports ENOBUFS, all that can be read is read and the verdicts leave in one message. Nothing is looked at.
// usage: accept_all QUEUE_NUMBER (until it is ended)
#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>

namespace {

constexpr std::uint32_t kCopyRange = 128;
constexpr std::uint32_t kQueueLength = 16'384;
constexpr int kReceiveBuffer = 64 << 20;  // bytes
constexpr std::size_t kVerdictsPerMessage = 64;
constexpr std::size_t kReadBuffer = 65'536;

using Socket = std::unique_ptr<mnl_socket, int (*)(mnl_socket*)>;

[[noreturn]] void fail(const char* call) {
  throw std::system_error(errno, std::generic_category(), call);
}

nlmsghdr* begin_message(void* where, std::uint16_t type, std::uint16_t queue) {
  nlmsghdr* message = mnl_nlmsg_put_header(where);
  message->nlmsg_type = static_cast<std::uint16_t>(NFNL_SUBSYS_QUEUE << 8 | type);
  message->nlmsg_flags = NLM_F_REQUEST;
  nfgenmsg family{.nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0, .res_id = htons(queue)};
  std::memcpy(mnl_nlmsg_put_extra_header(message, sizeof family), &family, sizeof family);
  return message;
}

Socket open_queue(std::uint16_t queue) {
  Socket socket{mnl_socket_open(NETLINK_NETFILTER), mnl_socket_close};
  if (!socket || mnl_socket_bind(socket.get(), 0, MNL_SOCKET_AUTOPID) < 0) fail("netlink socket");
  const int on = 1;
  mnl_socket_setsockopt(socket.get(), NETLINK_NO_ENOBUFS, const_cast<int*>(&on), sizeof on);
  setsockopt(mnl_socket_get_fd(socket.get()), SOL_SOCKET, SO_RCVBUFFORCE, &kReceiveBuffer, sizeof kReceiveBuffer);

  // One message: between a bind and its parameters the kernel would drop packets.
  alignas(nlmsghdr) std::array<char, 512> buffer{};
  nlmsghdr* message = begin_message(buffer.data(), NFQNL_MSG_CONFIG, queue);
  message->nlmsg_flags |= NLM_F_ACK;
  const nfqnl_msg_config_cmd bind{.command = NFQNL_CFG_CMD_BIND, ._pad = 0, .pf = 0};
  const nfqnl_msg_config_params parameters{.copy_range = htonl(kCopyRange), .copy_mode = NFQNL_COPY_PACKET};
  mnl_attr_put(message, NFQA_CFG_CMD, sizeof bind, &bind);
  mnl_attr_put(message, NFQA_CFG_PARAMS, sizeof parameters, &parameters);
  mnl_attr_put_u32(message, NFQA_CFG_QUEUE_MAXLEN, htonl(kQueueLength));
  mnl_attr_put_u32(message, NFQA_CFG_FLAGS, htonl(NFQA_CFG_F_GSO));
  mnl_attr_put_u32(message, NFQA_CFG_MASK, htonl(NFQA_CFG_F_GSO));
  if (mnl_socket_sendto(socket.get(), message, message->nlmsg_len) < 0) fail("queue configuration");
  const ssize_t size = mnl_socket_recvfrom(socket.get(), buffer.data(), buffer.size());
  if (size < 0 || mnl_cb_run(buffer.data(), static_cast<std::size_t>(size), 0, mnl_socket_get_portid(socket.get()),
                             nullptr, nullptr) < 0) {
    fail("queue configuration");
  }
  return socket;
}

// The id of the packet in a datagram from the kernel, in network order as a verdict wants it.
std::optional<std::uint32_t> packet_id(std::span<const char> datagram) {
  const auto* message = static_cast<const nlmsghdr*>(static_cast<const void*>(datagram.data()));
  if (!mnl_nlmsg_ok(message, static_cast<int>(datagram.size()))) return std::nullopt;
  if (message->nlmsg_type != (NFNL_SUBSYS_QUEUE << 8 | NFQNL_MSG_PACKET)) return std::nullopt;
  const char* end = static_cast<const char*>(mnl_nlmsg_get_payload_tail(message));
  const auto* attribute = static_cast<const nlattr*>(mnl_nlmsg_get_payload_offset(message, sizeof(nfgenmsg)));
  while (
      mnl_attr_ok(attribute, static_cast<int>(end - static_cast<const char*>(static_cast<const void*>(attribute))))) {
    if (mnl_attr_get_type(attribute) == NFQA_PACKET_HDR) {
      std::uint32_t id = 0;
      std::memcpy(&id, mnl_attr_get_payload(attribute), sizeof id);
      return id;
    }
    attribute = mnl_attr_next(attribute);
  }
  return std::nullopt;
}

void accept_everything(int socket, std::uint16_t queue) {
  constexpr std::size_t kVerdictSize = MNL_ALIGN(sizeof(nlmsghdr)) + MNL_ALIGN(sizeof(nfgenmsg)) +
                                       MNL_ALIGN(sizeof(nlattr) + sizeof(nfqnl_msg_verdict_hdr));
  alignas(nlmsghdr) static std::array<char, kReadBuffer> input;
  alignas(nlmsghdr) static std::array<char, kVerdictSize * kVerdictsPerMessage> output;
  while (true) {
    std::size_t used = 0;
    int flags = 0;  // sleep for the first packet, then take what is there
    while (used < output.size()) {
      const ssize_t size = recv(socket, input.data(), input.size(), flags);
      if (size < 0 && errno == EINTR) continue;
      if (size < 0 && errno == EAGAIN) break;
      if (size < 0) fail("recv");
      flags = MSG_DONTWAIT;
      const auto id = packet_id({input.data(), static_cast<std::size_t>(size)});
      if (!id) continue;
      nlmsghdr* message = begin_message(output.data() + used, NFQNL_MSG_VERDICT, queue);
      const nfqnl_msg_verdict_hdr verdict{.verdict = htonl(NF_ACCEPT), .id = *id};
      mnl_attr_put(message, NFQA_VERDICT_HDR, sizeof verdict, &verdict);
      used += message->nlmsg_len;
    }
    if (used > 0 && send(socket, output.data(), used, 0) < 0) fail("send");
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::uint16_t queue = 0;
  const std::string_view text = argc == 2 ? argv[1] : "";
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), queue);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) {
    std::fputs("usage: accept_all QUEUE_NUMBER\n", stderr);
    return 2;
  }
  try {
    const Socket socket = open_queue(queue);
    accept_everything(mnl_socket_get_fd(socket.get()), queue);
  } catch (const std::exception& error_seen) {
    std::fprintf(stderr, "accept_all: %s\n", error_seen.what());
    return 1;
  }
}
