// The core under any sequence of packets, times, policies and calls: the simulation's rules must hold after each step.
//
// The first eight bytes seed a random policy; each byte after them is a step, with its operands behind it.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>

#include "tests/sim.h"
#include "tests/sim_tree.h"

namespace {

using namespace shaper;
using namespace shaper::sim;

/// Takes the input apart; zero when it has ended.
class Input {
 public:
  explicit Input(std::span<const std::uint8_t> bytes) : bytes_{bytes} {}

  [[nodiscard]] bool empty() const { return bytes_.empty(); }

  std::uint64_t take(std::size_t count) {
    std::uint64_t value = 0;
    for (; count > 0 && !bytes_.empty(); --count) {
      value = value << 8 | bytes_.front();
      bytes_ = bytes_.subspan(1);
    }
    return value;
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

Packet any_packet(Input& input, std::size_t links) {
  const auto kind = static_cast<std::uint8_t>(input.take(1));
  const auto flow = static_cast<std::uint32_t>(input.take(1)) * 37 + ((kind & 1) != 0 ? kIpv6Flow : 0);
  const auto bytes = static_cast<std::uint32_t>(100 + input.take(2));
  const std::uint32_t mark = kind >> 1 & 3;
  Packet packet = (kind & 8) != 0 ? super_packet_of(flow, bytes, mark) : packet_of(flow, 40 + bytes % 3'000, mark);
  packet.link = static_cast<LinkIndex>((kind >> 4 & 1) % links);
  if ((kind & 32) != 0) packet.user = kind >> 6;
  packet.headers.ecn = bytes & 3;
  return packet;
}

void swap_policy(Sim& sim, Policy& policy, std::uint64_t seed) {
  Random random(seed);
  policy = random_successor(policy, random);
  sim.swap(policy);
}

/// Gives one of the buckets that wait for grants something, or takes it back.
void grant(Sim& sim, Input& input) {
  const std::vector<Demand> demands = sim.demand();
  const auto which = input.take(1);
  const ByteCount bytes{input.take(2)};
  if (demands.empty()) return;
  const LimitKey& bucket = demands[which % demands.size()].from;
  if (which >= 200) {
    static_cast<void>(sim.take_back(bucket, bytes));
  } else {
    const Nanos valid{static_cast<std::int64_t>(input.take(3) << 4)};
    sim.grant({bucket, bytes, sim.now() + valid, {10'000 + (input.take(2) << 16)}});
  }
}

void step(Sim& sim, Policy& policy, Input& input) {
  switch (input.take(1) % 10) {
    case 0:
    case 1:
      sim.send(any_packet(input, policy.links.size()));
      break;
    case 2: {
      const Packet packet = any_packet(input, policy.links.size());
      for (std::uint64_t n = input.take(1) % 64; n > 0; --n) sim.send(packet);
      break;
    }
    case 3:
      sim.run_for(Nanos{static_cast<std::int64_t>(input.take(2))});
      break;
    case 4:
      sim.run_for(Nanos{static_cast<std::int64_t>(input.take(4))});
      break;
    case 5:
      swap_policy(sim, policy, input.take(2));
      break;
    case 6: {
      const auto link = static_cast<LinkIndex>(input.take(1) % policy.links.size());
      sim.set_mtu(link, static_cast<std::uint32_t>(576 + input.take(2) % 9'000));
      break;
    }
    case 7:
      grant(sim, input);
      break;
    case 8:
      sim.sleep(Nanos{static_cast<std::int64_t>(input.take(4))});
      break;
    default:
      if (input.take(1) % 8 == 0) {
        sim.pass_all();
      } else {
        sim.lose_last();
      }
  }
  sim.count();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input({data, size});
  const std::uint64_t seed = input.take(8);
  Random random(seed);
  Policy policy = random_policy(random);
  Experiment experiment{.policy = policy, .lateness = {}, .seed = seed};
  if (random.chance(50)) experiment.lateness = random_lateness(10ms);
  if (random.chance(30)) experiment.credit = StartCredit::empty;
  if (random.chance(30)) experiment.sending = random.up_to(2ms);
  Sim sim(experiment);
  while (!input.empty() && sim.broken().empty()) step(sim, policy, input);
  sim.drain();
  if (!sim.broken().empty()) {
    std::fprintf(stderr, "%s\n", sim.broken().c_str());
    std::abort();
  }
  return 0;
}
