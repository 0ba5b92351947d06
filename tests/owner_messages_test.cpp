// Asks and answers on their way between the worker and whoever finds owners.
#include "shaper/live/owner_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shaper/model/address_text.h"

namespace shaper {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

OwnerAsk ask(std::uint64_t id, std::string_view local, std::string_view remote) {
  const auto [family, address] = parse_address(local).value();
  return {id, family, kTcp, address, parse_address(remote).value().second, 40'000, 443};
}

Owner whole_owner() {
  Owner owner;
  owner.user = 4'294'967'295;
  owner.cgroup = "/system.slice/backup.service";
  owner.process = "rsync";
  owner.pid = 4'194'304;
  owner.started = 18'446'744'073'709'551'615U;
  owner.lineage = {1, 77};
  owner.container = std::string(64, 'a');
  owner.container_name = "web";
  return owner;
}

TEST(OwnerMessages, AsksAreReadAsTheyWereWritten) {
  OwnerAsk other;  // neither IPv4 nor IPv6
  other.id = 3;
  const std::vector<OwnerAsk> asks{ask(18'446'744'073'709'551'615U, "10.0.0.1", "10.0.0.2"),
                                   ask(2, "2001:db8::1", "::ffff:10.0.0.2"), other};
  EXPECT_EQ(parse_owner_asks(owner_asks_text(asks)), asks);
}

TEST(OwnerMessages, AnswersAreReadAsTheyWereWritten) {
  Owner root;
  root.user = 0;
  const std::vector<OwnerAnswer> answers{{7, whole_owner()}, {8, {}}, {9, root}};
  EXPECT_EQ(parse_owner_answers(owner_answers_text(answers)), answers);
}

TEST(OwnerMessages, NamesMayHoldAnything) {
  for (const std::string name : {"a\nb", "\"\n\x1b]0;x\x07", "\\x0a\\", "<script>", "7 pid=1", "\r", "\xff\xfe", " ",
                                 "\"", "%0a", "9 user=1\n"}) {
    Owner owner = whole_owner();
    owner.cgroup = owner.process = owner.container = owner.container_name = name;
    const std::string text = owner_answers_text(std::vector<OwnerAnswer>{{7, owner}, {8, {}}});
    EXPECT_THAT(parse_owner_answers(text), ElementsAre(OwnerAnswer{7, owner}, OwnerAnswer{8, {}})) << text;
    EXPECT_EQ(text.find_first_of("\x1b\r\x07"), std::string::npos);
  }
}

TEST(OwnerMessages, WhatIsNoneIsLeftOut) {
  const OwnerAsk good = ask(5, "10.0.0.1", "10.0.0.2");
  const std::string line = owner_asks_text(std::vector<OwnerAsk>{good});
  EXPECT_THAT(parse_owner_asks("x\n1 6 10.0.0.1:1 [2001:db8::1]:1\n1 256 10.0.0.1:1 10.0.0.2:1\n" + line),
              ElementsAre(good));
  for (const char* bad :
       {"", "x", "-1", "1 x", "1 user=x", "1 pid=4294967296", "1 of=", "1 process=%4", "1 name=%zz"}) {
    EXPECT_THAT(parse_owner_answers(std::string(bad) + "\n"), IsEmpty()) << bad;
  }
}

}  // namespace
}  // namespace shaper
