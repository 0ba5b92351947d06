#include "shaper/live/nfqueue.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <string>

#include "shaper/live/verdict_code.h"

namespace shaper {
namespace {

constexpr std::size_t kBatch = 64;
// A message without its payload stays below 200 bytes; a security context could add to that.
constexpr std::size_t kDatagramBytes = 2048;
static_assert(kDatagramBytes > kCopyBytes + 1024);
constexpr int kReceiveBytes = 32 << 20;
constexpr std::chrono::milliseconds kAnswerTime{1000};

[[noreturn]] void fail(const std::string& call, int error) {
  throw std::system_error(error, std::system_category(), call);
}

void set_option(int fd, int level, int option, const char* call) {
  const int on = 1;
  if (::setsockopt(fd, level, option, &on, sizeof on) != 0) fail(call, errno);
}

ReceiveBuffer enlarge_receive_buffer(int fd) {
  ReceiveBuffer buffer;
  buffer.forced = ::setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &kReceiveBytes, sizeof kReceiveBytes) == 0;
  if (!buffer.forced && ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &kReceiveBytes, sizeof kReceiveBytes) != 0) {
    fail("setsockopt(SO_RCVBUF)", errno);
  }
  int granted = 0;
  socklen_t size = sizeof granted;
  if (::getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &granted, &size) != 0) fail("getsockopt(SO_RCVBUF)", errno);
  buffer.granted = {static_cast<std::uint64_t>(granted)};
  return buffer;
}

/// Lets the kernel choose the port id.
void bind_port(int fd) {
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    fail("bind(NETLINK_NETFILTER)", errno);
  }
}

std::uint32_t port_of(int fd) {
  sockaddr_nl address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    fail("getsockname(NETLINK_NETFILTER)", errno);
  }
  return address.nl_pid;
}

/// Returns early on a signal; the caller finds out by reading.
void wait_readable(int fd, std::chrono::milliseconds time) {
  pollfd waiting{fd, POLLIN, 0};
  if (::poll(&waiting, 1, static_cast<int>(time.count())) < 0 && errno != EINTR) fail("poll", errno);
}

/// An unconnected netlink socket sends to the kernel. Nothing else can be the receiver.
bool send_bytes(int fd, std::span<const std::uint8_t> bytes) {
  ssize_t sent = 0;
  do {
    sent = ::send(fd, bytes.data(), bytes.size(), 0);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
}

}  // namespace

/// Where recvmmsg puts what it reads: made once, pointed at themselves once.
struct NfqueueSocket::Buffers {
  std::array<std::array<std::uint8_t, kDatagramBytes>, kBatch> bytes;
  std::array<sockaddr_nl, kBatch> senders;
  std::array<iovec, kBatch> vectors;
  std::array<mmsghdr, kBatch> messages;

  Buffers() {
    for (std::size_t i = 0; i < kBatch; ++i) {
      vectors[i] = {bytes[i].data(), bytes[i].size()};
      messages[i] = {};
      messages[i].msg_hdr.msg_iov = &vectors[i];
      messages[i].msg_hdr.msg_iovlen = 1;
      messages[i].msg_hdr.msg_name = &senders[i];
      messages[i].msg_hdr.msg_namelen = sizeof senders[i];
    }
  }
};

namespace {

Fd open_bound_socket() {
  Fd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_NETFILTER));
  if (!fd) fail("socket(NETLINK_NETFILTER)", errno);
  bind_port(fd.get());
  return fd;
}

}  // namespace

NfqueueSocket::NfqueueSocket() : NfqueueSocket(open_bound_socket()) {}

NfqueueSocket::NfqueueSocket(Fd opened)
    : fd_(std::move(opened)),
      table_(::open("/proc/net/netfilter/nfnetlink_queue", O_RDONLY | O_CLOEXEC)),
      port_(port_of(fd_.get())),
      receive_buffer_(enlarge_receive_buffer(fd_.get())),
      buffers_(std::make_unique<Buffers>()) {
  // Without it one overrun makes the kernel drop every packet until we have read everything.
  set_option(fd_.get(), SOL_NETLINK, NETLINK_NO_ENOBUFS, "setsockopt(NETLINK_NO_ENOBUFS)");
}

