// Sends datagrams as fast as one thread can, for what iperf3 is too slow to fill, or so many in a second. It blocks
// while its socket is full, so it is held back by what a queue of the same host holds.
// usage: flood ADDRESS PORT [PAYLOAD_BYTES [PER_SECOND [SEGMENT_BYTES]]] (until it is ended)
//
// The default payload of 22 bytes makes IPv4 frames of 64 (14 Ethernet, 20 IPv4, 8 UDP). 0 a second: as many as it can.
// With SEGMENT_BYTES the kernel cuts each payload into datagrams of that size (UDP_SEGMENT).
#include <netdb.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kSmallestFrame = 22;
constexpr int kDatagramsPerCall = 64;

/// A connected datagram socket, or -1.
int connect_to(const char* host, const char* port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (getaddrinfo(host, port, &hints, &found) != 0) return -1;
  const int descriptor = socket(found->ai_family, SOCK_DGRAM, 0);
  const bool connected = descriptor >= 0 && connect(descriptor, found->ai_addr, found->ai_addrlen) == 0;
  freeaddrinfo(found);
  return connected ? descriptor : -1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t size = argc >= 4 ? std::strtoul(argv[3], nullptr, 10) : kSmallestFrame;
  const long per_second = argc >= 5 ? std::strtol(argv[4], nullptr, 10) : 0;
  const int segment = argc >= 6 ? std::atoi(argv[5]) : 0;
  const int descriptor = argc >= 3 && argc <= 6 ? connect_to(argv[1], argv[2]) : -1;
  if (descriptor < 0 || setsockopt(descriptor, SOL_UDP, UDP_SEGMENT, &segment, sizeof segment) != 0) {
    std::fputs("usage: flood ADDRESS PORT [PAYLOAD_BYTES [PER_SECOND [SEGMENT_BYTES]]]\n", stderr);
    return 2;
  }
  std::vector<char> payload(size);
  iovec piece{.iov_base = payload.data(), .iov_len = payload.size()};
  std::array<mmsghdr, kDatagramsPerCall> messages{};
  for (mmsghdr& message : messages) {
    message.msg_hdr.msg_iov = &piece;
    message.msg_hdr.msg_iovlen = 1;
  }
  const auto gap = std::chrono::nanoseconds{per_second > 0 ? std::nano::den * long{kDatagramsPerCall} / per_second : 0};
  for (auto due = std::chrono::steady_clock::now();; due += gap) {
    if (per_second > 0) std::this_thread::sleep_until(due);
    // A full device queue answers ENOBUFS, a port without a listener ECONNREFUSED: both are no end.
    if (sendmmsg(descriptor, messages.data(), messages.size(), 0) < 0 && errno != ENOBUFS && errno != ECONNREFUSED) {
      std::perror("flood: sendmmsg");
      return 1;
    }
  }
}
