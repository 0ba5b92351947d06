// Owners of flows: which class and buckets they give, what holds until they are known, and that no packet is lost, late
// or out of order for it.
#include "shaper/core/owner.h"

#include <gmock/gmock.h>

#include <deque>
#include <map>

#include "shaper/core/image.h"
#include "tests/sim_policy.h"
#include "tests/sim_random.h"

namespace shaper::sim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint32_t kBytes = 1'000;
constexpr std::uint64_t kWireBytes = kBytes + 14;

Owner process(std::string name, std::uint32_t pid = 100) {
  Owner owner;
  owner.process = std::move(name);
  owner.pid = pid;
  owner.started = 7;
  return owner;
}

Owner in_cgroup(std::string path) {
  Owner owner;
  owner.cgroup = std::move(path);
  return owner;
}

ClassPolicy class_of_process(std::string name, std::optional<DataRate> rate, std::string wanted) {
  ClassPolicy policy = default_class(rate, std::move(name));
  policy.is_default = false;
  policy.match.resize(1);
  policy.match[0].process = {std::move(wanted)};
  return policy;
}

/// Class 0 is for rsync at 1 Mbit/s, class 1 for all others.
Policy rsync_is_slow() {
  Policy policy = policy_of(class_of_process("slow", 1_mbit, "rsync"), borrowing(default_class({}, "rest")));
  policy.finds_owners = true;
  return policy;
}

FlowKey key_of(std::uint16_t flow) {
  FlowKey key;
  key.family = Family::ipv4;
  key.protocol = kUdp;
  key.source_port = flow;
  return key;
}

struct Departed {
  Instant when;
  std::uint16_t flow = 0;
  ClassIndex class_index = 0;
  Nanos delay{};
};

/// A core whose wake-ups come in time. Each packet must depart or be dropped once, and a flow's in their order.
class Driven {
 public:
  explicit Driven(const Policy& policy) : policy_(policy), core_(policy, StartCredit::full, HashKey{}, now_) {}

  void send(std::uint16_t flow, int packets = 1, std::optional<std::uint32_t> user = {}) {
    for (int n = 0; n < packets; ++n) {
      Packet packet = packet_of(flow);
      packet.user = user;
      send(packet);
    }
  }

  /// An ICMP error, in a flow of its own, that tells of `about`.
  void send_error(std::uint16_t flow, std::uint16_t about) {
    Packet packet = packet_of(flow);
    packet.about.emplace();
    packet.about->family = Family::ipv4;
    packet.about->protocol = kUdp;
    packet.about->source_port = about;
    send(packet);
  }

  void tell(std::uint16_t flow, const Owner& owner) {
    core_.on_owner(key_of(flow), owner, now_, out_);
    take();
  }

  void run_for(Nanos time) {
    const Instant end = now_ + time;
    for (auto next = core_.next_departure(); next && *next <= end; next = core_.next_departure()) {
      now_ = std::max(now_, *next);
      core_.release(now_, out_);
      take();
    }
    now_ = end;
  }

  void swap(const Policy& policy) {
    policy_ = policy;
    core_.swap(policy, now_, out_);
    take();
  }

  void restart() {
    ImageWriter writer;
    core_.save(writer, now_);
    ImageReader reader(writer.bytes());
    auto heir = Shaper::restore(policy_, HashKey{}, reader, now_, out_);
    ASSERT_TRUE(heir);
    core_ = std::move(*heir);
    take();
  }

  /// The flows that the core asks about, since the last call.
  std::vector<std::uint16_t> asked() {
    std::vector<FlowKey> keys;
    core_.owners_wanted(keys);
    std::vector<std::uint16_t> flows;
    for (const FlowKey& key : keys) flows.push_back(key.source_port);
    return flows;
  }

  [[nodiscard]] ClassIndex class_of(std::uint16_t flow) const {
    std::vector<FlowSnapshot> flows;
    for (FlowCursor cursor; !cursor.done;) core_.flows(cursor, 100, now_, flows);
    for (const FlowSnapshot& each : flows) {
      if (each.headers.source_port == flow) return each.class_index;
    }
    return ~ClassIndex{0};
  }

