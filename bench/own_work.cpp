// The work of our own for each packet, without the kernel's: from the datagram of the queue to the bytes of the
// verdict. Run under callgrind, by bench/instructions.
//
// usage: own_work pass|queue|new FLOWS CLASSES PACKETS
//   pass   packets of FLOWS known flows, nothing over its limit
//   queue  the same on a link that is always full: each packet waits behind about 20 others
//   new    each packet begins a flow, and one of FLOWS is forgotten for it
#include <arpa/inet.h>
#include <fmt/format.h>
#include <libmnl/libmnl.h>
#include <libnetfilter_queue/libnetfilter_queue.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink_queue.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <variant>

#include "shaper/core/shaper.h"
#include "shaper/live/nfqueue_wire.h"
#include "shaper/live/verdict_code.h"
#include "shaper/model/config.h"

namespace {

using namespace shaper;
using namespace std::chrono_literals;

constexpr std::uint32_t kIpBytes = 1'000;

/// Each class takes one host: 10.0.0.1, 10.0.0.2, ...
std::string policy_text(bool full, std::uint32_t flows, std::uint32_t classes) {
  std::string text =
      fmt::format("version = 1\nmax_flows = {}\n[[link]]\nname = \"up\"\ninterface = \"up0\"\nrate = \"{}\"\n",
                  std::max(flows, 1'024U), full ? "100mbit" : "400gbit");
  for (std::uint32_t n = 1; n < classes; ++n) {
    text += fmt::format(
        "[[class]]\nname = \"c{}\"\nlink = \"up\"\nmatch = {{ remote = \"10.{}.{}.{}\" }}\nceil = \"400gbit\"\n", n,
        n >> 16, n >> 8 & 0xff, n & 0xff);
  }
  return text + "[[class]]\nname = \"rest\"\nlink = \"up\"\ndefault = true\n";
}

/// What the kernel sends for a UDP datagram: the parts that change from packet to packet are written over.
class Datagram {
 public:
  Datagram() {
    nlmsghdr* const message = nfq_nlmsg_put(reinterpret_cast<char*>(bytes_.data()), NFQNL_MSG_PACKET, 7'000);
    const nfqnl_msg_packet_hdr header{};
    mnl_attr_put(message, NFQA_PACKET_HDR, sizeof header, &header);
    mnl_attr_put_u32(message, NFQA_IFINDEX_OUTDEV, htonl(2));
    mnl_attr_put_u32(message, NFQA_UID, htonl(1'000));
    mnl_attr_put_u32(message, NFQA_GID, htonl(1'000));
    mnl_attr_put_u32(message, NFQA_CAP_LEN, htonl(kIpBytes));
    std::array<std::uint8_t, 128> ip{0x45};
    ip[8] = 64;
    ip[9] = kUdp;
    mnl_attr_put(message, NFQA_PAYLOAD, ip.size(), ip.data());
    size_ = message->nlmsg_len;
    number_ = bytes_.data() + sizeof(nlmsghdr) + sizeof(nfgenmsg) + sizeof(nlattr);
    ip_ = bytes_.data() + size_ - ip.size();
  }

  std::span<const std::uint8_t> packet(std::uint32_t number, std::uint32_t flow, std::uint32_t classes) {
    put(number_, htonl(number));
    put(ip_ + 12, htonl(0xc0a8'0000U | flow >> 16));
    put(ip_ + 16, htonl(10U << 24 | flow % classes));
    put(ip_ + 20, htonl(flow << 16 | 443));
    return std::span(bytes_).first(size_);
  }

 private:
  static void put(std::uint8_t* at, std::uint32_t value) { std::memcpy(at, &value, sizeof value); }

  alignas(4) std::array<std::uint8_t, 1'024> bytes_{};
  std::size_t size_ = 0;
  std::uint8_t* number_ = nullptr;
  std::uint8_t* ip_ = nullptr;
};

/// As the packet loop calls the core, one packet a batch.
class Loop {
 public:
  explicit Loop(const Policy& policy) : core_(policy, StartCredit::full, HashKey{1, 2}, now_) {}

  void take(std::span<const std::uint8_t> datagram, Nanos gap) {
    run_until(now_ + gap);
    const NfqueueMessage message = parse_nfqueue_message(datagram);
    core_.on_packet(packet_from(std::get<QueuedPacket>(message)), now_, verdicts_);
    send();
  }

  [[nodiscard]] std::uint64_t accepted() const { return accepted_; }

 private:
  void run_until(Instant end) {
    for (auto next = core_.next_departure(); next && *next <= end; next = core_.next_departure()) {
      now_ = std::max(now_, *next);
      core_.release(now_, verdicts_);
      send();
    }
    now_ = end;
  }

  void send() {
    for (const Verdict& verdict : verdicts_) {
      if (buffer_.full()) buffer_.clear();
      const std::uint32_t code = code_.encode(verdict);
      if (verdict.decision == Decision::drop) {
        buffer_.drop(verdict.id, code);
      } else {
        ++accepted_;
        buffer_.accept(verdict.id, code);
      }
    }
    buffer_.clear();
    verdicts_.clear();
    core_.on_departed(now_);
  }

  Instant now_{1s};
  Shaper core_;
  Verdicts verdicts_;
  VerdictBuffer buffer_;
  VerdictCode code_;
  std::uint64_t accepted_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return fmt::print(stderr, "usage: own_work pass|queue|new FLOWS CLASSES PACKETS\n"), 2;
  const std::string kind = argv[1];
  const auto number = [argv](int i) { return static_cast<std::uint32_t>(std::strtoul(argv[i], nullptr, 10)); };
  const std::uint32_t flows = number(2);
  const std::uint32_t classes = number(3);
  const std::uint32_t packets = number(4);
  const auto parsed = parse_policy(policy_text(kind == "queue", flows, classes), "bench");
  if (!parsed) return fmt::print(stderr, "{}\n", parsed.error().text()), 1;

  Loop loop(parsed->policy);
  Datagram datagram;
  std::uint32_t id = 0;
  // A full link carries as many as come; before that, twenty more.
  const Nanos gap = kind == "queue" ? Nanos{(kIpBytes + 14) * 8 * 10} : Nanos{1'000};
  for (std::uint32_t flow = 0; flow < flows; ++flow) loop.take(datagram.packet(++id, flow, classes), gap);
  for (std::uint32_t n = 0; kind == "queue" && n < 70; ++n) loop.take(datagram.packet(++id, n % flows, classes), 0ns);
  std::minstd_rand random(1);
  for (std::uint32_t n = 0; n < packets; ++n) {
    const std::uint32_t flow = kind == "new" ? flows + n : static_cast<std::uint32_t>(random()) % flows;
    loop.take(datagram.packet(++id, flow, classes), gap);
  }
  fmt::print("{} of {} accepted\n", loop.accepted(), id);
  return 0;
}
