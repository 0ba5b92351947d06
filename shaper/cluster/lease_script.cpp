#include "shaper/cluster/lease_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <chrono>

namespace shaper {
namespace {

constexpr std::string_view kProtocol = "1";
constexpr std::size_t kNumbersOfAnswer = 10;

std::string number(std::uint64_t value) {
  return std::to_string(std::min(value, kExactInScript - 1));
}

std::string microseconds(Nanos time) {
  return number(static_cast<std::uint64_t>(std::chrono::floor<std::chrono::microseconds>(time).count()));
}

std::string flags_of(const LeaseAsk& ask) {
  return number((ask.in_fallback ? 1U : 0U) | (ask.leaving ? 2U : 0U) | (ask.reserve ? 4U : 0U) |
                (ask.observe ? 8U : 0U) | (ask.tell ? 16U : 0U));
}

void add_ask(const LeaseAsk& ask, std::vector<std::string>& arguments) {
  assert(ask.config < kExactInScript && ask.sequence < kExactInScript);
  assert(ask.interval.count() >= 0 && ask.lease.count() >= 0);
  for (std::string word :
       {number(ask.config), number(ask.rate.bits_per_second), number(ask.burst.value), microseconds(ask.interval),
        microseconds(ask.lease), number(ask.sequence), number(ask.want.bits_per_second), number(ask.need.value),
        number(ask.give_back.value), number(ask.debt.value), flags_of(ask), number(ask.local_rate.bits_per_second)}) {
    arguments.push_back(std::move(word));
  }
}

/// What is wrong with the numbers of one answer, if anything.
std::string_view fault_of(std::span<const std::int64_t> numbers) {
  constexpr auto kDeepest = static_cast<std::int64_t>(kDeepestBucket.value);
  const std::int64_t rate = numbers[8];
  const std::int64_t burst = numbers[9];
  if (numbers[0] < 0 || numbers[0] > static_cast<std::int64_t>(LeaseAnswer::kLastStatus)) return "status";
  if (numbers[1] < 0 || numbers[1] > kDeepest) return "grant";
  if (burst < 1 || burst > kDeepest) return "burst";
  if (numbers[2] < -kDeepest || numbers[2] > burst) return "number of tokens";
  if (numbers[3] < 0) return "share";
  if (numbers[4] != 0 && numbers[4] != 1) return "word on contention";
  if (numbers[5] < 0 || numbers[5] > UINT32_MAX) return "number of members";
  if (numbers[6] < 0) return "generation";
  if (numbers[7] < 0) return "version of its configuration";
  if (rate < static_cast<std::int64_t>(kSlowestRate.bits_per_second) ||
      rate > static_cast<std::int64_t>(kFastestRate.bits_per_second)) {
    return "rate";
  }
  return {};
}

LeaseAnswer answer_of(std::span<const std::int64_t> numbers) {
  const auto unsigned_at = [&](std::size_t i) { return static_cast<std::uint64_t>(numbers[i]); };
  return {.status = static_cast<LeaseAnswer::Status>(numbers[0]),
          .grant = {unsigned_at(1)},
          .tokens = numbers[2],
          .share = {unsigned_at(3)},
          .contended = numbers[4] == 1,
          .members = static_cast<std::uint32_t>(numbers[5]),
          .generation = unsigned_at(6),
          .config = unsigned_at(7),
          .rate = {unsigned_at(8)},
          .burst = {unsigned_at(9)}};
}

}  // namespace

std::uint32_t lease_group(std::string_view bucket, std::uint32_t groups) {
  assert(groups > 0);
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : bucket) {
    hash ^= static_cast<unsigned char>(letter);
    hash *= 0x100000001b3;
  }
  return static_cast<std::uint32_t>(hash % groups);
}

LeaseCall lease_call(const LeaseHost& host, std::span<const LeaseAsk> asks, std::uint32_t group) {
  assert(asks.size() <= kMostBucketsInCall);
  LeaseCall call{.keys = {}, .arguments = {std::string{kProtocol}, host.id, std::to_string(host.incarnation)}};
  for (const LeaseAsk& ask : asks) {
    call.keys.push_back(fmt::format("dl:{{{}}}:{}:b", group, ask.bucket));
    call.keys.push_back(fmt::format("dl:{{{}}}:{}:n", group, ask.bucket));
    add_ask(ask, call.arguments);
  }
  return call;
}

tl::expected<std::vector<LeaseAnswer>, std::string> read_lease_reply(std::span<const std::int64_t> reply,
                                                                     std::size_t asks) {
  if (asks > kMostBucketsInCall || reply.size() != asks * kNumbersOfAnswer + 1) {
    return tl::unexpected(fmt::format("redis answered with {} numbers to {} asks", reply.size(), asks));
  }
  if (reply.back() < 0) return tl::unexpected(std::string{"redis answered with a time before 1970"});
  std::vector<LeaseAnswer> answers;
  for (std::size_t i = 0; i < asks; ++i) {
    const auto numbers = reply.subspan(i * kNumbersOfAnswer, kNumbersOfAnswer);
    if (const std::string_view fault = fault_of(numbers); !fault.empty()) {
      return tl::unexpected(
          fmt::format("redis answered about bucket {} of {} with an impossible {}", i + 1, asks, fault));
    }
    answers.push_back(answer_of(numbers));
    answers.back().redis_time_us = static_cast<std::uint64_t>(reply.back());
  }
  return answers;
}

Nanos waiting_time(const LeaseAnswer& answer, ByteCount need) {
  const auto tokens = static_cast<std::uint64_t>(std::max<std::int64_t>(answer.tokens, 0));
  const auto debt = static_cast<std::uint64_t>(std::max<std::int64_t>(-answer.tokens, 0));
  if (need.value + debt <= tokens) return Nanos{0};
  return time_for(answer.rate, {need.value + debt - tokens});
}

}  // namespace shaper
