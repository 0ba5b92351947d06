// A process that helps the worker, with whatever may take long or needs other privileges: started when it is needed,
// and again 200 ms after it has ended.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "shaper/live/event_loop.h"
#include "shaper/live/worker_process.h"

namespace shaper {

class Companion {
 public:
  struct Kind {
    const char* role;           ///< option in front of its task
    std::string_view verb;      ///< that brings it what it must know
    const char* does;           ///< for an error line: the process that …
    bool takes_other_settings;  ///< while it runs; else a fresh one does
  };

  Companion(EventLoop& loop, const std::string& program, const Kind& kind, bool foreground,
            WorkerProcess::Handlers handlers);

  /// What it must know; empty: it is not needed.
  void need(const std::string& settings);
  /// A message from it to one that comes after it, which gets it before the settings.
  void keep(std::string memory) { memory_ = std::move(memory); }

  [[nodiscard]] bool is(const WorkerProcess& process) const { return &process == process_.get(); }
  [[nodiscard]] bool runs() const { return process_ != nullptr; }
  /// Lost where it does not run.
  void send(std::string_view verb, std::string_view body);
  void kill() const { process_->kill(); }

  /// It has ended.
  void ended();
  /// It is to be started then.
  [[nodiscard]] std::optional<Instant> due() const { return due_; }
  void start();

  /// What a supervisor hands on.
  template <typename Image>
  void carry(Image& image) {
    image(settings_, memory_);
  }

 private:
  EventLoop& loop_;
  const std::string& program_;
  const Kind& kind_;
  bool foreground_;
  WorkerProcess::Handlers handlers_;
  std::unique_ptr<WorkerProcess> process_;
  std::string settings_;
  std::string memory_;
  std::optional<Instant> due_;
};

}  // namespace shaper
