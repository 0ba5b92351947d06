// Real sockets, real processes that hold them, and the finder that is asked about them.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <functional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "shaper/live/clock.h"
#include "shaper/live/owner_finder.h"
#include "shaper/live/system_call.h"
#include "shaper/model/address_text.h"

namespace shaper {

inline sockaddr_in6 socket_address(const char* text, std::uint16_t port) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  EXPECT_EQ(::inet_pton(AF_INET6, text, &address.sin6_addr), 1);
  return address;
}

inline const sockaddr* plain(const sockaddr_in6& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

inline std::uint16_t port_of(const Fd& socket) {
  sockaddr_in6 address{};  // the port of IPv4 stands in the same place
  socklen_t size = sizeof address;
  require(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), "getsockname");
  return ntohs(address.sin6_port);
}

/// "::ffff:127.0.0.1" makes a socket that serves IPv4.
inline Fd bound(int type, const char* address, int protocol = 0) {
  Fd fd(require(::socket(AF_INET6, type | SOCK_CLOEXEC, protocol), "socket"));
  const int off = 0;
  require(::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off), "setsockopt");
  const sockaddr_in6 any = socket_address(address, 0);
  require(::bind(fd.get(), plain(any), sizeof any), "bind");
  return fd;
}

inline Fd listener(const char* address) {
  Fd fd = bound(SOCK_STREAM, address);
  require(::listen(fd.get(), 1000), "listen");
  return fd;
}

inline Fd connected(int type, const char* address, std::uint16_t port) {
  Fd fd(require(::socket(AF_INET6, type | SOCK_CLOEXEC, 0), "socket"));
  const sockaddr_in6 to = socket_address(address, port);
  require(::connect(fd.get(), plain(to), sizeof to), "connect");
  return fd;
}

inline OwnerAsk ask(std::uint8_t protocol, std::string_view address, std::uint16_t local_port,
                    std::uint16_t remote_port) {
  const auto [family, bytes] = parse_address(address).value();
  return {1, family, protocol, bytes, bytes, local_port, remote_port};
}

/// In a child, for the rest of its life.
[[noreturn]] inline void live_while(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);  // it was faster
  while (true) ::pause();
}

/// A child that does `work`, tells the port that this returned, and then lives as long as the object.
class Child {
 public:
  explicit Child(const std::function<std::uint16_t()>& work) {
    std::array<int, 2> pipe{};
    require(::pipe2(pipe.data(), O_CLOEXEC), "pipe2");
    const pid_t parent = ::getpid();
    pid_ = require(::fork(), "fork");
    if (pid_ == 0) {
      const std::uint16_t port = work();
      static_cast<void>(::write(pipe[1], &port, sizeof port) == sizeof port);
      live_while(parent);
    }
    ::close(pipe[1]);
    EXPECT_EQ(::read(pipe[0], &port_, sizeof port_), ssize_t{sizeof port_});
    ::close(pipe[0]);
  }
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void end() {
    if (std::exchange(ended_, true)) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] std::uint32_t pid() const { return static_cast<std::uint32_t>(pid_); }
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  pid_t pid_ = 0;
  bool ended_ = false;
  std::uint16_t port_ = 0;
};

/// In a child: a UDP socket that stays open; its port.
inline std::uint16_t leave_open(Fd socket) {
  const std::uint16_t port = port_of(socket);
  static_cast<void>(socket.release());
  return port;
}

inline std::vector<OwnerAnswer> answers_of(OwnerFinder& finder, const std::vector<OwnerAsk>& asks) {
  finder.ask(asks);
  std::vector<OwnerAnswer> answers = finder.work();
  const Instant until = monotonic_now() + std::chrono::seconds{3};
  for (auto next = finder.next(); next && monotonic_now() < until; next = finder.next()) {
    if (*next > monotonic_now())
      std::this_thread::sleep_for(std::min<Nanos>(*next - monotonic_now(), Nanos{1'000'000}));
    for (OwnerAnswer& each : finder.work()) answers.push_back(std::move(each));
  }
  return answers;
}

inline Owner owner_of(OwnerFinder& finder, const OwnerAsk& flow) {
  const auto answers = answers_of(finder, {flow});
  EXPECT_THAT(answers, testing::SizeIs(1));
  return answers.empty() ? Owner() : answers.front().owner;
}

inline OwnerAsk udp_flow(std::uint16_t port, std::uint64_t id = 1) {
  OwnerAsk flow = ask(kUdp, "127.0.0.1", port, 4711);
  flow.id = id;
  return flow;
}

}  // namespace shaper
