// The process that talks to Redis: started when a policy needs it, and again when it has ended.
#include <syslog.h>

#include "shaper/live/clock.h"
#include "shaper/live/supervisor.h"

namespace shaper {
namespace {

constexpr std::chrono::milliseconds kBeforeNextTry{200};

}  // namespace

/// Settings that have changed are for a fresh process.
void Supervisor::follow_cluster(const std::string& settings) {
  if (settings == cluster_) return;
  cluster_ = settings;
  if (redis_) {
    redis_->kill();  // the next one follows when it has ended
  } else if (!cluster_.empty()) {
    start_redis();
  }
}

void Supervisor::start_redis() {
  redis_at_.reset();
  if (redis_ || cluster_.empty() || ending_) return;
  WorkerTask task;
  task.foreground = settings_.foreground;
  try {
    redis_ = std::make_unique<WorkerProcess>(loop_, settings_.program, WorkerProcess::kTalksToRedis, task, handlers());
    redis_->send("connect", cluster_);
  } catch (const std::system_error& error) {
    ::syslog(LOG_ERR, "cannot start the process that talks to Redis: %s", error.what());
    redis_at_ = monotonic_now() + kBeforeNextTry;
  }
}

void Supervisor::on_redis_end() {
  redis_.reset();
  redis_at_ = monotonic_now() + kBeforeNextTry;
  set_timer();
}

}  // namespace shaper
