// Bytes for a slow reader come out in order, whatever the pieces they were put in.
#include "shaper/live/outbox.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>

#include "shaper/live/fd.h"

namespace shaper {
namespace {

constexpr std::size_t kLarge = 1'000'000;  // several pieces

std::string numbered(std::size_t bytes, char first) {
  std::string text(bytes, first);
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(first + static_cast<char>(i % 26));
  return text;
}

class OutboxTest : public testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    writer_ = Fd(ends[0]);
    reader_ = Fd(ends[1]);
  }

  /// Sends once, reads what came.
  std::string send(Outbox& box) const {
    EXPECT_TRUE(box.send_to(writer_.get()));
    std::string came(kLarge, '\0');
    const ssize_t count = ::recv(reader_.get(), came.data(), came.size(), MSG_DONTWAIT);
    came.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return came;
  }

  std::string send_all(Outbox& box) const {
    std::string came;
    for (int calls = 0; !box.empty() && calls < 1'000; ++calls) came += send(box);
    return came;
  }

  Fd writer_, reader_;
};

TEST_F(OutboxTest, WhatIsAddedComesOutInOrder) {
  Outbox box;
  const std::string large = numbered(kLarge, 'a');
  box.add("head ");
  box.add(large);
  box.add(" tail");
  EXPECT_EQ(box.bytes(), kLarge + 10);
  EXPECT_EQ(send_all(box), "head " + large + " tail");
  box.add("again");
  EXPECT_EQ(send_all(box), "again");
}

TEST_F(OutboxTest, NotAllIsSentAtOnce) {
  Outbox box;
  box.add(numbered(kLarge, 'a'));
  EXPECT_LE(send(box).size(), 256u * 1024);
  EXPECT_FALSE(box.empty());
}

TEST_F(OutboxTest, OneTakesOverAnother) {
  const std::string large = numbered(kLarge, 'A');
  for (const bool empty_before : {false, true}) {
    for (const bool partly_sent : {false, true}) {
      Outbox box;
      Outbox other;
      box.add("head");
      std::string came = empty_before ? send_all(box) : "";
      other.add(large);
      const std::string sent = partly_sent ? send(other) : "";
      box.add_all(std::move(other));
      box.add_all({});
      box.add("tail");
      came += send_all(box);
      EXPECT_EQ(came, "head" + large.substr(sent.size()) + "tail");
    }
  }
}

TEST_F(OutboxTest, ItIsForgottenPieceByPiece) {
  Outbox box;
  box.add(numbered(kLarge, 'a'));
  const std::size_t sent = send(box).size();
  EXPECT_TRUE(box.drop_piece());
  EXPECT_LT(box.bytes(), kLarge - sent);
  int pieces = 1;
  while (box.drop_piece()) ++pieces;
  EXPECT_GE(pieces, 3);
  EXPECT_TRUE(box.empty());
  EXPECT_FALSE(box.drop_piece());
}

TEST_F(OutboxTest, AReaderThatIsGoneIsNoticed) {
  Outbox box;
  box.add("nobody reads this");
  reader_ = Fd();
  EXPECT_FALSE(box.send_to(writer_.get()));
}

}  // namespace
}  // namespace shaper
