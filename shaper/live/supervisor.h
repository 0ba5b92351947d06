// Keeps a worker running, and packets flowing when there is none.
//
// It holds what must outlive a worker: the netlink socket with its bound queues, the control socket's listener, the
// policy in force (as text that it does not read) and the timers. When a worker dies, what that held is released at
// once, by one verdict for each queue, and a fresh worker takes over the socket, from the packet behind the last one
// released on. A worker that does not give a sign of life for kLongestSilence is ended, for a bound queue that nobody
// reads stops traffic. One that dies again and again is not started any more: then the queues are given up, and packets
// bypass us, or are blocked, as the rules say.
//
// A restart is no crash: an heir, which runs the program as it is on disk now, reads the policy while the worker goes
// on; then that leaves its state, packets included, and the heir takes over. When anything goes wrong before, nothing
// has changed. Last the supervisor itself gives way to the program on disk: the process stays, with all that is open.
//
// Where a policy has limits over several hosts, one more process talks to Redis; where it goes by who sends, one more
// finds owners. What these and the worker say to each other passes through here.
//
// It reads no packet and no policy, and of the worker's messages only fixed verbs with numbers. What needs more is done
// by the command line, which it runs: `shaper revert` when a change was not confirmed in time, `shaper tend` to look at
// the rules.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shaper/core/image.h"
#include "shaper/live/companion.h"
#include "shaper/live/event_loop.h"
#include "shaper/live/fd.h"
#include "shaper/live/helper_process.h"
#include "shaper/live/nfqueue.h"
#include "shaper/live/service_manager.h"
#include "shaper/live/timer.h"
#include "shaper/live/worker_process.h"

namespace shaper {

/// A worker tells five times a second that its loop goes round.
inline constexpr Nanos kSignOfLife = std::chrono::milliseconds{200};
inline constexpr Nanos kLongestSilence = std::chrono::milliseconds{1500};

/// What `shaper tend` says in its first line instead of the state of the rules when it has put them back; the second
/// one says when.
inline constexpr std::string_view kRepaired = "repaired";

class Supervisor {
 public:
  struct Settings {
    std::string program;         ///< shaperd
    std::string command_line;    ///< shaper; empty: not found
    std::string trouble_file;    ///< where a daemon that gives up says why
    std::string fallback_file;   ///< what `revert` brings back; removed when the change is confirmed
    std::string control_socket;  ///< removed at the end
    StartCredit credit = StartCredit::full;
    bool foreground = false;
    int lock = -1;  ///< a descriptor that must stay open
  };

  /// What a supervisor leaves open for the program that takes its place.
  struct Opened {
    int lock = -1;
    int queues = -1;
    int listener = -1;
    WorkerProcess::Running worker;
  };

  Supervisor(EventLoop& loop, NfqueueSocket queues, Fd listener, Settings settings);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// Starts the first worker. `on_ready` is called when it gives its first sign of life. Throws std::system_error.
  void start(std::function<void()> on_ready);
  /// Goes on in the place of the supervisor that wrote the image. Throws std::runtime_error.
  void resume(const WorkerProcess::Running& worker, ImageReader& image);

  /// An orderly end: the worker lets everything held go.
  void shut_down();

  /// What the process shall return when the loop has ended.
  [[nodiscard]] int exit_status() const { return exit_status_; }

 private:
  [[nodiscard]] std::unique_ptr<WorkerProcess> start_worker(StartCredit credit, int inherited = -1);
  [[nodiscard]] WorkerProcess::Handlers handlers();
  void on_message(const WorkerProcess& from, const Request& message);
  void on_end(const WorkerProcess& which, const std::string& word);
  void on_worker_end(const std::string& word);
  void recover(const std::string& word);
  void put_to_work(std::unique_ptr<WorkerProcess> fresh, const std::vector<PacketId>& released);
  void give_up(const std::string& word);
  void on_timer();
  void set_timer();
  void run_command_line(std::optional<HelperProcess>& helper, std::vector<std::string> words,
                        const HelperProcess::Done& done);
  void revert();
  void look_at_rules(bool mend);

  // The processes beside the worker (supervisor_companions.cpp).
  [[nodiscard]] std::array<Companion*, 2> companions() { return {&redis_, &owners_}; }
  [[nodiscard]] Companion* companion(const WorkerProcess& process);
  void on_companion_message(Companion& from, const Request& message);
  void pass_to_companion(const Request& message);
  void start_companions(Instant now);
  [[nodiscard]] bool end_companions();

  // A restart (supervisor_restart.cpp).
  void restart();
  void on_message_of_heir(const Request& message);
  void on_heir_end(const std::string& word);
  void end_late_heir();
  void change_over(bool has_image);
  void renew();
  template <typename Image>
  void carry(Image& image);

  EventLoop& loop_;
  Timer timer_;
  NfqueueSocket queues_;
  Fd listener_;
  Settings settings_;
  std::function<void()> on_ready_;
  ServiceManager manager_;

  std::unique_ptr<WorkerProcess> worker_;
  std::unique_ptr<WorkerProcess> heir_;    // of the worker, while it is made ready
  std::unique_ptr<WorkerProcess> former_;  // has handed over and ends
  Instant heir_until_;                     // it must be ready
  bool renews_ = false;                    // this program is to be replaced too
  Companion redis_;                        // talks to Redis, where the policy has limits there
  Companion owners_;                       // finds out who sends, where the policy goes by that
  Instant last_sign_;
  bool hung_ = false;  // and was ended for it
  bool ending_ = false;
  int exit_status_ = 0;
  std::deque<Instant> crashes_;
  std::uint64_t restarts_ = 0;

  std::string policy_;  // in force, as the worker gave it; empty: none yet
  std::vector<std::uint16_t> blocked_;
  std::optional<Instant> revert_at_;
  std::optional<Instant> look_at_;
  bool repair_ = false;
  std::optional<Instant> repaired_at_;
  std::optional<Instant> wake_at_;
  std::optional<HelperProcess> reverting_;
  std::optional<HelperProcess> looking_;
};

}  // namespace shaper
