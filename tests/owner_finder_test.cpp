// Owners of real sockets, of real processes in real cgroups. Some of it needs root and cgroup2; it is left out without.
#include "shaper/live/owner_finder.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "shaper/live/clock.h"
#include "shaper/live/folder.h"
#include "shaper/live/system_call.h"
#include "shaper/model/address_text.h"

namespace shaper {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// --- Sockets ---------------------------------------------------------------------------------------------------------

sockaddr_in6 socket_address(const char* text, std::uint16_t port) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  EXPECT_EQ(::inet_pton(AF_INET6, text, &address.sin6_addr), 1);
  return address;
}

const sockaddr* plain(const sockaddr_in6& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

std::uint16_t port_of(const Fd& socket) {
  sockaddr_in6 address{};  // the port of IPv4 stands in the same place
  socklen_t size = sizeof address;
  require(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), "getsockname");
  return ntohs(address.sin6_port);
}

/// "::ffff:127.0.0.1" makes a socket that serves IPv4.
Fd bound(int type, const char* address, int protocol = 0) {
  Fd fd(require(::socket(AF_INET6, type | SOCK_CLOEXEC, protocol), "socket"));
  const int off = 0;
  require(::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off), "setsockopt");
  const sockaddr_in6 any = socket_address(address, 0);
  require(::bind(fd.get(), plain(any), sizeof any), "bind");
  return fd;
}

Fd listener(const char* address) {
  Fd fd = bound(SOCK_STREAM, address);
  require(::listen(fd.get(), 1000), "listen");
  return fd;
}

Fd connected(int type, const char* address, std::uint16_t port) {
  Fd fd(require(::socket(AF_INET6, type | SOCK_CLOEXEC, 0), "socket"));
  const sockaddr_in6 to = socket_address(address, port);
  require(::connect(fd.get(), plain(to), sizeof to), "connect");
  return fd;
}

OwnerAsk ask(std::uint8_t protocol, std::string_view address, std::uint16_t local_port, std::uint16_t remote_port) {
  const auto [family, bytes] = parse_address(address).value();
  return {1, family, protocol, bytes, bytes, local_port, remote_port};
}

std::uint64_t inode_of(const Fd& socket) {
  struct stat status {};
  require(::fstat(socket.get(), &status), "fstat");
  return status.st_ino;
}

struct Kind {
  const char* bind;  // address of the socket
  const char* wire;  // address in packets
};

class Sockets : public testing::TestWithParam<Kind> {};

INSTANTIATE_TEST_SUITE_P(Families, Sockets,
                         testing::Values(Kind{"::1", "::1"}, Kind{"::", "::1"}, Kind{"::", "127.0.0.1"},
                                         Kind{"::ffff:127.0.0.1", "127.0.0.1"}));

TEST_P(Sockets, OfTcpAreFoundWhereverTheyStand) {
  const Fd server = listener(GetParam().bind);
  const std::uint16_t port = port_of(server);
  const char* to = GetParam().wire == std::string("::1") ? "::1" : "::ffff:127.0.0.1";
  const Fd client = connected(SOCK_STREAM, to, port);
  SocketDiag diag;
  const auto inode = [&](std::uint16_t local, std::uint16_t remote) {
    const auto facts = diag.find(ask(kTcp, GetParam().wire, local, remote));
    return facts ? facts->inode : 0;
  };
  EXPECT_EQ(inode(port_of(client), port), inode_of(client));
  EXPECT_EQ(inode(port, port_of(client)), inode_of(server)) << "nobody has accepted it yet";
  const Fd accepted(require(::accept(server.get(), nullptr, nullptr), "accept"));
  EXPECT_EQ(inode(port, port_of(client)), inode_of(accepted));
  EXPECT_EQ(diag.find(ask(kTcp, GetParam().wire, port, port_of(client)))->user, ::geteuid());
}

TEST_P(Sockets, OfUdpAreFoundConnectedOrNot) {
  for (const auto& [number, protocol] : {std::pair{kUdp, int{IPPROTO_UDP}}, std::pair{kUdpLite, int{IPPROTO_UDPLITE}}}) {
    const Fd server = bound(SOCK_DGRAM, GetParam().bind, protocol);
    SocketDiag diag;
    const auto facts = diag.find(ask(number, GetParam().wire, port_of(server), 4711));
    ASSERT_TRUE(facts);
    EXPECT_EQ(facts->inode, inode_of(server));
  }
  const Fd server = bound(SOCK_DGRAM, GetParam().bind);
  const char* to = GetParam().wire == std::string("::1") ? "::1" : "::ffff:127.0.0.1";
  const Fd client = connected(SOCK_DGRAM, to, port_of(server));
  SocketDiag diag;
  EXPECT_EQ(diag.find(ask(kUdp, GetParam().wire, port_of(client), port_of(server)))->inode, inode_of(client));
}

