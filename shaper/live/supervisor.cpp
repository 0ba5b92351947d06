#include "shaper/live/supervisor.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <syslog.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <system_error>
#include <utility>

#include "shaper/live/clock.h"
#include "shaper/model/plain_text.h"

namespace shaper {
namespace {

/// More crashes than this in so long a time, and nothing is tried any more.
constexpr std::size_t kMostCrashes = 5;
constexpr std::chrono::seconds kCrashMemory{30};

constexpr std::chrono::seconds kBetweenLooks{5};
constexpr std::chrono::seconds kBetweenRepairs{60};  // who removes them may do so again and again

/// A timer that fires so late tells that this process, or the whole machine, stood still: then the worker did too.
constexpr std::chrono::milliseconds kStoodStill{400};

constexpr Companion::Kind kRedis{WorkerProcess::kTalksToRedis, "connect", "talks to Redis", false};
constexpr Companion::Kind kOwners{WorkerProcess::kFindsOwners, "settings", "finds owners", true};

std::string utc_now() {
  return fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)));
}

}  // namespace

Supervisor::Supervisor(EventLoop& loop, NfqueueSocket queues, Fd listener, Settings settings)
    : loop_(loop),
      timer_(loop, [this] { on_timer(); }),
      queues_(std::move(queues)),
      listener_(std::move(listener)),
      settings_(std::move(settings)),
      redis_(loop, settings_.program, kRedis, settings_.foreground, handlers()),
      owners_(loop, settings_.program, kOwners, settings_.foreground, handlers()) {
  loop_.on_idle([this] {
    if (renews_) renew();
    return false;
  });
}

void Supervisor::start(std::function<void()> on_ready) {
  on_ready_ = std::move(on_ready);
  for (const std::string& left : {settings_.trouble_file, settings_.fallback_file}) ::unlink(left.c_str());
  worker_ = start_worker(settings_.credit);
  last_sign_ = monotonic_now();
  set_timer();
}

Supervisor::~Supervisor() {
  ::unlink(settings_.control_socket.c_str());
}

std::unique_ptr<WorkerProcess> Supervisor::start_worker(StartCredit credit, int inherited) {
  WorkerTask task;
  task.queues = queues_.fd();
  task.listener = listener_.get();
  task.owner = ::geteuid();
  task.credit = credit;
  task.foreground = settings_.foreground;
  task.inherited = inherited;
  return std::make_unique<WorkerProcess>(loop_, settings_.program, WorkerProcess::kWorks, task, handlers());
}

WorkerProcess::Handlers Supervisor::handlers() {
  return {[this](const WorkerProcess& from, const Request& message) { on_message(from, message); },
          [this](const WorkerProcess& which, const std::string& word) { on_end(which, word); }};
}

void Supervisor::on_message(const WorkerProcess& from, const Request& message) {
  if (&from == heir_.get()) return on_message_of_heir(message);
  if (Companion* const companion = this->companion(from)) return on_companion_message(*companion, message);
  if (&from != worker_.get()) return;
  const std::string& verb = message.verb;
  last_sign_ = monotonic_now();
  if (on_ready_) std::exchange(on_ready_, nullptr)();
  if (verb == "alive") {
    manager_.alive();
  } else if (verb == "in-force") {
    policy_ = message.body;
  } else if (verb == "blocked") {
    blocked_ = parse_numbers(message.body);
  } else if (verb == "repair") {
    repair_ = message.body == "1";
  } else if (verb == "install-rules") {
    look_at_rules(true);
  } else if (verb == "rules-installed") {
    manager_.ready();
    look_at_ = monotonic_now() + kBetweenLooks;
  } else if (verb == "revert-after") {
    const auto seconds = parse_number<std::uint32_t>(message.body);
    if (seconds) revert_at_ = monotonic_now() + std::chrono::seconds{*seconds};
  } else if (verb == "confirmed") {
    revert_at_.reset();
    ::unlink(settings_.fallback_file.c_str());
  } else if (verb == "restart") {
    restart();
  } else if (verb == "handed-over" || verb == "no-image") {
    change_over(verb == "handed-over");
  } else {
    pass_to_companion(message);
  }
  set_timer();
}

// --- A worker ends ---------------------------------------------------------------------------------------------------

void Supervisor::on_end(const WorkerProcess& which, const std::string& word) {
  if (&which == former_.get()) {
    former_.reset();
  } else if (&which == heir_.get()) {
    on_heir_end(word);
  } else if (Companion* const companion = this->companion(which)) {
    companion->ended();
    set_timer();
  } else {
    on_worker_end(word);
  }
}

void Supervisor::on_worker_end(const std::string& word) {
  worker_.reset();
  if (word.empty()) {
    loop_.stop();
  } else if (on_ready_) {  // it has said on stderr what it cannot do
    exit_status_ = 1;
    loop_.stop();
  } else {
    recover(hung_ ? "did not answer" : word);
  }
}

