// The calls of a log, and the verdicts that must come of them.
#include <fmt/format.h>

#include "shaper/replay/log_player.h"
#include "shaper/replay/report_collector.h"

namespace shaper {
namespace {

constexpr const char* kNotStarted = "the log has no `start` line in front of this";

}  // namespace

/// Every call begins here: all verdicts of the call before must have been in the log.
std::string LogPlayer::begin_call() {
  if (!shaper_) return kNotStarted;
  if (const auto verdict = missing())
    return fmt::format("the log lacks `{}` in front of this line", describe(*verdict));
  verdicts_.clear();
  next_ = 0;
  ++result_.calls;
  return {};
}

std::string LogPlayer::on(const event::Arrival& line) {
  if (std::string error = begin_call(); !error.empty()) return error;
  if (line.packet.link >= policy_.links.size()) return "the policy has no link of this number";
  shaper_->on_packet(line.packet, now_, verdicts_);
  write(&EventLog::arrival, now_, line.packet);
  if (report_ != nullptr) report_->arrived(line.packet, now_);
  return {};
}

std::string LogPlayer::on(const event::Release&) {
  std::string error = begin_call();
  if (!error.empty()) return error;
  shaper_->release(now_, verdicts_);
  write(&EventLog::release, now_);
  return error;
}

std::string LogPlayer::on(const event::Departed&) {
  std::string error = begin_call();
  if (!error.empty()) return error;
  shaper_->on_departed(now_);
  write(&EventLog::departed, now_);
  return error;
}

std::string LogPlayer::on(const event::QueuesDry&) {
  std::string error = begin_call();
  if (!error.empty()) return error;
  shaper_->on_queues_dry();
  write(&EventLog::queues_dry, now_);
  return error;
}

std::string LogPlayer::on(const event::Swap& line) {
  std::string error = begin_call();
  if (error.empty()) error = read_policy(line.policy_text);
  if (!error.empty()) return error;
  shaper_->swap(policy_, now_, verdicts_);
  write(&EventLog::swap, now_, policy_, line.policy_text, new_names());
  if (report_ != nullptr) report_->obeys(policy_, now_);
  return error;
}

std::string LogPlayer::on(const event::MtuChange& line) {
  std::string error = begin_call();
  if (error.empty()) error = check_mtu(line.link, line.bytes);
  if (!error.empty()) return error;
  shaper_->set_mtu(line.link, line.bytes);
  write(&EventLog::mtu, now_, line.link, line.bytes);
  return error;
}

std::string LogPlayer::on(const event::Lost& line) {
  std::string error = begin_call();
  if (!error.empty()) return error;
  shaper_->on_lost(line.verdict);
  write(&EventLog::lost, now_, line.verdict);
  return error;
}

std::string LogPlayer::on(const event::PassAll&) {
  std::string error = begin_call();
  if (!error.empty()) return error;
  shaper_->pass_all(now_, verdicts_);
  write(&EventLog::pass_all, now_);
  return error;
}

std::string LogPlayer::on(const event::Granted& line) {
  const Grant& grant = line.grant;
  std::string error = begin_call();
  if (error.empty()) error = check_grant(grant.to, grant.bytes);
  if (!error.empty()) return error;
  if (error = check_grant_terms(grant.valid_until, grant.pace); !error.empty()) return error;
  shaper_->on_grant(grant, now_, verdicts_);
  write(&EventLog::grant, now_, grant);
  return {};
}

std::string LogPlayer::on(const event::TakenBack& line) {
  std::string error = begin_call();
  if (error.empty()) error = check_grant(line.from, line.bytes);
  if (!error.empty()) return error;
  // What was there is in the core alone, and so the same here.
  static_cast<void>(shaper_->take_back(line.from, line.bytes, now_));
  write(&EventLog::take_back, now_, line.from, line.bytes);
  return error;
}

std::string LogPlayer::on(const event::Refused& line) {
  std::string error = begin_call();
  if (error.empty()) error = check_limit(line.at);
  if (!error.empty()) return error;
  shaper_->refuse(line.at, line.on, now_, verdicts_);
  write(&EventLog::refuse, now_, line.at, line.on);
  return error;
}

std::string LogPlayer::on(const event::Owned& line) {
  std::string error = begin_call();
  if (!error.empty()) return error;
  shaper_->on_owner(line.flow, line.owner, now_, verdicts_);
  write(&EventLog::owner, now_, line.flow, line.owner);
  return error;
}

std::string LogPlayer::on(const event::Outcome& line) {
  if (!shaper_) return kNotStarted;
  const auto expected = missing();
  if (!expected) return fmt::format("the log has `{}`, the replay has no verdict here", describe(line.verdict));
  if (!same_verdict(*expected, line.verdict)) {
    return fmt::format("the log has `{}`, the replay `{}`", describe(line.verdict), describe(*expected));
  }
  write(&EventLog::outcomes, now_, std::span(&*expected, 1));
  if (report_ != nullptr) report_->decided(*expected, now_);
  ++next_;
  ++result_.verdicts;
  return {};
}

std::string LogPlayer::on(const event::Skipped& line) {
  return fmt::format("{} lines are missing here (their reader was too slow): the rest cannot be replayed", line.lines);
}

}  // namespace shaper
