#include "cli/daemon_watch.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <utility>

#include "cli/commands.h"
#include "cli/daemon_link.h"
#include "cli/status.h"
#include "shaper/live/clock.h"
#include "shaper/live/system_call.h"

namespace shaper::cli {
namespace {

/// Of the time, at most one part in so many is spent on asking for one thing.
constexpr int kRestFactor = 10;
constexpr std::chrono::seconds kLongestRest{60};

/// Without a daemon the rules are looked at, as often as a daemon does.
constexpr std::chrono::seconds kBetweenLooksAtRules{5};

}  // namespace

Nanos DaemonWatch::Pace::every(Nanos interval) const {
  return std::max(interval, std::min<Nanos>(kRestFactor * took, kLongestRest));
}

std::optional<Nanos> DaemonWatch::Pace::longer(Nanos interval) const {
  return every(interval) > interval ? std::optional(every(interval)) : std::nullopt;
}

void DaemonWatch::Pace::took_from(Instant start, Nanos interval) {
  took = monotonic_now() - start;
  due = start + every(interval);
}

DaemonWatch::DaemonWatch()
    : wake_(require(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd")), thread_([this] { run(); }) {}

DaemonWatch::~DaemonWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    if (daemon_) daemon_->hang_up();
  }
  changed_.notify_all();
  thread_.join();
}

DaemonWatch::News DaemonWatch::take() {
  eventfd_t count = 0;
  (void)::eventfd_read(wake_.get(), &count);
  const std::lock_guard lock(mutex_);
  return std::exchange(news_, {});
}

void DaemonWatch::set_pace(std::chrono::seconds interval, bool paused) {
  {
    const std::lock_guard lock(mutex_);
    if (interval == interval_ && paused == paused_) return;
    interval_ = interval;
    paused_ = paused;
  }
  changed_.notify_all();
}

void DaemonWatch::look_now() {
  {
    const std::lock_guard lock(mutex_);
    look_now_ = true;
  }
  changed_.notify_all();
}

void DaemonWatch::tell(News news) {
  const std::lock_guard lock(mutex_);
  if (news.status) {
    news_.status = std::move(news.status);
    news_.time = news.time;
    news_.status_every = news.status_every;
    news_.trouble = std::move(news.trouble);
  }
  if (news.flows) {
    news_.flows = std::move(news.flows);
    news_.flows_every = news.flows_every;
  }
  (void)::eventfd_write(wake_.get(), 1);
}

void DaemonWatch::run() {
  while (wait_until_due()) {
    try {
      look();
    } catch (const std::exception& error) {
      lose_daemon(error.what());
    }
  }
}

/// False: the end.
bool DaemonWatch::wait_until_due() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    if (!paused_ && std::exchange(look_now_, false)) status_pace_.due = monotonic_now();
    // An interval that was made shorter holds at once.
    for (Pace* pace : {&status_pace_, &flows_pace_}) {
      pace->due = std::min(pace->due, monotonic_now() + pace->every(interval_));
    }
    const Nanos left = std::min(status_pace_.due, flows_pace_.due) - monotonic_now();
    if (!paused_ && left <= Nanos{0}) return true;
    if (paused_) {
      changed_.wait(lock);
    } else {
      changed_.wait_for(lock, left);
    }
  }
  return false;
}

void DaemonWatch::look() {
  Nanos interval{};
  {
    const std::lock_guard lock(mutex_);
    interval = interval_;
  }
  const Instant start = monotonic_now();
  if (status_pace_.due <= start) {
    status_pace_.due = start + interval;  // should it fail
    find_daemon();
    News news;
    news.status = ask_status(*daemon_);
    news.time = monotonic_now();
    status_pace_.took_from(start, interval);
    news.status_every = status_pace_.longer(interval);
    tell(std::move(news));
  }
  if (daemon_ && flows_pace_.due <= monotonic_now()) look_at_flows(interval);
}

void DaemonWatch::look_at_flows(Nanos interval) {
  const Instant start = monotonic_now();
  News news;
  news.flows = ask_flows(*daemon_);
  flows_pace_.took_from(start, interval);
  news.flows_every = flows_pace_.longer(interval);
  tell(std::move(news));
}

void DaemonWatch::find_daemon() {
  if (daemon_) return;
  auto found = connect_or_fail();
  {
    const std::lock_guard lock(mutex_);
    daemon_ = std::move(found);
  }
  without_daemon_.reset();
  flows_pace_ = {};
}

/// Says so, and what that means for the traffic.
void DaemonWatch::lose_daemon(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    daemon_.reset();
    if (stopped_) return;
  }
  const Instant now = monotonic_now();
  if (!without_daemon_ || now - without_daemon_since_ > kBetweenLooksAtRules) {
    try {
      without_daemon_ = report_without_daemon(find_folder());
    } catch (const std::exception&) {
      without_daemon_ = StatusReport{};
      without_daemon_->mode = Mode::bypassed;
    }
    without_daemon_since_ = now;
  }
  flows_pace_.due = status_pace_.due;
  News news;
  news.time = now;
  news.status = *without_daemon_;
  news.trouble = why;
  tell(std::move(news));
}

}  // namespace shaper::cli
