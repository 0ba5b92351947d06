// Feeds a core with the calls of an event log, one line at a time, and compares every verdict.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "shaper/core/shaper.h"
#include "shaper/model/config.h"
#include "shaper/model/event_log.h"
#include "shaper/model/live_limits.h"
#include "shaper/replay/event_stream.h"
#include "shaper/replay/replay_log.h"

namespace shaper {

class LogPlayer {
 public:
  explicit LogPlayer(const LogReplayOptions& options)
      : read_(options.read), events_(options.events), report_(options.report) {}

  /// One line's event; the answer is empty if all is well, else what is wrong.
  [[nodiscard]] std::string play(const Event& event);

  /// Nothing is left that the core said and the log does not.
  [[nodiscard]] std::optional<Verdict> missing() const {
    return next_ < verdicts_.size() ? std::optional(verdicts_[next_]) : std::nullopt;
  }

  /// All of it is written; the answer is empty, or says why not.
  [[nodiscard]] std::string finish() { return events_.finish(); }

  [[nodiscard]] bool started() const { return shaper_.has_value(); }
  [[nodiscard]] const LogReplay& result() const { return result_; }
  /// What the core has to say now. Meant for a log that has started.
  [[nodiscard]] ReplayFigures figures() const;
  [[nodiscard]] const std::string& policy_text() const { return policy_text_; }

 private:
  template <typename... Parameters, typename... Arguments>
  void write(void (EventLog::*line)(Parameters...), const Arguments&... arguments) {
    if (EventLog* log = events_.log(); log != nullptr) (log->*line)(arguments...);
  }
  std::span<const event::Name> new_names();
  [[nodiscard]] std::string describe(const Verdict& verdict) const;

  [[nodiscard]] std::string check_time(const Event& event) const;
  [[nodiscard]] std::string check_mtu(LinkIndex link, std::uint32_t bytes) const;
  [[nodiscard]] std::string check_limit(const LimitKey& bucket) const;
  [[nodiscard]] std::string check_grant(const LimitKey& bucket, ByteCount bytes) const;
  [[nodiscard]] static std::string check_grant_terms(Instant valid_until, DataRate pace);
  [[nodiscard]] std::string read_policy(const std::string& text);
  [[nodiscard]] std::string begin_call();

  // The head (log_player.cpp).
  std::string on(const event::PolicyText& line);
  std::string on(const event::Name& line);
  std::string on(const event::GuardPorts& line);
  std::string on(const event::FindsOwners& line);
  std::string on(const event::Live& line);
  std::string on(const event::Mtu& line);
  std::string on(const event::Start& line);
  std::string on(const event::Granting& line);

  // Calls and what came of them (log_player_calls.cpp).
  std::string on(const event::Arrival& line);
  std::string on(const event::Release& line);
  std::string on(const event::Departed& line);
  std::string on(const event::QueuesDry& line);
  std::string on(const event::Swap& line);
  std::string on(const event::MtuChange& line);
  std::string on(const event::Lost& line);
  std::string on(const event::PassAll& line);
  std::string on(const event::Granted& line);
  std::string on(const event::TakenBack& line);
  std::string on(const event::Refused& line);
  std::string on(const event::Owned& line);
  std::string on(const event::Outcome& line);
  std::string on(const event::Skipped& line);

  const PolicyReader& read_;
  EventStream events_;
  ReportCollector* report_;
  Policy policy_;
  std::string policy_text_;
  std::vector<event::Name> names_;
  std::size_t written_names_ = 0;
  std::vector<std::uint16_t> guard_ports_;  // of the next policy
  bool finds_owners_ = false;               // under the next policy
  std::vector<LiveLimit> live_;             // of the next policy
  std::vector<event::Mtu> mtus_;
  std::optional<Shaper> shaper_;
  Instant now_;
  Verdicts verdicts_;     // of the last call
  std::size_t next_ = 0;  // of them, not yet met in the log
  LogReplay result_;
};

}  // namespace shaper