  [[nodiscard]] std::uint64_t bytes_of(ClassIndex index) const {
    return kWireBytes * static_cast<std::uint64_t>(std::count_if(
                            departed_.begin(), departed_.end(), [&](auto& each) { return each.class_index == index; }));
  }

  [[nodiscard]] std::size_t held() const { return waiting_.size(); }
  [[nodiscard]] const std::vector<Departed>& departed() const { return departed_; }
  [[nodiscard]] CoreSnapshot snapshot() const { return core_.snapshot(now_); }
  [[nodiscard]] Instant now() const { return now_; }
  [[nodiscard]] Shaper& core() { return core_; }

 private:
  Packet packet_of(std::uint16_t flow) {
    Packet packet;
    packet.id = {0, ++number_};
    packet.headers.family = Family::ipv4;
    packet.headers.protocol = kUdp;
    packet.headers.source_port = flow;
    packet.ip_bytes = kBytes;
    return packet;
  }

  void send(const Packet& packet) {
    const std::uint16_t flow = packet.headers.source_port;
    waiting_[packet.id.number] = flow;
    in_flow_[flow].push_back(packet.id.number);
    core_.on_packet(packet, now_, out_);
    take();
  }

  void take() {
    for (const Verdict& verdict : std::exchange(out_, {})) {
      const auto found = waiting_.find(verdict.id.number);
      ASSERT_NE(found, waiting_.end()) << "a second verdict";
      std::deque<std::uint32_t>& line = in_flow_[found->second];
      if (verdict.decision != Decision::drop) {
        ASSERT_EQ(line.front(), verdict.id.number) << "out of order in flow " << found->second;
        departed_.push_back({now_, found->second, verdict.class_index, verdict.delay});
      }
      std::erase(line, verdict.id.number);
      waiting_.erase(found);
    }
  }

  Policy policy_;
  Instant now_{1s};
  Shaper core_;
  Verdicts out_;
  std::uint32_t number_ = 0;
  std::map<std::uint32_t, std::uint16_t> waiting_;
  std::map<std::uint16_t, std::deque<std::uint32_t>> in_flow_;
  std::vector<Departed> departed_;
};

std::uint64_t most(DataRate rate, Nanos time) {
  return bytes_in(rate, time).value + 1'514 + bytes_in(rate, kDefaultBurst).value;
}

// --- What the keys mean ----------------------------------------------------------------------------------------------

Holds holds_for(const Match& match, const Owner& owner) {
  Packet packet;
  packet.owner = &owner;
  return holds(match, packet, Direction::egress);
}

TEST(OwnerKeys, ACgroupIsItAndAllBelow) {
  Match match;
  match.cgroup = {"/system.slice/a.service"};
  EXPECT_EQ(holds_for(match, in_cgroup("/system.slice/a.service")), Holds::yes);
  EXPECT_EQ(holds_for(match, in_cgroup("/system.slice/a.service/worker")), Holds::yes);
  EXPECT_EQ(holds_for(match, in_cgroup("/system.slice/a.service2")), Holds::no);
  EXPECT_EQ(holds_for(match, in_cgroup("/system.slice")), Holds::no);
  EXPECT_EQ(holds_for(match, Owner{}), Holds::no);
  match.cgroup = {"/"};
  EXPECT_EQ(holds_for(match, in_cgroup("/any")), Holds::yes);
  EXPECT_EQ(holds_for(match, Owner{}), Holds::no) << "not known";
}

TEST(OwnerKeys, AUnitIsAPartOfThePath) {
  Match match;
  match.unit = {"a.service"};
  EXPECT_EQ(holds_for(match, in_cgroup("/system.slice/a.service")), Holds::yes);
  EXPECT_EQ(holds_for(match, in_cgroup("/a.service/below")), Holds::yes);
  EXPECT_EQ(holds_for(match, in_cgroup("/system.slice/aa.service")), Holds::no);
}

TEST(OwnerKeys, ANameIsComparedAsFarAsTheKernelKeepsIt) {
  Match match;
  match.process = {"a-very-long-program"};
  EXPECT_EQ(holds_for(match, process("a-very-long-pro")), Holds::yes);
  EXPECT_EQ(holds_for(match, process("a-very-long-pr")), Holds::no);
  match.process = {"unknown"};
  EXPECT_EQ(holds_for(match, Owner{}), Holds::yes);
  EXPECT_EQ(holds_for(match, process("curl")), Holds::no);
}

