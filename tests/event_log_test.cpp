// The event log: every line comes back as what it was written from, and a line that is none is told from one.
#include "shaper/model/event_log.h"

#include <gtest/gtest.h>

#include <random>

#include "shaper/model/event_names.h"
#include "shaper/model/live_limits.h"

namespace shaper {
namespace {

using namespace std::chrono_literals;

constexpr Instant kNow{123'456'789'012ns};

Policy one_class() {
  Policy policy;
  policy.links.emplace_back().name = "up";
  ClassPolicy all;
  all.name = "all";
  policy.classes = {all};
  return policy;
}

Packet random_packet(std::mt19937_64& random) {
  const auto any = [&random](std::uint64_t below) { return random() % below; };
  Packet packet;
  packet.id = {static_cast<std::uint16_t>(random()), static_cast<std::uint32_t>(random())};
  packet.link = static_cast<LinkIndex>(any(3));
  packet.queue = any(2) == 0 ? QueueKind::fast : QueueKind::split;
  packet.super = any(2) == 0;
  Headers& headers = packet.headers;
  headers.family = std::array{Family::other, Family::ipv4, Family::ipv6}.at(any(3));
  const std::size_t bytes = headers.family == Family::ipv6 ? 16 : headers.family == Family::ipv4 ? 4 : 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    headers.source[i] = static_cast<std::uint8_t>(any(4) == 0 ? 0 : random());
    headers.destination[i] = static_cast<std::uint8_t>(random());
  }
  headers.source_port = static_cast<std::uint16_t>(random());
  headers.destination_port = static_cast<std::uint16_t>(any(2) * random());
  headers.protocol = any(2) == 0 ? static_cast<std::uint8_t>(random()) : std::array{kTcp, kIcmp, kIcmpv6}.at(any(3));
  headers.dscp = static_cast<std::uint8_t>(any(64));
  headers.ecn = static_cast<std::uint8_t>(any(4));
  headers.network_bytes = static_cast<std::uint16_t>(random());
  headers.transport_bytes = static_cast<std::uint16_t>(random());
  headers.fragment = any(2) == 0;
  packet.ip_bytes = static_cast<std::uint32_t>(random());
  packet.mark = static_cast<std::uint32_t>(any(2) * random());
  if (any(2) == 0) packet.user = static_cast<std::uint32_t>(random());
  if (any(2) == 0) packet.group = static_cast<std::uint32_t>(random());
  if (any(2) == 0) {
    packet.about = {headers.destination, headers.source, static_cast<std::uint16_t>(random()),
                    headers.source_port, headers.family, static_cast<std::uint8_t>(any(2) == 0 ? kIcmpv6 : 77)};
  }
  return packet;
}

/// The one event in `text`, which ends with a line feed.
Event only_event(std::string text) {
  EXPECT_TRUE(text.ends_with('\n'));
  text.pop_back();
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  auto event = parse_event(text);
  EXPECT_TRUE(event) << text << "\n" << event.error();
  return event.value_or(Event{});
}

TEST(EventLog, EveryFieldOfAnArrivalComesBack) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 3000; ++i) {
    const Packet packet = random_packet(random);
    std::string text;
    EventLog(text).arrival(kNow, packet);
    const Event event = only_event(text);
    EXPECT_EQ(event.at, kNow);
    ASSERT_TRUE(std::holds_alternative<event::Arrival>(event.body)) << text;
    ASSERT_EQ(std::get<event::Arrival>(event.body).packet, packet) << text;
  }
}

TEST(EventLog, EveryVerdictComesBack) {
  for (const Decision decision : {Decision::accept, Decision::drop, Decision::detour, Decision::pass, Decision::mark}) {
    for (std::size_t reason = 0; reason < kDropReasons; ++reason) {
      Verdict verdict{{7, 4'000'000'000}, decision, static_cast<DropReason>(reason), 45, 3, {66'000}, 12'345'678ns};
      std::string text;
      EventLog(text).outcomes(kNow, {&verdict, 1});
      const Event event = only_event(text);
      EXPECT_TRUE(same_verdict(std::get<event::Outcome>(event.body).verdict, verdict)) << text;
      text.clear();
      EventLog(text).lost(kNow, verdict);
      EXPECT_TRUE(same_verdict(std::get<event::Lost>(only_event(text).body).verdict, verdict)) << text;
    }
  }
}

TEST(EventLog, AWalletComesBack) {
  const WalletState spent{3, {1}, {2}, {3}, {4}, {5}, ~std::uint64_t{0}, std::nullopt, false};
  WalletState refusing = spent;
  refusing.valid_until = kNow;
  refusing.refuses = true;
  for (const WalletState& wallet : {spent, refusing}) {
    std::string text;
    EventLog(text).wallet(wallet);
    EXPECT_EQ(std::get<event::Granting>(only_event(text).body).wallet, wallet) << text;
  }
}