TEST(SocketDiag, FindsASocketThatIsBoundToAnInterface) {
  const Fd socket = bound(SOCK_DGRAM, "::");
  if (::setsockopt(socket.get(), SOL_SOCKET, SO_BINDTODEVICE, "lo", 3) != 0) GTEST_SKIP() << "no right to do so";
  const auto facts = SocketDiag().find(ask(kUdp, "127.0.0.1", port_of(socket), 4711));
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->inode, inode_of(socket));
}

TEST(SocketDiag, FindsNoneWhereThereIsNone) {
  const std::uint16_t port = port_of(bound(SOCK_DGRAM, "::1"));  // closed by now
  SocketDiag diag;
  EXPECT_FALSE(diag.find(ask(kUdp, "::1", port, 4711)));
  EXPECT_FALSE(diag.find(ask(kTcp, "127.0.0.1", 1, 4711)));
  EXPECT_FALSE(diag.find(ask(kIcmp, "127.0.0.1", 0, 0)));
}

// --- Processes -------------------------------------------------------------------------------------------------------

/// In a child, for the rest of its life.
[[noreturn]] void live_while(pid_t parent) {
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
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, 0), nullptr, 0);
  }
  [[nodiscard]] std::uint32_t pid() const { return static_cast<std::uint32_t>(pid_); }
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  pid_t pid_ = 0;
  std::uint16_t port_ = 0;
};

/// In a child: a UDP socket that stays open; its port.
std::uint16_t leave_open(Fd socket) {
  const std::uint16_t port = port_of(socket);
  static_cast<void>(socket.release());
  return port;
}

