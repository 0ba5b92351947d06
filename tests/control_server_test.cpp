// The control socket as its clients meet it. Everything is one thread: the client writes before the loop runs, and
// reads between two rounds of it.
#include "shaper/live/control_server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <filesystem>

#include "shaper/live/clock.h"
#include "shaper/live/timer.h"
#include "shaper/version.h"

namespace shaper {
namespace {

constexpr std::size_t kLongAnswer = 4'000'000;  // more than the kernel takes at once

class ControlServerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "shaper-control-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    server_.emplace(loop_, listen_at(folder_ / "control"),
                    [](const Request& request, const Peer&) { return answer(request); });
    server_->open();
    patience_.set(monotonic_now() + std::chrono::seconds{10});
  }
  void TearDown() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  static ControlServer::Answer answer(const Request& request) {
    if (request.verb == "subscribe") return Subscription{"head\n"};
    if (request.verb == "long") return Response{ResponseStatus::ok, std::string(kLongAnswer, 'x')};
    if (request.verb == "fails") {
      return Slices([left = 3](Response& response) mutable {
        if (--left == 0) throw std::runtime_error("no more");
        response.body = "slice ";
        return Progress::more;
      });
    }
    if (request.verb != "slices") return Response{ResponseStatus::ok, request.body};
    return Slices([left = 3](Response& response) mutable {
      response.body += "slice ";
      return --left > 0 ? Progress::more : Progress::done;
    });
  }

  [[nodiscard]] Fd connect() const {
    Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = folder_ / "control";
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return fd;
  }

  /// Lets the server run until it has closed the connection or `enough` has come; returns what has.
  std::string serve(int client, std::size_t enough) {
    constexpr int kRounds = 100'000;
    std::string came;
    int rounds = 0;
    loop_.on_idle([&] {
      server_->work();
      std::array<char, 65'536> bytes;
      const ssize_t count = ::recv(client, bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (count > 0) came.append(bytes.data(), static_cast<std::size_t>(count));
      closed_ = count == 0;
      if (closed_ || came.size() >= enough || ++rounds >= kRounds) loop_.stop();
      return true;
    });
    loop_.run();
    return came;
  }

  /// A client sends `requests`, shuts down its writing side and reads to the end.
  std::string answers_to(std::string_view requests) {
    const Fd client = connect();
    EXPECT_EQ(::send(client.get(), requests.data(), requests.size(), 0), static_cast<ssize_t>(requests.size()));
    ::shutdown(client.get(), SHUT_WR);
    return serve(client.get(), std::string::npos);
  }

  std::filesystem::path folder_;
  EventLoop loop_;
  Timer patience_{loop_, [this] { loop_.stop(); }};  // nothing waits for ever
  std::optional<ControlServer> server_;
  bool closed_ = false;
};

TEST_F(ControlServerTest, AClientThatAsksNoMoreGetsItsAnswer) {
  EXPECT_EQ(answers_to("shaper/1 echo 5\nhello"), "ok 5\nhello");
  EXPECT_TRUE(closed_);
}

TEST_F(ControlServerTest, AndAllOfThem) {
  EXPECT_EQ(answers_to("shaper/1 slices 0\nshaper/1 echo 5\nhelloshaper/1 slices 0\n"),
            "ok 18\nslice slice slice ok 5\nhellook 18\nslice slice slice ");
  EXPECT_TRUE(closed_);
}

TEST_F(ControlServerTest, WhoSpeaksAnotherVersionOfTheProtocolIsToldSo) {
  const std::string answer = answers_to("shaper/2 status 0\n");
  EXPECT_EQ(answer.substr(0, answer.find(' ')), "refused");
  EXPECT_NE(answer.find(std::string("the daemon is version ") + kVersion + ", which speaks shaper/1"),
            std::string::npos)
      << answer;
  EXPECT_TRUE(closed_);
}

TEST_F(ControlServerTest, AndWhoSpeaksNoneOfThemIsNot) {
  for (const char* request : {"GET / HTTP/1.1\n", "shaper/1 status many\n"}) {
    EXPECT_EQ(answers_to(request), "") << request;
    EXPECT_TRUE(closed_);
  }
}

TEST_F(ControlServerTest, AlsoALongOne) {
  EXPECT_EQ(answers_to("shaper/1 long 0\n").size(), std::string_view("ok 4000000\n").size() + kLongAnswer);
  EXPECT_TRUE(closed_);
}

TEST_F(ControlServerTest, WhatFailsInTheMiddleIsRefused) {
  EXPECT_EQ(answers_to("shaper/1 fails 0\nshaper/1 echo 5\nhello"), "refused 7\nno moreok 5\nhello");
}

TEST_F(ControlServerTest, LongAnswersTakeTurnsSliceBySlice) {
  constexpr int kClients = 10;
  std::vector<Fd> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(connect());
    constexpr std::string_view kRequest = "shaper/1 slices 0\n";
    ASSERT_EQ(::send(clients.back().get(), kRequest.data(), kRequest.size(), 0), static_cast<ssize_t>(kRequest.size()));
  }
  const auto answered = [&] {
    std::array<char, 100> bytes;
    return std::count_if(clients.begin(), clients.end(), [&](const Fd& client) {
      return ::recv(client.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_PEEK) > 0;
    });
  };
  int rounds = 0;
  loop_.on_idle([&] {
    if (++rounds == 3 * kClients) loop_.stop();  // all are connected and have asked
    return true;
  });
  loop_.run();
  for (int slice = 1; slice < 3 * kClients; ++slice) {
    EXPECT_TRUE(server_->work());
    EXPECT_EQ(answered(), std::max(0, slice - 2 * kClients)) << "one slice at a time, " << slice;
  }
  EXPECT_TRUE(server_->work());
  EXPECT_EQ(answered(), kClients);
  EXPECT_FALSE(server_->work());
}

TEST_F(ControlServerTest, HalfARequestIsNone) {
  EXPECT_EQ(answers_to("shaper/1 echo 5\nhel"), "");
  EXPECT_TRUE(closed_);
}

TEST_F(ControlServerTest, NothingAskedIsNothingAnswered) {
  EXPECT_EQ(answers_to(""), "");
  EXPECT_TRUE(closed_);
}

TEST_F(ControlServerTest, ASubscriberThatAsksNoMoreGoesOnReading) {
  const Fd client = connect();
  constexpr std::string_view kRequest = "shaper/1 subscribe 0\n";
  ASSERT_EQ(::send(client.get(), kRequest.data(), kRequest.size(), 0), static_cast<ssize_t>(kRequest.size()));
  ::shutdown(client.get(), SHUT_WR);
  constexpr std::string_view kHead = "ok 0\nhead\n";
  EXPECT_EQ(serve(client.get(), kHead.size() + 1), kHead);
  EXPECT_FALSE(closed_);
  server_->publish("line\n");
  std::array<char, 100> bytes;
  EXPECT_EQ(::recv(client.get(), bytes.data(), bytes.size(), MSG_DONTWAIT), 5);
  EXPECT_TRUE(server_->has_subscribers());
}

}  // namespace
}  // namespace shaper
