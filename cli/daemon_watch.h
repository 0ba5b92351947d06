// Asks the daemon for its status and its flows again and again, in a thread of its own: a long listing stops no keys.
//
// Each of the two is asked for once in an interval, but never again before ten times as long has passed as it took: a
// hundred thousand flows do not keep the daemon busy. A daemon that goes away is looked for until there is one.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "shaper/core/units.h"
#include "shaper/live/control_client.h"
#include "shaper/live/fd.h"
#include "shaper/live/runtime_folder.h"
#include "shaper/model/report.h"

namespace shaper::cli {

class DaemonWatch {
 public:
  /// What has become known since the last time; what is absent has not changed.
  struct News {
    std::optional<StatusReport> status;
    Instant time;                       ///< of the status
    std::optional<Nanos> status_every;  ///< longer than the interval, because it takes long
    std::optional<FlowsReport> flows;
    std::optional<Nanos> flows_every;    ///< as above
    std::optional<std::string> trouble;  ///< why no daemon answers; `status` is what is known without one
  };

  DaemonWatch();
  ~DaemonWatch();
  DaemonWatch(const DaemonWatch&) = delete;
  DaemonWatch& operator=(const DaemonWatch&) = delete;

  /// Readable when there are news.
  [[nodiscard]] int fd() const { return wake_.get(); }
  [[nodiscard]] News take();

  void set_pace(std::chrono::seconds interval, bool paused);
  /// The status changes now: it is asked for at once.
  void look_now();

 private:
  /// When something is asked for again.
  struct Pace {
    Instant due;
    Nanos took{0};

    [[nodiscard]] Nanos every(Nanos interval) const;
    /// That, if it is longer than the interval.
    [[nodiscard]] std::optional<Nanos> longer(Nanos interval) const;
    void took_from(Instant start, Nanos interval);
  };

  void run();
  [[nodiscard]] bool wait_until_due();
  void look();
  void look_at_flows(Nanos interval);
  void find_daemon();
  void lose_daemon(const std::string& why);
  void tell(News news);

  Fd wake_;
  std::mutex mutex_;
  std::condition_variable changed_;
  News news_;
  std::chrono::seconds interval_{1};
  bool paused_ = false;
  bool look_now_ = false;
  bool stopped_ = false;
  std::optional<ControlClient> daemon_;  // replaced under the mutex, so that it can be hung up

  // Of the thread alone.
  Pace status_pace_;
  Pace flows_pace_;
  std::optional<StatusReport> without_daemon_;
  Instant without_daemon_since_;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace shaper::cli
