// Logs of a guard, of live limits and of owners: ports, selectors and answers are in them, and every verdict is
// repeated.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "shaper/core/guard.h"
#include "shaper/core/shaper.h"
#include "shaper/model/config.h"
#include "shaper/model/event_log.h"
#include "shaper/model/live_limits.h"
#include "tests/log_text.h"

namespace shaper {
namespace {

using namespace std::chrono_literals;

constexpr const char* kPolicy = R"(
version = 1
[[link]]
name = "up"
interface = "eth0"
[[class]]
name = "all"
link = "up"
default = true
ceil = "100kbit"
)";

Policy guarding(std::vector<std::uint16_t> ports) {
  Policy policy = parse_policy(kPolicy, "test.toml").value().policy;
  set_guard_ports(policy, std::move(ports));
  return policy;
}

/// A core whose calls are written down.
class Logged {
 public:
  explicit Logged(const Policy& policy) : shaper_(policy, StartCredit::full, HashKey{}, now_) {
    log_.begin(now_, {}, policy, kPolicy, {}, std::vector<std::uint32_t>{1500});
    shaper_.set_mtu(0, 1500);
  }

  void send(std::uint16_t port, std::uint32_t bytes) {
    Packet packet;
    packet.id = {0, ++number_};
    packet.headers.family = Family::ipv4;
    packet.headers.protocol = kTcp;
    packet.headers.source_port = port;
    packet.ip_bytes = bytes;
    shaper_.on_packet(packet, now_, verdicts_);
    log_.arrival(now_, packet);
    write_outcomes();
  }

  void tell(std::uint16_t port, const Owner& owner) {
    FlowKey flow;
    flow.family = Family::ipv4;
    flow.protocol = kTcp;
    flow.source_port = port;
    shaper_.on_owner(flow, owner, now_, verdicts_);
    log_.owner(now_, flow, owner);
    write_outcomes();
  }

  void run_for(Nanos time) {
    const Instant end = now_ + time;
    for (auto next = shaper_.next_departure(); next && *next <= end; next = shaper_.next_departure()) {
      now_ = std::max(now_, *next);
      shaper_.release(now_, verdicts_);
      log_.release(now_);
      write_outcomes();
    }
    now_ = end;
  }

  void swap(const Policy& policy) {
    shaper_.swap(policy, now_, verdicts_);
    log_.swap(now_, policy, kPolicy, {});
    write_outcomes();
  }

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void write_outcomes() { log_.outcomes(now_, std::exchange(verdicts_, {})); }

  Instant now_{1s};
  std::uint32_t number_ = 0;
  std::string text_;
  EventLog log_{text_};
  Shaper shaper_;
  Verdicts verdicts_;
};

/// Two ports that the guard lets go and takes again, then one of them without a guard, then none.
std::string log_of_a_guard() {
  Logged core(guarding({22, 2222}));
  const auto use = [&core] {
    for (int n = 0; n < 8; ++n) core.send(22, 1500);
    for (int n = 0; n < 8; ++n) core.send(2222, 900);
    core.run_for(5s);
    core.send(22, 100);
    core.send(2222, 100);
  };
  use();
  core.swap(guarding({22}));
  use();
  core.swap(guarding({}));
  use();
  return core.text();
}

TEST(ReplayLog, AGuardIsRepeated) {
  const std::string log = log_of_a_guard();
  const auto result = replay_log(log, "log");
  ASSERT_TRUE(result) << result.error() << "\n" << log;
  EXPECT_EQ(result->verdicts, 54u);
  EXPECT_NE(log.find("class=1:guard"), std::string::npos);
}

TEST(ReplayLog, ALiveLimitIsRepeated) {
  Policy limited = guarding({});
  const auto match = parse_selector("local_port=22", NameLookup{});
  ASSERT_TRUE(match) << match.error();
  add_live_limits(limited, std::vector{LiveLimit{1, {50'000}, {}, "local_port=22", *match}});
  Logged core(guarding({}));
  for (const Policy& policy : {limited, guarding({}), limited}) {
    core.swap(policy);
    for (int n = 0; n < 8; ++n) core.send(22, 1500);
    core.run_for(5s);
  }
  const auto result = replay_log(core.text(), "log");
  ASSERT_TRUE(result) << result.error() << "\n" << core.text();
  EXPECT_EQ(result->verdicts, 24u);
  std::string other = core.text();
  other.replace(other.find("local_port=22"), 13, "local_port=23");
  EXPECT_FALSE(replay_log(other, "log"));
}

TEST(ReplayLog, OwnersAreRepeated) {
  const std::string selector = "process=rsync";
  const auto match = parse_selector(selector, NameLookup{});
  ASSERT_TRUE(match) << match.error();
  Policy limited = guarding({});
  add_live_limits(limited, std::vector{LiveLimit{1, {20'000}, {}, selector, *match}});
  limited.finds_owners = true;
  Logged core(guarding({}));
  core.swap(limited);
  Owner owner;
  owner.user = 1000;
  owner.cgroup = "/a b%\n\x1b]0;x/<script>\"";
  owner.pid = 812;
  owner.started = 77;
  owner.lineage = {1, 812};
  owner.container = "0123";
  owner.container_name = "web";
  for (std::uint16_t port = 1; port <= 3; ++port) {
    owner.process = port == 1 ? "rsync" : "r\"\n\xff";
    for (int n = 0; n < 4; ++n) core.send(port, 1000);
    if (port != 3) core.tell(port, owner);
    core.run_for(50ms);
  }
  core.run_for(10s);
  const auto result = replay_log(core.text(), "log");
  ASSERT_TRUE(result) << result.error() << "\n" << core.text();
  EXPECT_EQ(result->verdicts, 12u);
  std::string other = core.text();
  other.replace(other.rfind("process=rsync"), 13, "process=wget");
  EXPECT_FALSE(replay_log(other, "log")) << "another process";
  other = core.text();
  other.erase(other.find("owners\n"), 7);
  EXPECT_FALSE(replay_log(other, "log")) << "nobody finds owners";
}

TEST(ReplayLog, OtherPortsGiveOtherVerdicts) {
  const std::string log = log_of_a_guard();
  for (const char* line : {"guard 22,2222\n", "guard 22\n"}) {
    std::string other = log;
    other.erase(other.find(line), std::string_view(line).size());
    const auto result = replay_log(other, "log");
    ASSERT_FALSE(result) << line;
    EXPECT_NE(result.error().find("the replay"), std::string::npos) << result.error();
  }
}

}  // namespace
}  // namespace shaper