/// What is held goes first, whatever comes then.
void Supervisor::recover(const std::string& word) {
  const std::vector<PacketId> released = queues_.release_all(blocked_);
  ::syslog(LOG_ERR, "the worker %s: what it held was released", word.c_str());
  if (ending_) return loop_.stop();
  const Instant now = monotonic_now();
  crashes_.push_back(now);
  while (now - crashes_.front() > kCrashMemory) crashes_.pop_front();
  if (crashes_.size() > kMostCrashes) return give_up(word);

  ++restarts_;
  auto fresh = heir_ ? std::move(heir_) : start_worker(StartCredit::empty);
  fresh->send("restarted", fmt::format("{} {} {}", restarts_, utc_now(), word));
  put_to_work(std::move(fresh), released);
}

/// From the packets behind `released` on.
void Supervisor::put_to_work(std::unique_ptr<WorkerProcess> fresh, const std::vector<PacketId>& released) {
  worker_ = std::move(fresh);
  hung_ = false;
  last_sign_ = monotonic_now();
  std::string ids;
  for (const PacketId& id : released) ids += fmt::format("{} {}\n", id.queue, id.number);
  worker_->send("released", ids);
  if (revert_at_) {
    const auto left = std::chrono::ceil<std::chrono::seconds>(*revert_at_ - last_sign_);
    worker_->send("unconfirmed", fmt::format("{}", std::max<std::int64_t>(left.count(), 0)));
  }
  if (!policy_.empty()) worker_->send("load", policy_);
  set_timer();
}

void Supervisor::give_up(const std::string& word) {
  const std::string line = fmt::format("gave up at {}: the worker {}, {} times in {} s", utc_now(), word,
                                       crashes_.size(), kCrashMemory.count());
  ::syslog(LOG_CRIT, "%s", line.c_str());
  std::ofstream(settings_.trouble_file) << line << '\n';
  exit_status_ = 1;
  loop_.stop();
}

void Supervisor::shut_down() {
  if (ending_) return;
  ending_ = true;
  manager_.stopping();
  if (worker_) worker_->send("end");
}

// --- Time ------------------------------------------------------------------------------------------------------------

void Supervisor::set_timer() {
  wake_at_ = last_sign_ + kLongestSilence;
  for (const auto& other : {revert_at_, look_at_, redis_.due(), owners_.due()}) {
    if (other) wake_at_ = std::min(*wake_at_, *other);
  }
  if (heir_) wake_at_ = std::min(*wake_at_, heir_until_);
  timer_.set(wake_at_);
}

void Supervisor::on_timer() {
  const Instant now = monotonic_now();
  if (wake_at_ && now - *wake_at_ > kStoodStill) last_sign_ = now;
  if (worker_ && now - last_sign_ >= kLongestSilence) {
    hung_ = true;
    last_sign_ = now;
    worker_->kill();
  }
  if (heir_ && heir_until_ <= now) end_late_heir();
  start_companions(now);
  if (revert_at_ && *revert_at_ <= now) {
    revert_at_.reset();
    revert();
  }
  if (look_at_ && *look_at_ <= now) {
    look_at_ = now + kBetweenLooks;
    look_at_rules(repair_ && (!repaired_at_ || now - *repaired_at_ >= kBetweenRepairs));
  }
  set_timer();
}

/// A system that has no process left for it is no reason to end: `done` is told that it went wrong.
void Supervisor::run_command_line(std::optional<HelperProcess>& helper, std::vector<std::string> words,
                                  const HelperProcess::Done& done) {
  words.insert(words.begin(), settings_.command_line);
  try {
    helper.emplace(loop_, std::move(words), done);
  } catch (const std::system_error& error) {
    done(false, error.what());
  }
}

/// The change was not confirmed: back to what was before.
void Supervisor::revert() {
  ::syslog(LOG_WARNING, "not confirmed in time: going back to what was before");
  run_command_line(reverting_, {"revert"}, [this](bool good, const std::string& output) {
    if (good) return;
    ::syslog(LOG_ERR, "going back failed, trying again: %s", output.c_str());
    revert_at_ = monotonic_now() + kBetweenLooks;
    set_timer();
  });
}

void Supervisor::look_at_rules(bool mend) {
  if (settings_.command_line.empty() || (looking_ && !looking_->ended())) return;
  std::vector<std::string> words{"tend"};
  if (mend) words.emplace_back("--repair");
  run_command_line(looking_, std::move(words), [this](bool good, const std::string& output) {
    if (!good) return;
    if (output.starts_with(kRepaired)) {
      repaired_at_ = monotonic_now();
      ::syslog(LOG_WARNING, "our rules were missing or changed: put back");
    }
    if (worker_) worker_->send("rules", output);
  });
}

}  // namespace shaper