TEST(OwnerKeys, AContainerHasAnIdAndAName) {
  Owner owner;
  owner.container = "0123456789abcdef";
  owner.container_name = "web";
  Match match;
  for (const char* name : {"web", "0123", "0123456789ab"}) {
    match.container = {name};
    EXPECT_EQ(holds_for(match, owner), Holds::yes) << name;
  }
  match.container = {"we"};
  EXPECT_EQ(holds_for(match, owner), Holds::no);
}

TEST(OwnerKeys, WhatIsNotKnownYetMayHold) {
  Packet packet;
  packet.owner_pending = true;
  Match match;
  match.pid = {5};
  EXPECT_EQ(holds(match, packet, Direction::egress), Holds::perhaps);
  Match other;
  other.none_of = {match};
  EXPECT_EQ(holds(other, packet, Direction::egress), Holds::perhaps);
  match.source_port = {{9, 9}};
  EXPECT_EQ(holds(match, packet, Direction::egress), Holds::no) << "whoever it is";
}

// --- Until it is known -----------------------------------------------------------------------------------------------

TEST(Owner, UntilItIsKnownTheStrictestClassHolds) {
  Driven core(rsync_is_slow());
  core.send(1, 50);
  EXPECT_GT(core.held(), 45U);
  EXPECT_THAT(core.asked(), ElementsAre(1));
  core.run_for(5ms);
  core.tell(1, process("curl"));
  EXPECT_EQ(core.held(), 0U) << "nothing makes it wait any more";
  EXPECT_EQ(core.core().next_departure(), std::nullopt) << "nor wakes anybody up";
  EXPECT_EQ(core.class_of(1), 1U);
  EXPECT_THAT(core.departed(), SizeIs(50));
}

TEST(Owner, TheOneThatIsMeantStaysLimited) {
  Driven core(rsync_is_slow());
  core.send(1, 50);
  core.tell(1, process("rsync"));
  core.run_for(100ms);
  EXPECT_LE(core.bytes_of(0), most(1_mbit, 100ms));
  EXPECT_GT(core.held(), 30U);
}

TEST(Owner, WithoutAnAnswerItIsUnknownAfter20ms) {
  Driven core(rsync_is_slow());
  core.send(1, 50);
  core.run_for(20ms - 1ns);
  EXPECT_GT(core.held(), 40U);
  core.run_for(1ns);
  EXPECT_EQ(core.held(), 0U);
  EXPECT_EQ(core.snapshot().owners.late, 1U);
  core.tell(1, process("rsync"));
  core.send(1, 50);
  EXPECT_GT(core.held(), 40U) << "a late answer counts too";
}

TEST(Owner, WhereNobodyFindsThemTheyAreUnknownAtOnce) {
  Policy policy = rsync_is_slow();
  policy.finds_owners = false;
  Driven core(policy);
  core.send(1, 50);
  EXPECT_EQ(core.held(), 0U);
  EXPECT_THAT(core.asked(), IsEmpty());
}

TEST(Owner, AFlowThatCannotBeMeantDoesNotWait) {
  Policy policy = rsync_is_slow();
  policy.classes[0].match[0].source_port = {{1, 1}};
  Driven core(policy);
  core.send(2, 50);
  EXPECT_EQ(core.held(), 0U);
}

/// Class 0 is for user 1000 at 1 Mbit/s, class 1 for all others.
Policy a_user_is_slow() {
  Policy policy = policy_of(default_class(1_mbit, "users"), borrowing(default_class({}, "rest")));
  policy.classes[0].is_default = false;
  policy.classes[0].match.resize(1);
  policy.classes[0].match[0].user.ids = {{1000, 1000}};
  return policy;
}

TEST(Owner, TheUserOfASocketIsLearntToo) {
  Policy policy = a_user_is_slow();
  policy.finds_owners = true;
  Driven core(policy);
  core.send(1);
  Owner owner = process("curl");
  owner.user = 1000;
  core.tell(1, owner);
  EXPECT_EQ(core.class_of(1), 0U);
}

