// One worker: a process of shaperd's own program that decides about packets, seen from the supervisor.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "shaper/core/shaper.h"
#include "shaper/live/channel.h"
#include "shaper/live/event_loop.h"
#include "shaper/live/fd.h"

namespace shaper {

/// What a worker inherits: numbers of open descriptors, and how it begins.
struct WorkerTask {
  int channel = -1;
  int queues = -1;    ///< the netlink socket
  int listener = -1;  ///< of the control socket
  uid_t owner = 0;    ///< who started the daemon
  StartCredit credit = StartCredit::full;
  bool foreground = false;  ///< log to stderr as well
  int image = -1;           ///< a file for what the next worker needs to go on
  int inherited = -1;       ///< what the one before it leaves; -1: it is no heir

  /// As the one argument behind `--worker`, and back; nothing: it is none.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] static std::optional<WorkerTask> parse(std::string_view text);
};

class WorkerProcess {
 public:
  struct Handlers {
    std::function<void(const WorkerProcess& from, const Request&)> on_message;
    /// With the word on how it ended: empty if all was in order, else as "was ended by signal 9". It may destroy the
    /// object.
    std::function<void(const WorkerProcess& which, const std::string&)> on_end;
  };

  /// Runs `program`; `task.channel` and `task.image` are filled in. Throws std::system_error.
  WorkerProcess(EventLoop& loop, const std::string& program, WorkerTask task, Handlers handlers);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  void send(std::string_view verb, std::string_view body = {}) { channel_->send(verb, body); }
  /// SIGKILL; on_end follows.
  void kill() const;
  /// The file in which it leaves what the next worker needs.
  [[nodiscard]] int image() const { return image_.get(); }

 private:
  void on_exit();

  EventLoop& loop_;
  Handlers handlers_;
  pid_t process_ = 0;
  Fd handle_;  // pidfd
  Fd image_;
  std::unique_ptr<Channel> channel_;
};

}  // namespace shaper
