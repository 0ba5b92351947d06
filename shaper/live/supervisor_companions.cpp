// The processes beside the worker: what is said passes through here.
#include <string>

#include "shaper/live/supervisor.h"

namespace shaper {

Companion* Supervisor::companion(const WorkerProcess& process) {
  for (Companion* each : companions()) {
    if (each->is(process)) return each;
  }
  return nullptr;
}

void Supervisor::on_companion_message(Companion& from, const Request& message) {
  if (message.verb == "memory") {
    from.keep(message.body);
  } else if (worker_) {
    worker_->send(message.verb, message.body);
  }
}

void Supervisor::pass_to_companion(const Request& message) {
  if (ending_) return;
  if (message.verb == "cluster") {
    redis_.need(message.body);
  } else if (message.verb == "ask") {
    redis_.send(message.verb, message.body);
  } else if (message.verb == "owners") {
    owners_.need(message.body);
  } else if (message.verb == "own") {
    owners_.send(message.verb, message.body);
  }
}

void Supervisor::start_companions(Instant now) {
  for (Companion* each : companions()) {
    if (!ending_ && each->due() && *each->due() <= now) each->start();
  }
}

/// Whether any runs still.
bool Supervisor::end_companions() {
  bool any = false;
  for (Companion* each : companions()) {
    if (each->runs()) each->kill();
    any |= each->runs();
  }
  return any;
}

}  // namespace shaper