TEST(Owner, AnIcmpErrorIsOfWhoeverHasTheFlowThatItTellsOf) {
  Driven core(a_user_is_slow());
  core.send(1, 1, 1000);
  core.send(2, 1, 2000);
  core.send_error(9, 1);
  EXPECT_EQ(core.class_of(9), 0U);
  core.send_error(9, 7);
  EXPECT_EQ(core.class_of(9), 0U) << "of a flow that nobody has seen";
  core.send_error(9, 2);
  EXPECT_EQ(core.class_of(9), 1U);

  Driven finding(rsync_is_slow());
  finding.send(1);
  finding.tell(1, process("rsync"));
  finding.send(2);
  finding.tell(2, process("curl"));
  finding.send_error(9, 1);
  finding.tell(9, {});
  EXPECT_EQ(finding.class_of(9), 0U) << "it has no socket";
  finding.send_error(9, 2);
  EXPECT_EQ(finding.class_of(9), 1U);
}

// --- What they have sent ---------------------------------------------------------------------------------------------

std::map<std::string, std::uint64_t> sent_by(const Driven& core) {
  std::map<std::string, std::uint64_t> sent;
  for (const OwnerTotal& total : core.snapshot().owner_totals) {
    EXPECT_EQ(total.wire_bytes.value, total.sent_packets * kWireBytes);
    sent[total.cgroup + "|" + total.container] = total.sent_packets;
  }
  return sent;
}

TEST(OwnerTotals, AreOfContainersAndOfOtherCgroups) {
  Driven core(rsync_is_slow());
  const auto sends = [&core](std::uint16_t flow, const Owner& owner) {
    core.send(flow, 2);  // before it is known, and after
    core.tell(flow, owner);
    core.send(flow, 3);
    core.run_for(1s);
  };
  Owner web = in_cgroup("/machine/web");
  web.container = std::string(64, 'a');
  sends(1, in_cgroup("/backup"));
  sends(2, in_cgroup("/backup"));
  sends(3, process("curl"));
  sends(4, web);
  web.container_name = "web";
  sends(5, web);
  const std::map<std::string, std::uint64_t> expected{
      {"/backup|", 10}, {"unknown|", 5}, {"|aaaaaaaaaaaa", 5}, {"|web", 5}};
  EXPECT_EQ(sent_by(core), expected);
  core.restart();
  core.send(1, 2);
  EXPECT_EQ(sent_by(core).at("/backup|"), 12u) << "after a restart of the program";
}

TEST(OwnerTotals, AreBounded) {
  Driven core(rsync_is_slow());
  for (std::uint16_t n = 1; n <= 300; ++n) {
    core.send(n);
    core.tell(n, in_cgroup("/" + std::to_string(n)));
  }
  core.run_for(1s);
  EXPECT_THAT(sent_by(core), SizeIs(257));
  EXPECT_EQ(sent_by(core).at("other|"), 44u);
  core.run_for(120s);
  for (std::uint16_t n = 301; n <= 310; ++n) core.send(n);  // flows that have ended are forgotten when others come
  core.tell(301, in_cgroup("/new"));
  EXPECT_EQ(sent_by(core).at("/new|"), 1u) << "whoever has no flow makes room";
}

// --- When it is asked again ------------------------------------------------------------------------------------------

TEST(Owner, ItIsLookedAtAgainAfterAPauseAndNowAndThen) {
  Driven core(rsync_is_slow());
  core.send(1);
  EXPECT_THAT(core.asked(), ElementsAre(1));
  core.tell(1, process("curl"));
  for (int n = 0; n < 19; ++n) {
    core.run_for(500ms);
    core.send(1);
  }
  EXPECT_THAT(core.asked(), IsEmpty()) << "9.5 s";
  core.run_for(500ms);
  core.send(1);
  EXPECT_THAT(core.asked(), ElementsAre(1)) << "10 s";
  core.run_for(1s);
  core.send(1, 3);
  EXPECT_THAT(core.asked(), ElementsAre(1)) << "it paused";
  EXPECT_EQ(core.class_of(1), 1U) << "what was known holds until the answer";
  core.tell(1, process("rsync", 101));
  EXPECT_EQ(core.class_of(1), 0U) << "the socket is somebody else's";
}

