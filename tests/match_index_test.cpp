// Classes found by tables: always the one that asking all of them in order would find.
#include "shaper/core/match_index.h"

#include <gmock/gmock.h>

#include "shaper/core/classifier.h"
#include "tests/sim_random.h"

namespace shaper::sim {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

/// Few different values, so that many tables hold for many packets.
Address some_address(Random& random, Family family) {
  Address address{10, static_cast<std::uint8_t>(random.below(3)), 0, static_cast<std::uint8_t>(random.below(4))};
  if (family == Family::ipv6) address[15] = static_cast<std::uint8_t>(random.below(4));
  return address;
}

Prefix some_prefix(Random& random) {
  Prefix prefix;
  prefix.family = random.chance(70) ? Family::ipv4 : Family::ipv6;
  prefix.address = some_address(random, prefix.family);
  const bool whole = random.chance(60);
  prefix.bits = static_cast<std::uint8_t>(prefix.family == Family::ipv4 ? whole ? 32 : random.between(0, 32)
                                          : whole ? 128
                                                                        : random.between(0, 128));
  return prefix;
}

template <typename Number>
Range<Number> some_range(Random& random) {
  const auto first = static_cast<Number>(random.below(6));
  return {first, static_cast<Number>(first + (random.chance(20) ? 1'000 : random.below(3)))};
}

Match some_match(Random& random) {
  Match match;
  for (auto* prefixes : {&match.source, &match.destination, &match.local, &match.remote}) {
    while (random.chance(25)) prefixes->push_back(some_prefix(random));
  }
  for (auto* ports : {&match.source_port, &match.destination_port, &match.local_port, &match.remote_port}) {
    while (random.chance(25)) ports->push_back(some_range<std::uint16_t>(random));
  }
  for (auto* owner : {&match.user, &match.group}) {
    while (random.chance(25)) owner->ids.push_back(some_range<std::uint32_t>(random));
    owner->unknown = random.chance(5);
  }
  if (random.chance(10)) match.protocol = {kTcp};
  if (random.chance(10)) match.process = {"rsync"};
  return match;
}

Packet some_packet(Random& random) {
  Packet packet;
  Headers& headers = packet.headers;
  headers.family = random.chance(60) ? Family::ipv4 : Family::ipv6;
  headers.source = some_address(random, headers.family);
  headers.destination = some_address(random, headers.family);
  headers.source_port = static_cast<std::uint16_t>(random.below(8));
  headers.destination_port = static_cast<std::uint16_t>(random.below(8));
  headers.protocol = random.chance(50) ? kTcp : kUdp;
  if (random.chance(70)) packet.user = static_cast<std::uint32_t>(random.below(8));
  if (random.chance(70)) packet.group = static_cast<std::uint32_t>(random.below(8));
  packet.owner_pending = random.chance(20);
  return packet;
}

TEST(MatchIndex, NamesInOrderEachTableThatHolds) {
  for (const std::uint64_t seed : seeds(200)) {
    Random random(seed);
    const Direction direction = random.chance(50) ? Direction::egress : Direction::ingress;
    std::vector<Match> matches(random.between(1, 60));
    std::vector<const Match*> tables;
    for (Match& match : matches) {
      match = some_match(random);
      tables.push_back(random.chance(3) ? nullptr : &match);
    }
    const MatchIndex index(tables, direction);
    for (int n = 0; n < 50; ++n) {
      const Packet packet = some_packet(random);
      std::vector<std::uint32_t> asked;
      index.ask(packet, [&](std::uint32_t number) {
        asked.push_back(number);
        return false;
      });
      EXPECT_TRUE(std::adjacent_find(asked.begin(), asked.end(), std::greater_equal<>()) == asked.end())
          << "seed " << seed << ": in order, each once";
      for (std::uint32_t number = 0; number < tables.size(); ++number) {
        if (tables[number] != nullptr && holds(*tables[number], packet, direction) == Holds::no) continue;
        EXPECT_TRUE(std::binary_search(asked.begin(), asked.end(), number)) << "seed " << seed << ", table " << number;
      }
    }
  }
}

std::vector<std::uint32_t> asked_for(const std::vector<Match>& matches, const Packet& packet) {
  std::vector<const Match*> tables;
  for (const Match& match : matches) tables.push_back(&match);
  std::vector<std::uint32_t> asked;
  MatchIndex(tables, Direction::egress).ask(packet, [&](std::uint32_t number) {
    asked.push_back(number);
    return false;
  });
  return asked;
}

TEST(MatchIndex, AsksOnlyWhatCanHold) {
  Packet packet;
  packet.headers.family = Family::ipv4;
  packet.headers.destination = {10, 0, 3, 7};
  packet.headers.destination_port = 443;
  packet.user = 1'007;
  std::vector<Match> by_user(1'000);
  std::vector<Match> by_subnet(1'000);
  std::vector<Match> by_port(1'000);
  for (std::uint16_t n = 0; n < 1'000; ++n) {
    by_user[n].user.ids = {{1'000U + n, 1'000U + n}};
    by_user[n].remote = {{Family::ipv4, {10}, 8}};  // all have it: it tells nothing apart
    const auto low = static_cast<std::uint8_t>(n);
    by_subnet[n].remote = {{Family::ipv4, {10, static_cast<std::uint8_t>(n >> 8), low}, 24}};
    by_port[n].destination_port = {{n, n}};
  }
  EXPECT_THAT(asked_for(by_user, packet), ElementsAre(7));
  EXPECT_THAT(asked_for(by_subnet, packet), ElementsAre(3));
  EXPECT_THAT(asked_for(by_port, packet), ElementsAre(443));
  for (Match& match : by_user) match.user.unknown = true;
  EXPECT_THAT(asked_for(by_user, packet), SizeIs(1'000));
}

}  // namespace
}  // namespace shaper::sim
