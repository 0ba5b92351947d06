#include "shaper/live/companion.h"

#include <syslog.h>

#include <system_error>
#include <utility>

#include "shaper/live/clock.h"

namespace shaper {
namespace {

constexpr std::chrono::milliseconds kBeforeNextTry{200};
constexpr std::string_view kMemory = "memory";

}  // namespace

Companion::Companion(EventLoop& loop, const std::string& program, const Kind& kind, bool foreground,
                     WorkerProcess::Handlers handlers)
    : loop_(loop), program_(program), kind_(kind), foreground_(foreground), handlers_(std::move(handlers)) {}

void Companion::need(const std::string& settings) {
  const bool same = settings == settings_;
  settings_ = settings;
  if (!process_) {
    if (!same) start();
  } else if (!settings.empty() && kind_.takes_other_settings) {
    process_->send(kind_.verb, settings);
  } else if (!same) {
    process_->kill();  // the next one follows when it has ended
  }
  if (settings.empty()) memory_.clear();
}

void Companion::send(std::string_view verb, std::string_view body) {
  if (process_) process_->send(verb, body);
}

void Companion::start() {
  due_.reset();
  if (process_ || settings_.empty()) return;
  WorkerTask task;
  task.foreground = foreground_;
  try {
    process_ = std::make_unique<WorkerProcess>(loop_, program_, kind_.role, task, handlers_);
    if (!memory_.empty()) process_->send(kMemory, memory_);
    process_->send(kind_.verb, settings_);
  } catch (const std::system_error& error) {
    ::syslog(LOG_ERR, "cannot start the process that %s: %s", kind_.does, error.what());
    due_ = monotonic_now() + kBeforeNextTry;
  }
}

void Companion::ended() {
  process_.reset();
  due_ = monotonic_now() + kBeforeNextTry;
}

}  // namespace shaper