TEST(Owner, WhoWasNotFoundIsTriedAgainSoon) {
  Driven core(rsync_is_slow());
  core.send(1);
  core.tell(1, Owner{});
  EXPECT_THAT(core.asked(), ElementsAre(1));
  for (int n = 0; n < 10; ++n) {
    core.run_for(100ms);
    core.send(1);
  }
  EXPECT_THAT(core.asked(), ElementsAre(1));
}

TEST(Owner, ASocketThatIsClosingKeepsItsProcess) {
  Driven core(rsync_is_slow());
  core.send(1);
  Owner owner = process("rsync");
  owner.cgroup = "/a";
  core.tell(1, owner);
  core.tell(1, in_cgroup("/a"));
  core.tell(1, Owner{});
  EXPECT_EQ(core.class_of(1), 0U);
}

TEST(Owner, AFloodIsNotAskedForWithoutBound) {
  Policy policy = rsync_is_slow();
  Driven core(policy);
  for (std::uint16_t flow = 1; flow <= 10'000; ++flow) core.send(flow);
  EXPECT_THAT(core.asked(), SizeIs(4'096));
  core.run_for(1s);
  for (std::uint16_t flow = 9'001; flow <= 9'100; ++flow) core.send(flow);
  EXPECT_THAT(core.asked(), SizeIs(100)) << "they ask again";
}

// --- Buckets ---------------------------------------------------------------------------------------------------------

TEST(Owner, EachProcessHasOneBucketForAllItsConnections) {
  Policy policy = policy_of(borrowing(default_class()));
  policy.classes[0].each = each_of(EachBy::process, 2_mbit);
  policy.finds_owners = true;
  Driven core(policy);
  for (std::uint16_t flow = 1; flow <= 200; ++flow) {
    core.send(flow);
    core.tell(flow, process("curl", flow % 2 == 0 ? 100U : 101U));
    core.send(flow, 4);
    core.run_for(10ms);
  }
  EXPECT_LE(core.departed().size() * kWireBytes, 2 * most(2_mbit, 2s));
  EXPECT_GE(core.departed().size() * kWireBytes, 2 * bytes_in(2_mbit, 1900ms).value);
}

TEST(Owner, PacketsOfNewFlowsAllPassTheBucketOfTheUnknown) {
  for (const EachBy by : {EachBy::process, EachBy::cgroup, EachBy::container, EachBy::user}) {
    Policy policy = policy_of(borrowing(default_class()));
    policy.classes[0].each = each_of(by, 100_kbit);
    policy.finds_owners = true;
    Driven core(policy);
    Owner owner = process("dig");
    owner.user = 1000;
    owner.cgroup = "/a";
    owner.container = "0123";
    for (std::uint16_t flow = 1; flow <= 1'000; ++flow) {
      core.send(flow);
      core.tell(flow, owner);
      core.run_for(1ms);
      if (flow % 2 == 0) core.swap(policy);  // nor does a change of policy fill it
    }
    EXPECT_LE(core.departed().size() * kWireBytes, most(100_kbit, 1s) + most(100_kbit, 0s)) << static_cast<int>(by);
  }
}

TEST(Owner, EachUserHasABucketAndSoHaveThoseWithoutOne) {
  Policy policy = policy_of(borrowing(default_class()));
  policy.classes[0].each = each_of(EachBy::user, 1_mbit);
  Driven core(policy);
  for (int n = 0; n < 1'000; ++n) {
    core.send(1, 1, 1000);
    core.send(2, 1, 1000);
    core.send(3, 1, 1001);
    core.send(4);
    core.run_for(1ms);
  }
  EXPECT_LE(core.departed().size() * kWireBytes, 3 * most(1_mbit, 1s));
  EXPECT_GE(core.departed().size() * kWireBytes, 3 * bytes_in(1_mbit, 980ms).value);
}

TEST(Owner, ShortConnectionsHaveNoSecondRateWhileTheyAreNotKnown) {
  Policy policy = rsync_is_slow();
  policy.classes[1] = default_class(800_kbit, "rest");  // stricter: new flows begin there
  Driven core(policy);
  for (std::uint16_t flow = 1; flow <= 1'000; ++flow) {
    core.send(flow);
    core.run_for(2ms);
    core.tell(flow, process("rsync"));
    core.send(flow);
    core.run_for(8ms);
  }
  EXPECT_LE(core.departed().size() * kWireBytes, most(1_mbit, 10s) + most(800_kbit, 0s));
  EXPECT_GE(core.departed().size() * kWireBytes, bytes_in(1_mbit, 9'500ms).value);
}

// --- A change of policy, another process, a log ----------------------------------------------------------------------

TEST(Owner, ALimitOnAProcessMeetsConnectionsThatAreThere) {
  Policy before = policy_of(borrowing(default_class()));
  Driven core(before);
  core.send(1, 10);
  core.send(2, 10);
  Policy after = before;
  after.finds_owners = true;
  after.limits.push_back(limit_named("live-1", 1_mbit, KeyPolicy{EachBy::all}));
  after.limits[0].match.resize(1);
  after.limits[0].match[0].pid = {100};
  after.classes[0].limits = {0};
  core.swap(after);
  EXPECT_THAT(core.asked(), testing::UnorderedElementsAre(1, 2)) << "without waiting for a packet";
  core.send(1, 50);
  EXPECT_EQ(core.held(), 0U) << "it goes on until the answer";
  Owner owner = process("curl");
  owner.lineage = {100};
  core.tell(1, owner);
  core.tell(2, process("wget", 200));
  core.send(1, 50);
  core.send(2, 50);
  EXPECT_GT(core.held(), 45U);
  EXPECT_LE(core.held(), 50U);
  core.restart();
  core.send(1, 10);
  EXPECT_GT(core.held(), 55U) << "another process goes on with what was found";
  core.swap(before);
  EXPECT_EQ(core.held(), 0U);
}

TEST(Owner, AnAnswerThatIsAwaitedComesAfterAChangeOfPolicyToo) {
  Driven core(rsync_is_slow());
  core.send(1, 50);
  core.swap(rsync_is_slow());
  EXPECT_GT(core.held(), 45U);
  core.restart();
  EXPECT_GT(core.held(), 45U);
  EXPECT_THAT(core.asked(), ElementsAre(1));
  core.run_for(20ms);
  EXPECT_EQ(core.held(), 0U);
}

TEST(Owner, WhateverComesEachClassKeepsItsRateAndEachFlowItsOrder) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    Policy policy = rsync_is_slow();
    policy.classes[0].max_delay = 10s;
    policy.classes[1] = default_class(5_mbit, "rest");
    policy.classes[1].max_delay = 10s;
    if (random.chance(50)) policy.classes[1].each = each_of(EachBy::process, 1_mbit);
    if (random.chance(50)) policy.classes[0].fair = Fair::off;
    if (random.chance(50)) policy.links[0].rate = 4_mbit;
    Driven core(policy);
    const Instant begin = core.now();
    for (int step = 0; step < 400; ++step) {
      const auto flow = static_cast<std::uint16_t>(1 + random.below(8));
      const auto choice = random.below(10);
      if (choice < 5) core.send(flow, static_cast<int>(random.below(5)));
      if (choice == 5) core.tell(flow, process("rsync", static_cast<std::uint32_t>(random.below(3))));
      if (choice == 6) core.tell(flow, process("curl", static_cast<std::uint32_t>(random.below(3))));
      if (choice == 7) core.run_for(Nanos{static_cast<std::int64_t>(random.below(50'000'000))});
      if (choice == 8) core.run_for(Nanos{static_cast<std::int64_t>(random.below(3'000'000))});
      if (choice == 9 && step % 10 == 0) random.chance(50) ? core.swap(policy) : core.restart();
    }
    const Nanos time = core.now() - begin;
    EXPECT_LE(core.bytes_of(0), most(1_mbit, time)) << seed;
    EXPECT_LE(core.bytes_of(1), most(5_mbit, time)) << seed;
    core.run_for(20s);
    EXPECT_EQ(core.held(), 0U) << seed;
    for (const ClassSnapshot& cls : core.snapshot().classes) {
      EXPECT_EQ(cls.in_packets, cls.traffic.sent_packets + cls.traffic.dropped_packets()) << seed;
    }
  }
}

}  // namespace
}  // namespace shaper::sim
