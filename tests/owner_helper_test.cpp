// The process that finds owners, by way of its messages: real processes that a policy names, and what they have
// started.
#include "shaper/live/owner_helper.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "owned_sockets.h"

namespace shaper {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// The supervisor's end.
class Asker {
 public:
  Asker()
      : ends_(Channel::make_ends()),
        channel_(
            loop_, std::move(ends_.first), [this](const Request& message) { messages_.push_back(message); }, [] {}),
        helper_(loop_, std::move(ends_.second), {"unit: no reason"}) {}

  void send(std::string_view verb, std::string_view body) { channel_.send(verb, body); }
  /// The latest message of this kind, waited for.
  std::string receive(std::string_view verb) {
    const Instant until = monotonic_now() + std::chrono::seconds{5};
    Timer end(loop_, [] {});
    end.set(until);
    while (monotonic_now() < until) {
      for (auto message = messages_.rbegin(); message != messages_.rend(); ++message) {
        if (message->verb != verb) continue;
        std::string body = message->body;
        std::erase_if(messages_, [&](const Request& each) { return each.verb == verb; });
        return body;
      }
      loop_.turn();
    }
    return "nothing came";
  }
  std::vector<std::uint32_t> lineage_of(std::uint16_t port) {
    send("own", owner_asks_text(std::vector<OwnerAsk>{udp_flow(port)}));
    const auto answers = parse_owner_answers(receive("owned"));
    EXPECT_EQ(answers.size(), 1U);
    return answers.empty() ? std::vector<std::uint32_t>{} : answers[0].owner.lineage;
  }

 private:
  EventLoop loop_;
  std::pair<Fd, Fd> ends_;
  std::vector<Request> messages_;
  Channel channel_;
  OwnerHelper helper_;
};

/// A process whose child holds a socket, and may outlive it.
class Family {
 public:
  enum class Session { ours, its_own };

  explicit Family(Session session = Session::ours)
      : parent_([this, session] {
          if (session == Session::its_own) require(::setsid(), "setsid");
          std::array<int, 2> pipe{};
          require(::pipe2(pipe.data(), O_CLOEXEC), "pipe2");
          if (require(::fork(), "fork") == 0) {
            const std::pair<std::uint16_t, pid_t> told{leave_open(bound(SOCK_DGRAM, "::")), ::getpid()};
            static_cast<void>(::write(pipe[1], &told, sizeof told) == sizeof told);
            ::alarm(60);
            while (true) ::pause();
          }
          std::pair<std::uint16_t, pid_t> told;
          require(static_cast<int>(::read(pipe[0], &told, sizeof told)), "read");
          *child_ = told.second;
          return told.first;
        }) {}
  ~Family() { end_child(); }

  void end_parent() { parent_.end(); }
  void end_child() {
    if (*child_ > 0) ::kill(std::exchange(*child_, 0), SIGKILL);
  }
  [[nodiscard]] std::uint32_t parent() const { return parent_.pid(); }
  [[nodiscard]] std::uint16_t port() const { return parent_.port(); }

 private:
  static void unmap(pid_t* shared) { ::munmap(shared, sizeof *shared); }

  /// Shared with the parent, who knows it.
  std::unique_ptr<pid_t, void (*)(pid_t*)> child_{
      static_cast<pid_t*>(::mmap(nullptr, sizeof(pid_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
      unmap};
  Child parent_;
};

TEST(OwnerHelper, SaysFirstWhatItLacks) {
  Asker asker;
  asker.send("settings", "find\n");
  EXPECT_EQ(asker.receive("lacks"), "unit: no reason");
}

TEST(OwnerHelper, KnowsWhoHasStartedAProcess) {
  Family family;
  Asker asker;
  const std::uint32_t own = static_cast<std::uint32_t>(::getpid());
  asker.send("settings", fmt::format("find\npid {}\npid {}\npid 4194303\n", family.parent(), own));
  EXPECT_EQ(asker.receive("gone"), "4194303");
  std::vector<std::uint32_t> both{family.parent(), own};
  std::sort(both.begin(), both.end());
  EXPECT_EQ(asker.lineage_of(family.port()), both);
  const Fd ours = bound(SOCK_DGRAM, "::");
  EXPECT_THAT(asker.lineage_of(port_of(ours)), ElementsAre(own));
}

TEST(OwnerHelper, KnowsItWhenTheParentHasEndedAndTellsOfTheLastOne) {
  Family family;
  Asker asker;
  asker.send("settings", fmt::format("pid {}\n", family.parent()));
  asker.receive("lacks");
  family.end_parent();
  EXPECT_THAT(asker.lineage_of(family.port()), ElementsAre(family.parent()));
  family.end_child();
  EXPECT_EQ(asker.receive("gone"), std::to_string(family.parent()));
}

TEST(OwnerHelper, TellsTheNextOneWhatItKnew) {
  Family family;
  const std::string settings = fmt::format("pid {}\n", family.parent());
  std::string memory;
  {
    Asker asker;
    asker.send("settings", settings);
    memory = asker.receive("memory");
  }
  family.end_parent();
  Asker next;
  next.send("memory", memory);
  next.send("settings", settings);
  EXPECT_THAT(next.lineage_of(family.port()), ElementsAre(family.parent()));
}

TEST(OwnerHelper, KnowsWhoIsLeftBehindByTheSession) {
  for (const Family::Session session : {Family::Session::ours, Family::Session::its_own}) {
    Family family(session);
    const std::uint32_t number = family.parent();
    const auto parent = process_facts(open_process(number));
    ASSERT_TRUE(parent);
    family.end_parent();  // nobody has looked at its child yet
    Asker asker;
    asker.send("memory", fmt::format("{} {} {}\n", number, number, parent->id.started));
    asker.send("settings", fmt::format("pid {}\n", number));
    const std::vector<std::uint32_t> known = asker.lineage_of(family.port());
    EXPECT_EQ(known.empty(), session == Family::Session::ours);
  }
}

TEST(OwnerHelper, DoesNotTakeAnotherProcessWithTheNumberForTheOldOne) {
  const Child child([] { return leave_open(bound(SOCK_DGRAM, "::")); });
  Asker asker;
  asker.send("memory", fmt::format("{} {} 1\n", child.pid(), child.pid()));  // the number was another one's
  asker.send("settings", fmt::format("pid {}\n", child.pid()));
  EXPECT_EQ(asker.receive("gone"), std::to_string(child.pid()));
  EXPECT_THAT(asker.lineage_of(child.port()), IsEmpty());
}

}  // namespace
}  // namespace shaper
