// Random trees of links, classes, hosts, flows and limits: every rule of the simulation holds (sim_rules.h), guarantees
// are kept, what is left is shared by weight, and nothing is left over while somebody waits.
//
// SHAPER_TEST_SEEDS=10000 tries that many, SHAPER_TEST_FIRST_SEED=4711 that one alone (sim_random.h).
#include <gtest/gtest.h>

#include "tests/sim.h"
#include "tests/sim_tree.h"

namespace shaper::sim {
namespace {

constexpr double kFrame = 1514;

// --- Every rule, whatever happens ------------------------------------------------------------------------------------

Experiment random_experiment(Random& random, std::uint64_t seed) {
  Experiment experiment{.policy = random_policy(random), .lateness = {}, .seed = seed};
  if (random.chance(30)) experiment.lateness = fixed_lateness(random.up_to(5ms));
  if (random.chance(30)) experiment.lateness = random_lateness(random.up_to(100ms));
  if (random.chance(20)) experiment.credit = StartCredit::empty;
  if (random.chance(30)) experiment.sending = random.up_to(2ms);
  experiment.count_every = 8;
  return experiment;
}

/// Somebody gives away or takes back what waits for grants, without any order.
void grant_at_random(Sim& sim, Random& random) {
  for (const Demand& entry : sim.demand()) {
    if (random.chance(30)) continue;
    const ByteCount bytes{random.below(2 * entry.waiting.value + 3'000)};
    if (random.chance(20)) {
      static_cast<void>(sim.take_back(entry.from, bytes));
    } else {
      const DataRate pace{random.log_between(10'000, 10'000'000'000)};
      sim.grant({entry.from, bytes, sim.now() + random.up_to(200ms), pace});
    }
  }
}

/// How many flows the policies of an experiment know.
enum class Table : std::uint8_t { as_it_comes, a_few_flows };

void fit(Policy& policy, Table table, Random& random) {
  if (table == Table::a_few_flows) policy.max_flows = static_cast<std::uint32_t>(random.between(1, 16));
}

void something_happens(Sim& sim, Policy& policy, Table table, Random& random) {
  switch (random.below(9)) {
    case 0:
      policy = random_successor(policy, random);
      fit(policy, table, random);
      sim.swap(policy);
      break;
    case 1:
      sim.set_mtu(static_cast<LinkIndex>(random.below(policy.links.size())),
                  static_cast<std::uint32_t>(random.between(576, 9'000)));
      break;
    case 2:
      sim.sleep(random.up_to(1s));
      break;
    case 3:
      sim.lose_last();
      break;
    case 4:
      if (random.chance(10)) sim.pass_all();
      break;
    case 5:
      EXPECT_TRUE(sim.restart());
      break;
    default:
      grant_at_random(sim, random);
  }
}

void expect_every_rule_kept(std::uint64_t seed, Table table) {
  Random random(seed);
  Experiment experiment = random_experiment(random, seed);
  fit(experiment.policy, table, random);
  Policy policy = experiment.policy;
  Sim sim(experiment);
  for (const Source& source : random_traffic(policy, random)) sim.add(source);
  for (std::size_t packets = 10; packets <= 200; packets += 10) {
    sim.run_for_packets(packets);
    something_happens(sim, policy, table, random);
  }
  sim.drain();
  ASSERT_EQ(sim.broken(), "") << "seed " << seed;
}

TEST(Tree, RandomTreesKeepEveryRuleThroughReloadsRestartsAndGrants) {
  for (const std::uint64_t seed : seeds(300)) {
    expect_every_rule_kept(seed, Table::as_it_comes);
    if (HasFatalFailure()) break;
  }
}

TEST(Tree, RandomTreesKeepEveryRuleWhileTheTableIsFull) {
  for (const std::uint64_t seed : seeds(500)) {
    expect_every_rule_kept(seed, Table::a_few_flows);
    if (HasFatalFailure()) break;
  }
}

// --- Guarantees and shares -------------------------------------------------------------------------------------------

/// A tree in which only the link and ceils hold back, and every class is busy or comes and goes.
struct Sharing {
  Policy policy;
  std::vector<bool> busy;
};

/// Where guarantees fit but leave next to nothing, what they had saved at the start would be used up only after long.
void leave_a_tenth(Policy& policy) {
  std::uint64_t sum = 0;
  for (const ClassPolicy& cls : policy.classes) sum += cls.rate ? cls.rate->bits_per_second : 0;
  std::uint64_t& link = policy.links[0].rate->bits_per_second;
  if (sum <= link) link = std::max(link, sum * 10 / 9);
}

Sharing random_sharing(Random& random, bool all_busy) {
  const DataRate rate{random.log_between(1'000'000, 1'000'000'000)};
  Sharing sharing{link_of(rate, default_class()), {false}};
  const std::uint64_t classes = random.between(2, 8);
  for (std::uint32_t mark = 1; mark <= classes; ++mark) {
    ClassPolicy policy = class_marked("c" + std::to_string(mark), mark);
    // From far below the link to overcommitted.
    if (random.chance(80)) {
      policy.rate = DataRate{random.log_between(rate.bits_per_second / 100, rate.bits_per_second)};
    }
    policy.ceil_is_link = true;
    policy.fair = static_cast<Fair>(random.below(5));
    policy.backlog = ByteCount{10'000'000};
    policy.max_delay = 1h;
    sharing.policy.classes.push_back(policy);
    sharing.busy.push_back(all_busy || mark == 1 || random.chance(50));
  }
  leave_a_tenth(sharing.policy);
  sharing.policy.max_flows = 4'096;
  return sharing;
}

void feed(Sim& sim, const Sharing& sharing, Random& random) {
  const DataRate link = *sharing.policy.links[0].rate;
  for (std::uint32_t mark = 1; mark < sharing.busy.size(); ++mark) {
    const auto bytes = static_cast<std::uint32_t>(random.log_between(300, 1'500));
    const std::uint64_t flows = random.between(1, 3);
    for (std::uint32_t port = 0; port < flows; ++port) {
      const Packet packet = packet_of(flow_of(mark, port), bytes, mark);
      // A late wake-up serves several packets: more than that must wait.
      sim.add(sharing.busy[mark] ? greedy(packet, 20 + static_cast<std::uint32_t>(bytes_in(link, 2ms).value / bytes))
                                 : bursts(packet, 20, time_for(link, {60 * bytes})));
    }
  }
}

/// The rate of every class in force: scaled down where the link has less than was promised.
std::vector<double> guarantees(const Policy& policy) {
  double sum = 0;
  for (const ClassPolicy& cls : policy.classes) sum += cls.rate ? static_cast<double>(cls.rate->bits_per_second) : 0;
  const double link = static_cast<double>(policy.links[0].rate->bits_per_second);
  std::vector<double> rates;
  for (const ClassPolicy& cls : policy.classes) {
    rates.push_back((cls.rate ? static_cast<double>(cls.rate->bits_per_second) : 0) * std::min(1.0, link / sum));
  }
  return rates;
}

std::int64_t promises(const Policy& policy) {
  return std::count_if(policy.classes.begin(), policy.classes.end(),
                       [](const ClassPolicy& cls) { return cls.rate.has_value(); });
}

TEST(Tree, NoGuaranteeIsStarvedAndNoLinkIdles) {
  for (const std::uint64_t seed : seeds(30)) {
    Random random(seed);
    Sharing sharing = random_sharing(random, false);
    for (ClassPolicy& cls : sharing.policy.classes) cls.priority = static_cast<std::uint8_t>(random.below(kPriorities));
    const Lateness lateness = random.chance(50) ? random_lateness(2ms) : Lateness{};
    Sim sim({.policy = sharing.policy, .lateness = lateness, .seed = seed, .count_every = 64});
    feed(sim, sharing, random);
    const DataRate link = *sharing.policy.links[0].rate;
    sim.run_for(time_for(link, {300'000}));
    const Instant begin = sim.now();
    const Nanos time = time_for(link, {4'000'000});
    sim.run_for(time);
    const std::vector<double> promised = guarantees(sharing.policy);
    // What all guarantees of the link may have saved, however long the time: a frame and a burst each.
    const double late = static_cast<double>(bytes_in(link, 4ms + lateness.most).value);
    const double slack = late + std::max(4.0, 3.0 * static_cast<double>(promises(sharing.policy))) * kFrame;
    for (ClassIndex index = 1; index < sharing.busy.size(); ++index) {
      if (!sharing.busy[index]) continue;
      const double wanted = promised[index] / 8e9 * static_cast<double>(time.count());
      EXPECT_GE(static_cast<double>(sim.sent_by_class(index, begin).value) + slack, 0.99 * wanted)
          << "seed " << seed << ", class " << index;
    }
    if (lateness.most == Nanos{0}) {
      const std::uint64_t most = sim.law().link(0)->depth().value + bytes_in(link, sim.now() - kStart).value;
      EXPECT_GE(sim.sent().value + 1'514, most) << "seed " << seed;
    }
    ASSERT_EQ(sim.broken(), "") << "seed " << seed;
    if (HasFailure()) break;
  }
}

/// What busy classes of one priority get: their guarantees, and what is left in proportion to their weights, up to
/// their ceils. By filling up whoever is full first.
std::vector<double> fair_rates(const Policy& policy) {
  const double link = static_cast<double>(policy.links[0].rate->bits_per_second);
  std::vector<double> rates = guarantees(policy), weights, ceils;
  for (const ClassPolicy& cls : policy.classes) {
    weights.push_back(cls.rate ? static_cast<double>(cls.rate->bits_per_second) : link / 100);
    ceils.push_back(cls.ceil ? static_cast<double>(cls.ceil->bits_per_second) : link);
  }
  weights[0] = 0;  // the default class is idle
  for (std::size_t round = 0; round < policy.classes.size(); ++round) {
    double left = link, hungry = 0;
    for (std::size_t i = 0; i < rates.size(); ++i) {
      left -= rates[i];
      if (rates[i] < ceils[i]) hungry += weights[i];
    }
    if (left < 1 || hungry <= 0) break;
    for (std::size_t i = 0; i < rates.size(); ++i) {
      if (rates[i] < ceils[i]) rates[i] = std::min(ceils[i], rates[i] + left * weights[i] / hungry);
    }
  }
  return rates;
}

/// A ceil's credit must not overflow while the link serves the other classes, a frame each.
constexpr ByteCount kCeilBurst{10'000};

TEST(Tree, BusyClassesShareByTheirWeightsWithinOnePercent) {
  for (const std::uint64_t seed : seeds(30)) {
    Random random(seed);
    Sharing sharing = random_sharing(random, true);
    for (ClassPolicy& cls : sharing.policy.classes) {
      if (!cls.rate || random.chance(70)) continue;
      cls.ceil_is_link = false;
      cls.ceil = DataRate{cls.rate->bits_per_second * random.between(10, 30) / 10};
      cls.burst = kCeilBurst;
    }
    Sim sim({.policy = sharing.policy, .seed = seed, .count_every = 64});
    feed(sim, sharing, random);
    const DataRate link = *sharing.policy.links[0].rate;
    sim.run_for(std::max<Nanos>(time_for(link, {500'000}), 50ms));
    const Instant begin = sim.now();
    const Nanos time = time_for(link, {10'000'000});
    sim.run_for(time);
    const std::vector<double> wanted = fair_rates(sharing.policy);
    for (ClassIndex index = 1; index < wanted.size(); ++index) {
      const double bytes = wanted[index] / 8e9 * static_cast<double>(time.count());
      const double slack = 3 * kFrame + (sharing.policy.classes[index].ceil ? kCeilBurst.value : 0.0);
      EXPECT_NEAR(static_cast<double>(sim.sent_by_class(index, begin).value), bytes, 0.01 * bytes + slack)
          << "seed " << seed << ", class " << index << " of " << wanted.size() - 1;
    }
    ASSERT_EQ(sim.broken(), "") << "seed " << seed;
    if (HasFailure()) break;
  }
}

// --- Time that passes without us -------------------------------------------------------------------------------------

/// Every kind of bucket at once, each of which binds for some flow.
Policy all_buckets() {
  ClassPolicy policy = class_marked("c", 1, 2_mbit);
  policy.ceil = 4_mbit;
  policy.each = each_of(EachBy::source, 3_mbit);
  policy.limits = {0, 1};
  Policy whole = link_of(5_mbit, policy, borrowing(default_class()));
  whole.classes[1].limits = {0};
  whole.limits = {limit_named("total", 4'500_kbit), limit_named("hosts", 2_mbit, KeyPolicy{EachBy::source})};
  return whole;
}

TEST(Clock, APauseOfAnHourEarnsOneDepth) {
  Sim sim({.policy = all_buckets()});
  for (int round = 0; round < 5; ++round) {
    const Instant begin = sim.now();
    for (int n = 0; n < 100; ++n) sim.send(packet_of(flow_of(1, 0), 486));
    // The link's depth is the smallest here: one frame and 4 ms.
    EXPECT_EQ(sim.sent({}, begin).value, (1'514 + 2'250) / 500 * 500U) << "the limit's: a frame and 4 ms of 4.5 Mbit/s";
    sim.run_for(1h);
  }
  EXPECT_EQ(sim.broken(), "");
}

TEST(Clock, AnHourWithoutAWakeUpEarnsOneDepth) {
  // Packets wait, the clock jumps, and they are released at once: one depth of them.
  Sim sim({.policy = all_buckets()});
  for (std::uint32_t flow = 0; flow < 6; ++flow) sim.add(greedy(packet_of(flow_of(flow, 0), 800, flow % 2), 20));
  for (int round = 0; round < 3; ++round) {
    sim.run_for(500ms);
    sim.sleep(1h);
    const Instant begin = sim.now() + 1h;
    sim.run_until(begin);
    EXPECT_LE(sim.sent({}, begin).value, 1'514U + 2'500);
  }
  sim.run_for(1s);
  EXPECT_EQ(sim.broken(), "");
}

TEST(Clock, ASecondWithoutUsBreaksNoLawAndOldPacketsGoByPolicy) {
  // The process is stopped: packets pile up, and its own are old when it goes on.
  Policy policy = all_buckets();
  for (ClassPolicy& cls : policy.classes) cls.max_delay = 400ms;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Sim sim({.policy = policy, .lateness = random_lateness(1ms), .seed = seed});
    for (std::uint32_t flow = 0; flow < 6; ++flow) sim.add(poisson(packet_of(flow_of(flow, 0), 800, flow % 2), 4ms));
    sim.run_for(2s);
    const std::size_t before = sim.dropped(DropReason::max_delay);
    sim.sleep(1s);
    sim.run_for(1s + 100ms);
    EXPECT_GT(sim.dropped(DropReason::max_delay), before + 50);
    EXPECT_LE(sim.sent({}, sim.now() - 100ms).value, bytes_in(5_mbit, 104ms).value + 1'514);
    const Instant begin = sim.now();
    sim.run_for(2s);
    EXPECT_GE(sim.sent({}, begin).value + 10 * 1'514, bytes_in(4'500_kbit, 2s).value) << "and the rate is used again";
    EXPECT_EQ(sim.broken(), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace shaper::sim