std::vector<OwnerAnswer> answers_of(OwnerFinder& finder, const std::vector<OwnerAsk>& asks) {
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

Owner owner_of(OwnerFinder& finder, const OwnerAsk& flow) {
  const auto answers = answers_of(finder, {flow});
  EXPECT_THAT(answers, SizeIs(1));
  return answers.empty() ? Owner() : answers.front().owner;
}

OwnerAsk udp_flow(std::uint16_t port, std::uint64_t id = 1) {
  OwnerAsk flow = ask(kUdp, "127.0.0.1", port, 4711);
  flow.id = id;
  return flow;
}

TEST(OwnerFinder, NamesTheProcessThatHoldsTheSocket) {
  const Child child([] {
    ::prctl(PR_SET_NAME, "a ) sender");
    return leave_open(bound(SOCK_DGRAM, "::"));
  });
  OwnerFinder finder;
  const Owner owner = owner_of(finder, udp_flow(child.port()));
  EXPECT_EQ(owner.process, "a ) sender");
  EXPECT_EQ(owner.pid, child.pid());
  EXPECT_EQ(owner.started, process_facts(open_process(child.pid()))->id.started);
  EXPECT_EQ(owner.user, ::geteuid());
}

TEST(OwnerFinder, TakesANameThatIsMeantToHurtAsItIs) {
  const std::string name = "\"\n\x1b]0;x\n";
  const Child child([&] {
    ::prctl(PR_SET_NAME, name.c_str());
    return leave_open(bound(SOCK_DGRAM, "::"));
  });
  OwnerFinder finder;
  const std::vector<OwnerAnswer> answers = answers_of(finder, {udp_flow(child.port())});
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_EQ(answers[0].owner.process, name);
  EXPECT_EQ(parse_owner_answers(owner_answers_text(answers)), answers);
}

TEST(OwnerFinder, TakesTheOldestOfSeveralHolders) {
  const Child parent([] {
    Fd socket = bound(SOCK_DGRAM, "::");
    std::this_thread::sleep_for(std::chrono::milliseconds{20});  // the clock of starts ticks every 10 ms
    const pid_t parent = ::getpid();
    if (require(::fork(), "fork") == 0) live_while(parent);
    return leave_open(std::move(socket));
  });
  OwnerFinder finder;
  EXPECT_EQ(owner_of(finder, udp_flow(parent.port())).pid, parent.pid());
}

TEST(OwnerFinder, ForgetsAProcessThatHasEnded) {
  Fd socket = bound(SOCK_DGRAM, "::");  // shared with the child, which is found only when we have closed it
  const std::uint16_t port = port_of(socket);
  OwnerFinder finder;
  EXPECT_EQ(owner_of(finder, udp_flow(port)).pid, static_cast<std::uint32_t>(::getpid()));
  Child child([] { return std::uint16_t{0}; });
  socket.close();
  EXPECT_EQ(owner_of(finder, udp_flow(port)).pid, child.pid());
  child.end();
  EXPECT_EQ(owner_of(finder, udp_flow(port)), Owner());
}

TEST(OwnerFinder, FindsAProcessOfManyShortConnectionsAtOnce) {
  const Fd server = listener("::");
  OwnerFinder finder;
  const std::uint16_t port = port_of(server);
  int found = 0;
  for (int i = 0; i < 200; ++i) {
    const Fd client = connected(SOCK_STREAM, "::ffff:127.0.0.1", port);
    const Owner owner = owner_of(finder, ask(kTcp, "127.0.0.1", port_of(client), port));
    if (owner.pid == static_cast<std::uint32_t>(::getpid())) ++found;
  }
  EXPECT_EQ(found, 200);
  EXPECT_LE(finder.processes().full_searches(), 1U);
}

TEST(OwnerFinder, SearchesOnceForAllWhoWait) {
  std::vector<Fd> sockets;
  std::vector<OwnerAsk> asks;
  for (std::uint64_t id = 0; id < 500; ++id) {
    sockets.push_back(bound(SOCK_DGRAM, "::"));
    asks.push_back(udp_flow(port_of(sockets.back()), id));
  }
  OwnerFinder finder;
  const auto answers = answers_of(finder, asks);
  std::set<std::uint64_t> ids;
  for (const OwnerAnswer& each : answers) {
    EXPECT_EQ(each.owner.pid, static_cast<std::uint32_t>(::getpid()));
    ids.insert(each.id);
  }
  EXPECT_THAT(ids, SizeIs(500));
  EXPECT_THAT(answers, SizeIs(500));
  EXPECT_EQ(finder.processes().full_searches(), 1U);
}

TEST(OwnerFinder, AnswersAFloodAtOnceBeyondItsBound) {
  std::vector<OwnerAsk> asks;
  for (std::uint64_t id = 0; id < 2 * OwnerFinder::kMostWaiting; ++id) {
    OwnerAsk flow = udp_flow(9, id);
    flow.local = parse_address("203.0.113.7")->second;  // nobody here has it: it could be a container's
    asks.push_back(flow);
  }
  OwnerFinder finder;
  finder.ask(asks);
  EXPECT_LE(finder.waiting(), OwnerFinder::kMostWaiting);
  EXPECT_THAT(answers_of(finder, {}), SizeIs(asks.size()));
}

TEST(ProcessFacts, OfAProcessStayItsOwnWhenAnotherOneHasItsNumber) {
  Child child([] { return std::uint16_t{0}; });
  const std::uint32_t pid = child.pid();
  const Fd folder = open_process(pid);
  ASSERT_TRUE(process_facts(folder));
  child.end();
  EXPECT_FALSE(process_facts(folder));
  // What the next process gets is chosen here, where we may.
  const Fd last(::open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC));
  const std::string before = std::to_string(pid - 1);
  if (!last || ::write(last.get(), before.data(), before.size()) < 0) GTEST_SKIP() << "no right to choose a number";
  const Child next([] { return std::uint16_t{0}; });
  if (next.pid() != pid) GTEST_SKIP() << "another process was faster";
  EXPECT_FALSE(process_facts(folder));
  EXPECT_TRUE(process_facts(open_process(pid)));
}

TEST(ProcessFacts, AreReadBehindANameThatLooksLikeMore) {
  std::string text = "42 (a) Z 1 (b) S 7";
  for (int i = 0; i < 17; ++i) text += " 0";
  const auto facts = parse_process_stat(text + " 99 5");
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->id, (ProcessId{99, 42}));
  EXPECT_EQ(facts->parent, 7U);
  EXPECT_FALSE(facts->ended);
  EXPECT_FALSE(parse_process_stat("42 (a) S 7 0"));
  EXPECT_FALSE(parse_process_stat(""));
}

}  // namespace
}  // namespace shaper
