// One worker: a process of shaperd's own program that decides about packets, or that helps who does, seen from the
// supervisor.
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

  /// A worker that runs already, a child of this process: numbers of open descriptors.
  struct Running {
    pid_t process = 0;
    int channel = -1;
    int image = -1;
  };

  /// What the process is for: the option in front of its task.
  static constexpr const char* kWorks = "--worker";
  static constexpr const char* kTalksToRedis = "--redis";
  static constexpr const char* kFindsOwners = "--owners";

  /// Runs `program`; `task.channel` and `task.image` are filled in. Throws std::system_error.
  WorkerProcess(EventLoop& loop, const std::string& program, const char* role, WorkerTask task, Handlers handlers);
  /// Takes the descriptors of one that runs. Throws std::system_error.
  WorkerProcess(EventLoop& loop, const Running& running, Handlers handlers);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  void send(std::string_view verb, std::string_view body = {}) { channel_->send(verb, body); }
  /// SIGKILL; on_end follows.
  void kill() const;
  /// As it could be handed on; `image` is where it leaves what the next worker needs.
  [[nodiscard]] Running running() const { return {process_, channel_->fd(), image_.get()}; }
  /// Whether no message is on its way in this process.
  [[nodiscard]] bool quiet() const { return channel_->quiet(); }

 private:
  void watch(Fd channel);
  void on_exit();

  EventLoop& loop_;
  Handlers handlers_;
  pid_t process_ = 0;
  Fd handle_;  // pidfd
  Fd image_;
  std::unique_ptr<Channel> channel_;
};

}  // namespace shaper
