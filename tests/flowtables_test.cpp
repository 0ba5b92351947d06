// Messages by hand, as linux/netfilter/nf_tables.h lays them out.
#include "shaper/live/flowtables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

namespace shaper {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Bytes = std::vector<std::uint8_t>;

Bytes operator+(Bytes left, const Bytes& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

Bytes little(std::size_t value, int bytes) {
  Bytes made;
  for (int i = 0; i < bytes; ++i) made.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  return made;
}

Bytes name(int type, std::string_view text) {
  Bytes made = little(4 + text.size() + 1, 2) + little(static_cast<std::size_t>(type), 2);
  made.insert(made.end(), text.begin(), text.end());
  made.push_back(0);
  while (made.size() % 4 != 0) made.push_back(0);
  return made;
}

Bytes message(std::uint16_t type, const Bytes& body) {
  return little(16 + body.size(), 4) + little(type, 2) + little(2, 2) + little(0, 8) + body;
}

constexpr std::uint16_t kNewFlowtable = 0xa16;  // NFNL_SUBSYS_NFTABLES 10, NFT_MSG_NEWFLOWTABLE 22
const Bytes kInet{1, 0, 0, 0};
const Bytes kFast = kInet + name(1, "filter") + name(2, "fast");
const Bytes kDone = message(3, {0, 0, 0, 0});

TEST(Flowtables, AreReadFromADump) {
  std::vector<Flowtable> found;
  const Bytes second = kInet + name(2, "slow") + Bytes{8, 0, 99, 0, 1, 2, 3, 4} + name(1, "nat");
  EXPECT_TRUE(parse_flowtables(message(kNewFlowtable, kFast) + message(kNewFlowtable, second), found));
  EXPECT_FALSE(parse_flowtables(kDone, found));
  EXPECT_THAT(found, ElementsAre(Flowtable{"filter", "fast"}, Flowtable{"nat", "slow"}));
}

TEST(Flowtables, OfANamespaceWithoutAnyAreNone) {
  std::vector<Flowtable> found;
  EXPECT_FALSE(parse_flowtables(kDone, found));
  EXPECT_FALSE(parse_flowtables(message(2, Bytes(20, 0)), found)) << "the kernel refused";
  EXPECT_TRUE(parse_flowtables({}, found));
  EXPECT_TRUE(parse_flowtables(message(0xa14, kFast), found)) << "another kind of object";
  EXPECT_THAT(found, IsEmpty());
}

TEST(Flowtables, InADatagramCutAnywhereNothingIsReadBehindItsEnd) {
  const Bytes whole = message(kNewFlowtable, kFast);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    std::vector<Flowtable> found;
    EXPECT_TRUE(parse_flowtables(cut, found)) << size;
    EXPECT_LE(found.size(), 1U);
  }
}

}  // namespace
}  // namespace shaper