NfqueueSocket::NfqueueSocket(NfqueueSocket&&) noexcept = default;
NfqueueSocket& NfqueueSocket::operator=(NfqueueSocket&&) noexcept = default;
NfqueueSocket::~NfqueueSocket() = default;

Received NfqueueSocket::read_datagrams() {
  const int count = ::recvmmsg(fd_.get(), buffers_->messages.data(), kBatch, MSG_DONTWAIT, nullptr);
  if (count >= 0) {
    const auto messages = static_cast<std::size_t>(count);
    // A call that an error cut short reports the error the next time, so dry may be said too early, but only then.
    return {.messages = messages, .dry = messages < kBatch};
  }
  if (errno == EAGAIN || errno == EWOULDBLOCK) return {.messages = 0, .dry = true};
  counters_.last_error = {errno, std::system_category()};
  ++(errno == ENOBUFS ? counters_.overruns : counters_.receive_failures);
  return {.messages = 0, .dry = false};
}

std::optional<std::span<const std::uint8_t>> NfqueueSocket::datagram(std::size_t i) {
  mmsghdr& message = buffers_->messages[i];
  const bool from_kernel = message.msg_hdr.msg_namelen == sizeof(sockaddr_nl) && buffers_->senders[i].nl_pid == 0;
  message.msg_hdr.msg_namelen = sizeof(sockaddr_nl);
  if (!from_kernel) {
    ++counters_.strangers;
    return std::nullopt;
  }
  return std::span<const std::uint8_t>(buffers_->bytes[i]).first(message.msg_len);
}

bool NfqueueSocket::send(VerdictBuffer& verdicts) {
  if (verdicts.empty()) return true;
  if (send_bytes(fd_.get(), verdicts.bytes())) {
    verdicts.clear();
    return true;
  }
  counters_.last_error = {errno, std::system_category()};
  ++counters_.send_failures;
  return false;
}

std::optional<int> NfqueueSocket::find_answer(std::uint32_t sequence) {
  std::optional<int> answer;
  while (!answer) {
    const Received received = read_datagrams();
    if (received.messages == 0) break;
    for (std::size_t i = 0; i < received.messages; ++i) {
      const std::optional<std::span<const std::uint8_t>> bytes = datagram(i);
      if (!bytes) continue;
      const NfqueueMessage message = parse_nfqueue_message(*bytes);
      const auto* const reply = std::get_if<ErrorReply>(&message);
      if (reply != nullptr && reply->config) {
        if (reply->sequence == sequence) answer = reply->error;
      } else {
        early_.emplace_back(bytes->begin(), bytes->end());
      }
    }
  }
  return answer;
}

int NfqueueSocket::ask(const ConfigMessage& message, std::uint32_t sequence) {
  if (!send_bytes(fd_.get(), message.bytes())) fail("send(NFQNL_MSG_CONFIG)", errno);
  // The kernel answers inside send(), so the answer is here already unless the socket is full.
  const auto deadline = std::chrono::steady_clock::now() + kAnswerTime;
  while (true) {
    if (const std::optional<int> answer = find_answer(sequence)) return *answer;
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left.count() <= 0) fail("recvmmsg(answer to NFQNL_MSG_CONFIG)", ETIMEDOUT);
    wait_readable(fd_.get(), std::chrono::ceil<std::chrono::milliseconds>(left));
  }
}

