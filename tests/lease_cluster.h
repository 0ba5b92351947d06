// Hosts that ask the script in a real Redis for bytes. Time passes in the simulation only: pass() makes every time that
// Redis has stored earlier by so much. What really passes meanwhile is in the answers' times, and counted.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "shaper/cluster/grants_script.h"
#include "shaper/cluster/lease_script.h"
#include "tests/redis_server.h"

namespace shaper::test {

using namespace std::chrono_literals;

inline constexpr Nanos kInterval = 40ms;
inline constexpr Nanos kLease = 3 * kInterval;

/// An ask that wants nothing, about a bucket of 25 MB/s that is 100 ms deep.
inline LeaseAsk ask_about(std::string bucket = "tenant") {
  LeaseAsk ask;
  ask.bucket = std::move(bucket);
  ask.config = 1;
  ask.rate = {200'000'000};
  ask.burst = {2'500'000};
  ask.interval = kInterval;
  ask.lease = kLease;
  return ask;
}

/// The bucket as it should be, in wide integers.
struct ExactBucket {
  std::uint64_t bits_per_second;
  std::int64_t depth;
  std::int64_t tokens;
  std::uint64_t since_us;
  std::uint64_t rest = 0;  ///< millionths of a bit

  void earn_until(std::uint64_t now_us) {
    const Uint128 sum = static_cast<Uint128>(bits_per_second) * (now_us - since_us) + rest;
    const Uint128 bytes = sum / 8'000'000;
    const bool full = bytes >= static_cast<Uint128>(depth - tokens);
    tokens = full ? depth : tokens + static_cast<std::int64_t>(bytes);
    rest = full ? 0 : static_cast<std::uint64_t>(sum % 8'000'000);
    since_us = now_us;
  }
};

class LeaseCluster : public testing::Test {
 protected:
  /// As a host does it: by the script's name, and whole after NOSCRIPT, with the same sequences.
  RedisReply send(const LeaseCall& call) {
    const auto words = [&](std::string_view command, std::string_view script) {
      std::vector<std::string> all{std::string{command}, std::string{script}, std::to_string(call.keys.size())};
      all.insert(all.end(), call.keys.begin(), call.keys.end());
      all.insert(all.end(), call.arguments.begin(), call.arguments.end());
      return all;
    };
    RedisReply reply = redis(words("EVALSHA", kGrantsScriptSha1));
    if (!reply.error.starts_with("NOSCRIPT")) return reply;
    ++unknown_script;
    return redis(words("EVAL", kGrantsScript));
  }

  std::vector<LeaseAnswer> ask_all(const LeaseHost& host, std::span<const LeaseAsk> asks) {
    const RedisReply reply = send(lease_call(host, asks));
    EXPECT_EQ(reply.error, "");
    const auto answers = read_lease_reply(reply.numbers, asks.size());
    if (!answers) throw std::runtime_error(answers.error());
    return *answers;
  }

  /// Asks with the host's next sequence, unless it has one.
  LeaseAnswer ask(const std::string& host, LeaseAsk ask) {
    std::uint64_t& last = sequences_[host];
    if (ask.sequence == 0) ask.sequence = ++last;
    return ask_all({host, 7}, std::span{&ask, 1}).front();
  }

  void pass(Nanos time) {
    const auto us = std::chrono::floor<std::chrono::microseconds>(time).count();
    const std::string moved = std::to_string(us);
    for (const std::string& key : redis({"KEYS", "dl:*"}).texts) {
      const std::string script =
          key.ends_with(":b") ? kBucketRead + "ts, lt = ts - ARGV[1], lt - ARGV[1]" + kBucketWritten : kHostsMoved;
      EXPECT_EQ(redis({"EVAL", script, "1", key, moved}).error, "");
    }
    passed_us_ += us;
  }

  /// The time of the simulation at an answer.
  [[nodiscard]] std::uint64_t time_of(const LeaseAnswer& answer) const {
    return answer.redis_time_us + static_cast<std::uint64_t>(passed_us_);
  }

  /// A bucket as it is after `answer`.
  [[nodiscard]] ExactBucket bucket_after(const LeaseAnswer& answer) const {
    return {answer.rate.bits_per_second, static_cast<std::int64_t>(answer.burst.value), answer.tokens, time_of(answer)};
  }

  /// A number of the bucket, by its name in the script.
  std::string field(const std::string& name) {
    return redis({"EVAL", kBucketRead + "return string.format('%.0f', " + name + ")", "1", kBucket}).text;
  }
  void set_tokens(const std::string& tokens) {
    EXPECT_EQ(redis({"EVAL", kBucketRead + "tok = " + tokens + kBucketWritten, "1", kBucket}).error, "");
  }
  /// All that is stored.
  std::vector<std::string> stored() {
    std::vector<std::string> all = redis({"HGETALL", kHosts}).texts;
    all.push_back(redis({"GET", kBucket}).text);
    return all;
  }

  static constexpr const char* kBucket = "dl:{0}:tenant:b";
  static constexpr const char* kHosts = "dl:{0}:tenant:n";

  RedisServer server;
  RedisClient redis{server.socket()};
  int unknown_script = 0;

 private:
  static inline const std::string kBucketRead =
      "local s, cfg, R, B, tok, ts, rem, gen, lam, lt, contended, members, lease, kept = "
      "struct.unpack('<Bddddddddddddd', redis.call('GET', KEYS[1])) ";
  static inline const std::string kBucketWritten =
      " redis.call('SET', KEYS[1], struct.pack('<Bddddddddddddd', s, cfg, R, B, tok, ts, rem, gen, lam, lt, contended, "
      "members, lease, kept), 'KEEPTTL')";
  static inline const std::string kHostsMoved = R"(
    local all = redis.call('HGETALL', KEYS[1])
    for i = 1, #all, 2 do
      local inc, seq, want, last, grant, lease, flags, own = struct.unpack('<dddddddd', all[i + 1])
      redis.call('HSET', KEYS[1], all[i],
                 struct.pack('<dddddddd', inc, seq, want, last - ARGV[1], grant, lease, flags, own))
    end)";

  std::map<std::string, std::uint64_t> sequences_;
  std::int64_t passed_us_ = 0;
};

}  // namespace shaper::test
