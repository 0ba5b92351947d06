// Owners of real sockets of real processes. Where something needs a right that is missing, that test is left out.
#include "shaper/live/owner_finder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <set>

#include "owned_sockets.h"
#include "shaper/live/socket_diag.h"

namespace shaper {
namespace {

using testing::SizeIs;

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
  for (const auto& [number, protocol] :
       {std::pair{kUdp, int{IPPROTO_UDP}}, std::pair{kUdpLite, int{IPPROTO_UDPLITE}}}) {
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
    const pid_t holder = ::getpid();
    if (require(::fork(), "fork") == 0) live_while(holder);
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
  EXPECT_LE(finder.processes().searches(), 202U) << "the first one in all places, the others where it was found lately";
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
  EXPECT_LE(finder.processes().searches(), 3U) << "one in each place";
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