tl::expected<BoundQueue, BindRefusal> NfqueueSocket::bind(std::uint16_t number, QueueKind kind, std::uint32_t length) {
  QueueConfig config{.number = number,
                     .length = length,
                     .copy_bytes = kCopyBytes,
                     .super_packets = kind == QueueKind::fast,
                     .owners = true};
  const auto try_config = [this, &config] {
    const std::uint32_t sequence = ++config_sequence_;
    return ask(ConfigMessage::bind(config, sequence), sequence);
  };
  int error = try_config();
  if (error == EOPNOTSUPP) {
    config.owners = false;
    error = try_config();
  }
  if (error == 0) return BoundQueue{number, config.owners};
  // Ours already: a process of ours died before it could tell of it.
  if (error == EBUSY) return tl::unexpected(BindRefusal{BindRefusal::Reason::taken, number, port_});
  if (error != EPERM) fail("bind to queue " + std::to_string(number), error);
  // EPERM has two meanings: the kernel asks for the privilege first and for the owner of the number then.
  if (!probe_permission()) return tl::unexpected(BindRefusal{BindRefusal::Reason::no_permission, number, std::nullopt});
  const auto line = parse_queue_counters(kernel_table(), number);
  return tl::unexpected(
      BindRefusal{BindRefusal::Reason::taken, number, line ? std::optional{line->port} : std::nullopt});
}

bool NfqueueSocket::let_through(std::uint16_t number) {
  const std::uint32_t sequence = ++config_sequence_;
  return ask(ConfigMessage::let_through(number, sequence), sequence) == 0;
}

void NfqueueSocket::unbind(std::uint16_t number) {
  const std::uint32_t sequence = ++config_sequence_;
  const int error = ask(ConfigMessage::unbind(number, sequence), sequence);
  if (error != 0 && error != ENODEV) fail("unbind from queue " + std::to_string(number), error);
}

std::vector<PacketId> NfqueueSocket::release_all(std::span<const std::uint16_t> blocked) const {
  std::vector<PacketId> released;
  for (const KernelQueueCounters& queue : parse_queue_table(kernel_table())) {
    if (queue.port != port_) continue;
    const PacketId last{queue.number, queue.last_id};
    const bool accept = std::find(blocked.begin(), blocked.end(), queue.number) == blocked.end();
    const VerdictOnAll verdict(last, accept, VerdictCode{}.encode(unmetered(last)));
    if (queue.held == 0 || send_bytes(fd_.get(), verdict.bytes())) released.push_back(last);
  }
  return released;
}

std::string BindRefusal::text() const {
  if (reason == Reason::no_permission) {
    return "binding queue " + std::to_string(number) + " needs CAP_NET_ADMIN in this network namespace";
  }
  const std::string who = owner ? " (port id " + std::to_string(*owner) + ")" : "";
  return "queue " + std::to_string(number) + " belongs to another process" + who;
}

bool probe_permission() {
  const Fd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER));
  if (!fd) fail("socket(NETLINK_NETFILTER)", errno);
  constexpr std::uint32_t kSequence = 1;
  if (!send_bytes(fd.get(), ConfigMessage::nothing(kSequence).bytes())) fail("send(NFQNL_MSG_CONFIG)", errno);
  wait_readable(fd.get(), kAnswerTime);
  std::array<std::uint8_t, kDatagramBytes> bytes;
  const ssize_t size = ::recv(fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (size < 0) fail("recv(answer to NFQNL_MSG_CONFIG)", errno);
  const NfqueueMessage message =
      parse_nfqueue_message(std::span<const std::uint8_t>(bytes).first(static_cast<std::size_t>(size)));
  const auto* const reply = std::get_if<ErrorReply>(&message);
  if (reply == nullptr) fail("answer to NFQNL_MSG_CONFIG", EPROTO);
  if (reply->error == EPERM) return false;
  if (reply->error != 0) fail("NFQUEUE (kernel module nfnetlink_queue)", reply->error);
  return true;
}

std::string NfqueueSocket::kernel_table() const {
  std::string text;
  std::array<char, 4096> piece;
  ssize_t size = 0;
  while ((size = ::pread(table_.get(), piece.data(), piece.size(), static_cast<off_t>(text.size()))) > 0) {
    text.append(piece.data(), static_cast<std::size_t>(size));
  }
  return text;
}

}  // namespace shaper
