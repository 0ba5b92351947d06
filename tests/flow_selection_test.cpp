// Which flows are shown, in which order, and how fast they were between two looks.
#include "shaper/model/flow_selection.h"

#include <gtest/gtest.h>

#include "shaper/model/address_text.h"

namespace shaper {
namespace {

using namespace std::chrono_literals;

constexpr const char* kLongAgo = "2026-01-31T10:00:00.000000Z";
constexpr const char* kFirstLook = "2026-01-31T12:00:00.000000Z";
constexpr const char* kBetween = "2026-01-31T12:00:00.500000Z";

FlowReport flow_of(const std::string& name, std::uint64_t wire_bytes = 0) {
  FlowReport flow;
  flow.class_name = name;
  flow.link = "uplink";
  flow.protocol = "tcp";
  flow.source = "10.0.0.1";
  flow.source_port = 40'000;
  flow.destination = "2001:db8::7";
  flow.destination_port = 443;
  flow.wire_bytes = {wire_bytes};
  flow.first_seen = kLongAgo;
  return flow;
}

TEST(FlowSelection, FlowsAreSortedTheLargestFirst) {
  std::vector<FlowReport> flows;
  for (const char* name : {"none", "rate", "bytes", "packets", "backlog", "delay", "drops", "age"}) {
    flows.push_back(flow_of(name));
  }
  flows[1].rate = {1};
  flows[2].wire_bytes = {1};
  flows[3].packets = 1;
  flows[4].backlog_bytes = {1};
  flows[5].delay.p99 = 1ms;
  flows[6].dropped_packets = 1;
  flows[7].first_seen = "2026-01-31T09:59:59.999999Z";
  for (const char* word : {"rate", "bytes", "packets", "backlog", "delay", "drops", "age"}) {
    std::vector<FlowReport> sorted = flows;
    sort_flows(sorted, *parse_flow_sort(word));
    EXPECT_EQ(sorted.front().class_name, word);
    sort_flows(sorted, *parse_flow_sort(word), true);
    EXPECT_EQ(sorted.back().class_name, word) << "reversed";
  }
  EXPECT_EQ(parse_flow_sort("colour"), std::nullopt);
  EXPECT_EQ(flow_sorts(), "rate, bytes, packets, backlog, delay, drops or age");
}

TEST(FlowSelection, EqualOnesStandByBytes) {
  std::vector<FlowReport> flows{flow_of("small", 1), flow_of("large", 9), flow_of("middle", 5)};
  sort_flows(flows, FlowSort::rate);
  EXPECT_EQ(flows[0].class_name, "large");
  EXPECT_EQ(flows[1].class_name, "middle");
}

TEST(FlowSelection, AFilterAsksForEverythingThatItNames) {
  FlowReport flow = flow_of("Backup");
  flow.user = "alice";
  flow.owner = "rsync[812] in Mirror.service";
  flow.activity = FlowActivity::bulk;
  struct Case {
    const char* what;
    FlowFilter filter;
    bool matches;
  };
  const auto address = [](const char* text) {
    FlowFilter filter;
    filter.address = masked(*parse_prefix(text));
    return filter;
  };
  const auto port = [](std::uint16_t number) {
    FlowFilter filter;
    filter.port = number;
    return filter;
  };
  const auto text = [](const char* words) {
    FlowFilter filter;
    filter.text = words;
    return filter;
  };
  FlowFilter of_class, other_class, users, other_users, protocols, other_protocols, both;
  of_class.of_class = "Backup";
  other_class.of_class = "backup";
  users.users = {"1000", "alice"};
  other_users.users = {"0", "root"};
  protocols.protocols = {"icmp", "tcp"};
  other_protocols.protocols = {"udp"};
  both = port(443);
  both.of_class = "web";
  const Case cases[] = {
      {"nothing is asked", {}, true},
      {"its class", of_class, true},
      {"a class by its exact name", other_class, false},
      {"its source", address("10.0.0.1"), true},
      {"the network of its source", address("10.0.0.99/24"), true},
      {"the network of its destination", address("2001:db8::/32"), true},
      {"a neighbour", address("10.0.0.2"), false},
      {"everything of the other family but not its own", address("2001:db9::/32"), false},
      {"its source port", port(40'000), true},
      {"its destination port", port(443), true},
      {"another port", port(44), false},
      {"its protocol", protocols, true},
      {"another protocol", other_protocols, false},
      {"its user", users, true},
      {"another user", other_users, false},
      {"text in a class, whatever its case", text("bACK"), true},
      {"text in an address", text("db8::7"), true},
      {"an end point as it is shown", text("10.0.0.1:40000 > "), true},
      {"a state", text("bulk"), true},
      {"a process", text("rsync[812]"), true},
      {"what that is in", text("mirror.serv"), true},
      {"text that is nowhere", text("carol"), false},
      {"one of two", both, false},
  };
  for (const Case& each : cases) EXPECT_EQ(each.filter.matches(flow), each.matches) << each.what;
  flow.user = std::nullopt;
  EXPECT_FALSE(users.matches(flow)) << "a flow without a user";
}

TEST(FlowSelection, RatesAreMeansBetweenTwoLooks) {
  FlowReport came = flow_of("came", 4'000);
  came.first_seen = kBetween;
  FlowReport again = flow_of("again", 6'000);  // forgotten, and back with more than it had
  again.first_seen = kBetween;
  FlowReport awoke = flow_of("awoke", 9'000'000);  // not listed while it was silent for a minute
  awoke.rate = {77};
  FlowReport silent = flow_of("silent", 500);
  silent.rate = {77};
  const FlowsReport before{{flow_of("went", 100), flow_of("stayed", 1'000), flow_of("again", 5'000), silent}, 4, 0};
  FlowsReport after{{silent, again, flow_of("stayed", 2'000), came, awoke}, 5, 0};
  set_mean_rates(before, after, kFirstLook, 2s);
  EXPECT_EQ(after.flows[0].rate, DataRate{0});
  EXPECT_EQ(after.flows[1].rate, DataRate{24'000});
  EXPECT_EQ(after.flows[2].rate, DataRate{4'000});
  EXPECT_EQ(after.flows[3].rate, DataRate{16'000});
  EXPECT_EQ(after.flows[4].rate, DataRate{77}) << "that of the last second";
}

TEST(FlowSelection, FlowsThatOnlyAMarkTellsApartKeepTheirRates) {
  const FlowsReport before{{flow_of("twin", 1'000), flow_of("twin", 50'000)}, 2, 0};
  FlowsReport after{{flow_of("twin", 2'000), flow_of("twin", 50'000)}, 2, 0};
  set_mean_rates(before, after, kFirstLook, 1s);
  EXPECT_EQ(after.flows[0].rate, DataRate{8'000});
  EXPECT_EQ(after.flows[1].rate, DataRate{0});
}

}  // namespace
}  // namespace shaper