TEST(EventLog, VerdictsDifferInAnythingThatIsMeant) {
  const Verdict verdict{{7, 1}, Decision::accept, DropReason::policed, 1, 0, {100}, 5ns};
  Verdict other = verdict;
  other.reason = DropReason::held;
  EXPECT_TRUE(same_verdict(verdict, other)) << "an accepted packet has no reason";
  other.decision = Decision::drop;
  EXPECT_FALSE(same_verdict(verdict, other));
  other = verdict;
  other.delay = 6ns;
  EXPECT_FALSE(same_verdict(verdict, other));
}

TEST(EventLog, AHeadSaysAllThatTheCoreIsMadeFrom) {
  const std::string policy_text = "# \"quoted\" \\ tab\there\r\nversion = 1\n\x01\xc3\xa9";
  const std::vector<event::Name> names{{event::Name::Kind::user, "b\"ob", 1000},
                                       {event::Name::Kind::group, "staff", 7}};
  const std::vector<std::uint32_t> mtus{1500, 9000};
  std::string text;
  EventLog(text).begin(kNow, {StartCredit::empty, HashKey{1, ~std::uint64_t{0}}}, one_class(), policy_text, names,
                       mtus);

  std::vector<Event> events;
  ASSERT_TRUE(text.starts_with("shaper events 1\n"));
  for (std::size_t at = text.find('\n') + 1; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    events.push_back(only_event(text.substr(at, end + 1 - at)));
    at = end + 1;
  }
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(std::get<event::Name>(events[0].body).name, "b\"ob");
  EXPECT_EQ(std::get<event::Name>(events[1].body).kind, event::Name::Kind::group);
  EXPECT_EQ(std::get<event::PolicyText>(events[2].body).text, policy_text);
  EXPECT_EQ(std::get<event::Mtu>(events[4].body).bytes, 9000u);
  EXPECT_EQ(events[5].at, kNow);
  EXPECT_EQ(std::get<event::Start>(events[5].body).credit, StartCredit::empty);
  EXPECT_EQ(std::get<event::Start>(events[5].body).key, (HashKey{1, ~std::uint64_t{0}}));
}

