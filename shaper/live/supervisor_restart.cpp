// A restart, as the supervisor sees it; what the workers say to each other by way of it: service_restart.cpp.
#include <syslog.h>

#include <utility>

#include "shaper/live/clock.h"
#include "shaper/live/supervisor.h"

namespace shaper {
namespace {

/// A policy of ten thousand classes is read in a second.
constexpr std::chrono::seconds kLongestPreparation{10};

}  // namespace

/// The program is the one on disk now, which may be newer.
void Supervisor::restart() {
  if (heir_ || former_ || ending_) return worker_->send("stay", "another restart is not over yet");
  try {
    heir_ = start_worker(StartCredit::empty, worker_->image());
  } catch (const std::system_error& error) {
    return worker_->send("stay", error.what());
  }
  heir_until_ = monotonic_now() + kLongestPreparation;
  heir_->send("prepare", policy_);
}

void Supervisor::on_message_of_heir(const Request& message) {
  if (message.verb == "prepared") {
    worker_->send("hand-over", message.body);
  } else if (message.verb == "refused") {
    worker_->send("stay", message.body);
    heir_->kill();
  }
}

void Supervisor::on_heir_end(const std::string& word) {
  heir_.reset();
  if (worker_) worker_->send("stay", "it " + (word.empty() ? "ended" : word));
  set_timer();
}

/// The worker has stopped. Without an image, or without an heir who could read it, the next one begins as after a
/// crash.
void Supervisor::change_over(bool has_image) {
  former_ = std::move(worker_);
  if (has_image && heir_) {
    worker_ = std::move(heir_);
    last_sign_ = monotonic_now();
    worker_->send("take-over");
    ::syslog(LOG_NOTICE, "restarted: a new worker has taken over");
    return;
  }
  ::syslog(LOG_NOTICE, "restarted: a new worker begins anew; what was held was released");
  const std::vector<PacketId> released = queues_.release_all(blocked_);
  put_to_work(heir_ ? std::move(heir_) : start_worker(StartCredit::empty), released);
}

}  // namespace shaper
