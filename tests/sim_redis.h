// The bucket in Redis as the script keeps it, for simulations: one bucket, deducted before it is spent, shared max-min.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "shaper/cluster/lease_exchange.h"

namespace shaper::sim {

class Redis {
 public:
  Redis(DataRate rate, ByteCount burst) : rate_{static_cast<double>(rate.bits_per_second) / 8e6}, burst_{burst.value} {}

  void lose_data() {
    made_ = 0;
    members_.clear();
  }
  /// Its clock is set.
  void shift_clock(std::int64_t microseconds) { shift_ += microseconds; }

  LeaseAnswer ask(std::uint32_t host, const LeaseAsk& ask, Instant at) {
    ++calls;
    const std::int64_t now = at.time_since_epoch() / std::chrono::microseconds{1} + 1'000'000'000'000 + shift_;
    const bool fresh = made_ == 0;
    if (fresh) make(now);
    refill(ask, now);
    Member& member = members_[host];
    if (ask.sequence == member.sequence) {
      LeaseAnswer again = member.answer;
      again.status = LeaseAnswer::Status::replay;
      again.tokens = static_cast<std::int64_t>(tokens_);
      again.redis_time_us = static_cast<std::uint64_t>(now);
      return again;
    }
    if (ask.sequence < member.sequence) return stale_answer();
    tokens_ =
        std::min(tokens_ + static_cast<double>(ask.give_back.value), burst()) - static_cast<double>(ask.debt.value);
    member.answer = decide(member, ask, now);
    member.sequence = ask.sequence;
    if (fresh) member.answer.status = LeaseAnswer::Status::fresh;
    return member.answer;
  }

  std::uint64_t calls = 0;
  std::uint64_t granted = 0;

 private:
  struct Member {
    std::uint64_t sequence = 0;
    bool present = false;
    double want = 0;  // bytes each microsecond
    std::int64_t last = 0;
    LeaseAnswer answer;
  };

  [[nodiscard]] double burst() const { return static_cast<double>(burst_); }
  static LeaseAnswer stale_answer() {
    LeaseAnswer answer;
    answer.status = LeaseAnswer::Status::stale;
    return answer;
  }
  static double micros(Nanos time) { return static_cast<double>(time.count()) / 1e3; }

  void make(std::int64_t now) {
    made_ = filled_ = now;
    tokens_ = burst() / 2;
    level_at_ = 0;
    contended_ = false;
  }

  void refill(const LeaseAsk& ask, std::int64_t now) {
    double elapsed = static_cast<double>(std::clamp<std::int64_t>(now - filled_, 0, 1'000'000));
    // Nobody asked although they wanted more than there was: that was an outage.
    if (contended_ && elapsed > micros(ask.lease)) elapsed = 0;
    filled_ = now;
    tokens_ = std::min(tokens_ + elapsed * (rate_ - reserved_), burst());
  }

  /// Who was not heard for a lease is no member; with `reserve` his share is kept for a minute.
  void forget(const LeaseAsk& ask, std::int64_t now) {
    std::size_t present = 0, missing = 0;
    for (auto& [host, member] : members_) {
      if (!member.present) continue;
      const double silent = static_cast<double>(now - member.last);
      if (silent > micros(ask.lease) && (!ask.reserve || silent > 60e6)) member.present = false;
      if (!member.present) continue;
      ++(silent > micros(ask.lease) ? missing : present);
    }
    heard_ = static_cast<std::uint32_t>(present);
    reserved_ = missing == 0 ? 0 : rate_ * static_cast<double>(missing) / static_cast<double>(present + missing);
  }

  /// The water level: what a host may get that wants more.
  void find_level(const LeaseAsk& ask, std::int64_t now) {
    if (now >= level_at_ && now - level_at_ < 10'000) return;
    level_at_ = now;
    forget(ask, now);
    std::vector<double> wants;
    double sum = 0;
    for (const auto& [host, member] : members_) {
      if (!member.present || static_cast<double>(now - member.last) > micros(ask.lease)) continue;
      wants.push_back(member.want);
      sum += member.want;
    }
    std::sort(wants.begin(), wants.end());
    double there = (rate_ - reserved_) * (1 + 0.5 * (std::max(tokens_, -burst()) - burst() / 2) / burst());
    contended_ = sum > there;
    level_ = there;
    for (std::size_t n = 0; n < wants.size(); ++n) {
      level_ = there / static_cast<double>(wants.size() - n);
      if (wants[n] > level_) break;
      there -= wants[n];
    }
  }

  LeaseAnswer decide(Member& member, const LeaseAsk& ask, std::int64_t now) {
    const double interval = micros(ask.interval);
    const double elapsed =
        member.present ? std::clamp(static_cast<double>(now - member.last), 0.0, 2 * interval) : interval;
    member.present = !ask.leaving;
    member.want = static_cast<double>(ask.want.bits_per_second) / 8e6;
    member.last = now;
    find_level(ask, now);
    double grant = std::min(static_cast<double>(ask.need.value), std::max(0.0, tokens_));
    if (contended_) {
      const double spare = std::max(0.0, (tokens_ - burst() / 2) / 2);
      grant = std::min(grant, std::min(member.want, level_) * elapsed + spare);
    }
    const auto bytes = static_cast<std::uint64_t>(grant);
    tokens_ -= static_cast<double>(bytes);
    granted += bytes;
    LeaseAnswer answer;
    answer.grant = {bytes};
    answer.tokens = static_cast<std::int64_t>(tokens_);
    answer.share = {static_cast<std::uint64_t>(level_ * 8e6)};
    answer.contended = contended_;
    answer.members = heard_;
    answer.generation = static_cast<std::uint64_t>(made_);
    answer.config = ask.config;
    answer.rate = ask.rate;
    answer.burst = ask.burst;
    answer.redis_time_us = static_cast<std::uint64_t>(now);
    return answer;
  }

  double rate_;  // bytes each microsecond
  std::uint64_t burst_;
  double tokens_ = 0;
  double reserved_ = 0;
  double level_ = 0;
  bool contended_ = false;
  std::int64_t made_ = 0;  // 0: there is none
  std::int64_t filled_ = 0, level_at_ = 0, shift_ = 0;
  std::uint32_t heard_ = 0;
  std::map<std::uint32_t, Member> members_;
};

}  // namespace shaper::sim