TEST(EventLog, GuardedPortsStandInFrontOfTheirPolicy) {
  Policy policy = one_class();
  policy.guard_ports = {22, 65'535};
  std::string text;
  EventLog log(text);
  log.begin(kNow, {}, policy, "a", {}, {});
  EXPECT_TRUE(text.starts_with("shaper events 1\nguard 22,65535\npolicy \"a\"\n")) << text;
  text.clear();
  policy.guard_ports = {22};
  log.swap(kNow, policy, "b", {});
  EXPECT_EQ(text, "guard 22\n123456789012 swap \"b\"\n");
  const auto event = parse_event("guard 22,65535");
  ASSERT_TRUE(event) << event.error();
  EXPECT_EQ(std::get<event::GuardPorts>(event->body).ports, (std::vector<std::uint16_t>{22, 65'535}));
}

TEST(EventLog, LiveLimitsStandInFrontOfTheirPolicy) {
  Policy policy = one_class();
  add_live_limits(policy, std::vector{LiveLimit{3, {5'000'000}, {}, "local=10.0.0.1", {}}});
  std::string text;
  EventLog log(text);
  log.swap(kNow, policy, "b", {});
  EXPECT_EQ(text, "live 3 5000000 \"local=10.0.0.1\"\n123456789012 swap \"b\"\n");
  const auto event = parse_event("live 3 5000000 \"local=10.0.0.1\"");
  ASSERT_TRUE(event) << event.error();
  EXPECT_EQ(std::get<event::Live>(event->body).id, 3U);
  EXPECT_EQ(std::get<event::Live>(event->body).selector, "local=10.0.0.1");
}

TEST(EventLog, TheOtherCallsComeBack) {
  std::string text;
  EventLog log(text);
  const auto take = [&text] { return only_event(std::exchange(text, {})).body; };
  log.release(kNow);
  EXPECT_TRUE(std::holds_alternative<event::Release>(take()));
  log.departed(kNow);
  EXPECT_TRUE(std::holds_alternative<event::Departed>(take()));
  log.queues_dry(kNow);
  EXPECT_TRUE(std::holds_alternative<event::QueuesDry>(take()));
  log.pass_all(kNow);
  EXPECT_TRUE(std::holds_alternative<event::PassAll>(take()));
  log.skipped(12);
  EXPECT_EQ(std::get<event::Skipped>(take()).lines, 12u);
  log.mtu(kNow, 2, 9000);
  EXPECT_EQ(std::get<event::MtuChange>(take()).bytes, 9000u);
  log.swap(kNow, one_class(), "a\nb", {});
  EXPECT_EQ(std::get<event::Swap>(take()).policy_text, "a\nb");
}

/// The keys of every kind of bucket that a limit may have.
std::vector<FlowKey> limit_keys() {
  FlowKey ipv4;
  ipv4.family = Family::ipv4;
  FlowKey address = ipv4;
  address.source = {10, 1, 2, 0};
  FlowKey ipv6;
  ipv6.family = Family::ipv6;
  ipv6.source = {0x20, 0x01, 0x0d, 0xb8};
  FlowKey flow = address;
  flow.destination = {192, 0, 2, 1};
  flow.source_port = 40'000;
  flow.destination_port = 443;
  flow.protocol = kTcp;
  FlowKey icmp = ipv6;
  icmp.protocol = kIcmpv6;
  FlowKey everything = flow;
  everything.link = 3;
  everything.mark = 0xffff'ffff;
  everything.dscp = 46;
  FlowKey destination = ipv4;
  destination.destination = {192, 0, 2, 1};
  FlowKey on_link;
  on_link.link = 1;
  return {{}, ipv4, address, ipv6, flow, icmp, everything, destination, on_link};
}

TEST(EventLog, EveryKeyOfAGrantComesBack) {
  for (const FlowKey& key : limit_keys()) {
    const Grant grant{{2, key}, {1'000'000'000'000}, kNow + 1s, {400'000'000'000}};
    std::string text;
    EventLog(text).grant(kNow, grant);
    const Event event = only_event(text);
    EXPECT_EQ(event.at, kNow);
    const auto& granted = std::get<event::Granted>(event.body).grant;
    EXPECT_EQ(granted.to, grant.to) << text;
    EXPECT_EQ(granted.bytes, grant.bytes);
    EXPECT_EQ(granted.valid_until, grant.valid_until);
    EXPECT_EQ(granted.pace, grant.pace);

    text.clear();
    EventLog(text).take_back(kNow, grant.to, {77});
    const auto taken = std::get<event::TakenBack>(only_event(text).body);
    EXPECT_EQ(taken.from, grant.to) << text;
    EXPECT_EQ(taken.bytes, ByteCount{77});
  }
}

TEST(EventLog, GrantsAreReadableAndNameTheirLimit) {
  Policy policy = one_class();
  policy.limits.emplace_back().name = "two words";
  std::string text;
  EventLog log(text);
  log.begin(kNow, {}, policy, "", {}, {});
  const std::vector<FlowKey> keys = limit_keys();
  const auto grant_line = [&](LimitIndex limit, const FlowKey& key) {
    text.clear();
    log.grant(kNow, {{limit, key}, {3000}, Instant{5s}, {8000}});
    return text;
  };
  EXPECT_EQ(grant_line(0, keys[0]), "123456789012 grant limit=0:two?words bytes=3000 until=5000000000 pace=8000\n");
  EXPECT_EQ(grant_line(1, keys[2]),
            "123456789012 grant limit=1:? bytes=3000 until=5000000000 pace=8000 key=10.1.2.0\n");
  text.clear();
  log.take_back(kNow, {0, keys[4]}, {77});
  EXPECT_EQ(text, "123456789012 take_back limit=0:two?words bytes=77 flow tcp 10.1.2.0:40000 > 192.0.2.1:443\n");
}

TEST(EventLog, AMarkIsWrittenLikeADeparture) {
  std::string text;
  EventLog log(text);
  log.begin(kNow, {}, one_class(), "", {}, {});
  text.clear();
  const Verdict verdict{{7, 1}, Decision::mark, DropReason::policed, 1, 0, {100}, 5ns};
  log.outcomes(kNow, {&verdict, 1});
  EXPECT_EQ(text, "123456789012 mark 7:1 class=0:all frames=1 wire=100 delay=5\n");
}

TEST(EventLog, AVerdictCarriesTheNameOfItsClassAsOneWord) {
  Policy policy = one_class();
  policy.classes[0].name = "two words";
  std::string text;
  EventLog log(text);
  log.begin(kNow, {}, policy, "", {}, {});
  text.clear();
  const Verdict verdict{{7, 1}, Decision::drop, DropReason::max_delay, 1, 0, {100}, 5ns};
  log.outcomes(kNow, {&verdict, 1});
  EXPECT_EQ(text, "123456789012 drop 7:1 class=0:two?words frames=1 wire=100 delay=5 reason=max_delay\n");
}

TEST(EventLog, NamesStandForTheNumbersOfTheHostThatWroteThem) {
  std::vector<event::Name> recorded;
  const NameLookup host{[](const std::string& name) { return name == "bob" ? std::optional(1000u) : std::nullopt; },
                        {}};
  const NameLookup recording = recording_lookup(host, recorded);
  EXPECT_EQ(recording.user("bob"), 1000u);
  EXPECT_EQ(recording.user("eve"), std::nullopt);
  EXPECT_FALSE(recording.group);
  const NameLookup replayed = recorded_lookup(recorded);
  EXPECT_EQ(replayed.user("bob"), 1000u);
  EXPECT_EQ(replayed.group("bob"), std::nullopt);
}

TEST(EventLog, ALineThatIsNoneIsToldFromOne) {
  struct Case {
    const char* line;
    const char* error;
  };
  const Case cases[] = {
      {"", "expected a time in nanoseconds, or policy, name, guard, owners, live, link, start, wallet, skipped"},
      {"hello", "expected a time in nanoseconds, or policy, name, guard, owners, live, link, start, wallet, skipped"},
      {"12", "expected the name of an event behind the time"},
      {"99999999999999999999 release",
       "expected a time in nanoseconds, or policy, name, guard, owners, live, link, start, wallet, skipped"},
      {"12 release now", "expected the end of the line"},
      {"12 mtu 0", "expected a number of bytes"},
      {"12 mtu 70000 1500", "expected the number of a link"},
      {"guard", "expected ports, `22,2222`"},
      {"guard 22,", "expected ports, `22,2222`"},
      {"guard 65536", "expected ports, `22,2222`"},
      {"guard 22 23", "expected the end of the line"},
      {"start 5 brimful", "expected `full` or `empty`"},
      {"start 5 full key=1", "expected two numbers in `key=`"},
      {"policy \"no end", "expected the policy in quotation marks"},
      {"policy \"a\\q\"", "expected the policy in quotation marks"},
      {"policy \"a\\x1\"", "expected the policy in quotation marks"},
      {"1 accept 7 class=0:a frames=1 wire=1 delay=1", "expected a packet's queue and number, `7:15`"},
      {"1 accept 7:1 class=a frames=1 wire=1 delay=1", "expected `class=index:name`"},
      {"1 accept 7:1 class=0:a frames=1 wire=-1 delay=1", "expected a number in `wire=`"},
      {"1 drop 7:1 class=0:a frames=1 wire=1 delay=1", "expected `reason=`"},
      {"1 mark 7:1 class=0:a frames=1 wire=1 delay=1 reason=aqm", "expected the end of the line"},
      {"1 grant 0:a bytes=1 until=1 pace=1", "expected `limit=`"},
      {"1 grant limit=a bytes=1 until=1 pace=1", "expected `limit=index:name`"},
      {"1 grant limit=70000:a bytes=1 until=1 pace=1", "expected `limit=index:name`"},
      {"1 grant limit=0:a bytes=-1 until=1 pace=1", "expected a number in `bytes=`"},
      {"1 grant limit=0:a bytes=1 pace=1", "expected `until=`"},
      {"1 grant limit=0:a bytes=1 until=1 pace=1 key=10.0.0", "expected an address in `key=`"},
      {"1 grant limit=0:a bytes=1 until=1 pace=1 colour=red", "expected one of key=, flow, link=, mark=, dscp="},
      {"1 grant limit=0:a bytes=1 until=1 pace=1 flow tcp 1.2.3.4:5 > [::1]:6", "expected two addresses of one family"},
      {"1 take_back limit=0:a", "expected `bytes=`"},
      {"1 take_back limit=0:a bytes=1 mark=x", "expected a number as a key's property"},
      {"1 drop 7:1 class=0:a frames=1 wire=1 delay=1 reason=fun", "expected the name of a reason for a drop"},
      {"1 lost 7:1", "expected the verdict that was lost"},
      {"1 arrive 7:1 link=0 queue=slow tcp 1.2.3.4:5 > 1.2.3.4:6 bytes=1 headers=1+1",
       "expected queue=fast or queue=split"},
      {"1 arrive 7:1 link=0 queue=fast xxx 1.2.3.4:5 > 1.2.3.4:6 bytes=1 headers=1+1", "expected a protocol"},
      {"1 arrive 7:1 link=0 queue=fast tcp 1.2.3.4 > 1.2.3.4:6 bytes=1 headers=1+1",
       "expected the source, address:port"},
      {"1 arrive 7:1 link=0 queue=fast tcp 1.2.3.4:5 > [::1]:6 bytes=1 headers=1+1",
       "expected two addresses of one family"},
      {"1 arrive 7:1 link=0 queue=fast tcp 1.2.3.4:5 > 1.2.3.4:6 bytes=1 headers=1+1 dscp=64",
       "expected a DSCP from 0 to 63"},
  };
  for (const Case& each : cases) {
    const auto event = parse_event(each.line);
    ASSERT_FALSE(event) << each.line;
    EXPECT_EQ(event.error(), each.error) << each.line;
  }
}

}  // namespace
}  // namespace shaper
