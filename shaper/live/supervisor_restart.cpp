// A restart, as the supervisor sees it; what the workers say to each other by way of it: service_restart.cpp.
#include <fmt/format.h>
#include <syslog.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "shaper/live/clock.h"
#include "shaper/live/handed_over.h"
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
    heir_ = start_worker(StartCredit::empty, worker_->running().image);
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

void Supervisor::end_late_heir() {
  worker_->send("stay", fmt::format("it was not ready in {} s", kLongestPreparation.count()));
  heir_->kill();
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
    renews_ = true;
    ::syslog(LOG_NOTICE, "restarted: a new worker has taken over");
    return;
  }
  ::syslog(LOG_NOTICE, "restarted: a new worker begins anew; what was held was released");
  const std::vector<PacketId> released = queues_.release_all(blocked_);
  put_to_work(heir_ ? std::move(heir_) : start_worker(StartCredit::empty), released);
}

/// What this process knows that its worker does not.
template <typename Image>
void Supervisor::carry(Image& image) {
  image(policy_, blocked_, restarts_, revert_at_, look_at_, repair_, repaired_at_);
  for (Companion* each : companions()) each->carry(image);
}

/// Gives way to the program on disk, which has just proved that it runs here, as soon as nothing is under way.
void Supervisor::renew() {
  const auto runs = [](const std::optional<HelperProcess>& helper) { return helper && !helper->ended(); };
  if (ending_ || heir_ || former_ || !worker_ || !worker_->quiet() || runs(reverting_) || runs(looking_)) return;
  if (end_companions()) return;  // the next program starts its own
  renews_ = false;
  const Opened opened{settings_.lock, queues_.fd(), listener_.get(), worker_->running()};
  ImageWriter image;
  image(opened);
  carry(image);
  const Fd file = make_image_file();
  write_image(file.get(), image.bytes());

  std::vector<std::string> words{"shaperd", "--resume", std::to_string(file.get())};
  if (settings_.foreground) words.emplace_back("--foreground");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const auto all = {opened.lock,           opened.queues,       opened.listener,
                    opened.worker.channel, opened.worker.image, file.get()};
  keep_open(all);
  ::execv(settings_.program.c_str(), arguments.data());
  ::syslog(LOG_ERR, "restarted, but the supervisor stays as it is: %s: %s", settings_.program.c_str(),
           std::strerror(errno));
  keep_open(all, false);
}

void Supervisor::resume(const WorkerProcess::Running& worker, ImageReader& image) {
  carry(image);
  if (!image.complete()) throw std::runtime_error("the image of the supervisor before cannot be read");
  worker_ = std::make_unique<WorkerProcess>(loop_, worker, handlers());
  last_sign_ = monotonic_now();
  for (Companion* each : companions()) each->start();
  set_timer();
}

}  // namespace shaper
