// The worker's part: a policy in force, the queues of its links, and answers to the command line.
//
// The first worker starts without a policy; a `load` brings one, later ones change it. One that follows a worker that
// died gets its policy and its queues from the supervisor. The rules that lead packets here are the command line's.
// Single thread: everything runs in the event loop.
#pragma once

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shaper/live/background.h"
#include "shaper/live/channel.h"
#include "shaper/live/cluster_limits.h"
#include "shaper/live/control_server.h"
#include "shaper/live/event_loop.h"
#include "shaper/live/links.h"
#include "shaper/live/owner_search.h"
#include "shaper/live/packet_loop.h"
#include "shaper/live/timer.h"
#include "shaper/live/worker_process.h"
#include "shaper/model/config.h"
#include "shaper/model/live_limits.h"
#include "shaper/model/report.h"

namespace shaper {

class Service {
 public:
  /// Takes what the supervisor has opened; `queues` is made of its part of the task. Throws std::system_error.
  Service(EventLoop& loop, const WorkerTask& task, NfqueueSocket queues);

  /// Lets everything held go and ends the loop; nothing is lost, also while rules still lead here.
  void shut_down();

 private:
  static constexpr std::uint32_t kUnknownMtu = 1500;

  using Answer = ControlServer::Answer;

  /// A policy that has come into force, and what came with its text.
  struct Loaded {
    std::string file;  ///< its name, for messages
    std::string text;
    Policy policy;
    HostPolicy host;
    std::vector<std::string> warnings;
    std::vector<event::Name> names;
    bool ordered = false;  ///< by somebody, not by a process that goes on
    std::vector<LiveLimit> live;
  };
  /// What a policy obeys besides its text.
  struct Beside {
    std::vector<std::uint16_t> guard_ports;
    std::vector<LiveLimit> live;
  };
  /// Somebody wants another policy in force, or other live limits beside it.
  struct Wish {
    std::optional<std::string> policy;  ///< a line with the file's name, and the text; absent: that in force
    bool ordered = false;               ///< as Loaded has it
    std::function<void(std::vector<LiveLimit>&)> change_live;
    std::string answer;  ///< if live limits change; else it is that of bring_into_force()
    std::string log;     ///< who wanted what
  };
  /// A policy that may come into force, made away from the packets.
  struct Ready {
    Loaded loaded;
    PreparedPolicy prepared;
  };
  using Reading = tl::expected<Ready, Response>;
  struct Job {
    Wish wish;
    std::uint64_t began_at;  ///< changes_
    std::future<Reading> reading;
    std::optional<Response> response;  ///< it has come into force, or was refused
  };

  Answer answer(const Request& request, const Peer& peer);
  [[nodiscard]] bool may_change(const Peer& peer) const;
  [[nodiscard]] std::optional<Answer> change(const Request& request, const Peer& peer);
  Answer load(const std::string& body, const Peer& peer, bool ordered);
  Slices bring_about(Wish wish);
  bool bring_about(Job& job);
  void begin_reading(Job& job);
  Answer guard_too(const std::string& ports, const Peer& peer);
  [[nodiscard]] static Reading read_policy(const std::string& body, Beside beside);
  [[nodiscard]] Response bring_into_force(Reading reading);
  void settle_in(Loaded loaded);
  void follow_cluster();
  Answer status();
  Answer flows();
  Answer events();
  Answer explain(const std::string& body);
  [[nodiscard]] Answer cluster() const;

  // The supervisor (service_supervision.cpp).
  void give_signs_of_life();
  void on_supervisor(const Request& message);
  void go_on_with(std::string_view in_force);
  [[nodiscard]] std::string adopt_queues(std::string_view in_force);
  [[nodiscard]] Reading read_in_force(std::string_view in_force);
  void tell_in_force();
  Response await_confirmation(const std::string& seconds);
  Response disarm();
  void add_warnings_of_supervisor(std::vector<std::string>& warnings) const;

  // Live limits (service_live.cpp).
  Answer limit(const std::string& body, const Peer& peer);
  Answer unlimit(const std::string& body, const Peer& peer);
  void on_live_limit_ends();
  void end_limits_of(std::string_view processes);
  void await_end_of_live_limits();

  // A restart (service_restart.cpp).
  Answer restart();
  void stay(const std::string& reason);
  void prepare(std::string_view in_force);
  void hand_over(const std::string& layout);
  void take_over();
  template <typename Image>
  void carry(Image& image);

  [[nodiscard]] tl::expected<std::vector<QueuePair>, std::string> bind_queues(const Policy& policy);
  [[nodiscard]] tl::expected<QueuePair, std::string> bind_next_pair(LinkIndex link);
  void follow_mtus();
  void on_links_changed();
  void follow_realtime();
  [[nodiscard]] std::vector<std::string> warnings(const std::optional<ClusterReport>& cluster) const;
  [[nodiscard]] StatusReport status_without_classes(const std::optional<ClusterReport>& cluster) const;
  void publish_events();
  bool on_idle();

  EventLoop& loop_;
  StartCredit credit_;
  uid_t owner_;
  HashKey key_;
  LinkWatch links_;
  ControlServer control_;
  std::shared_ptr<const Loaded> loaded_;  // shared with work in the background, which reads the policy
  std::string realtime_trouble_;          // why the policy in force is not served in real time
  int runaways_before_ = 0;               // of the time when it came into force
  std::optional<Shaper> shaper_;
  PacketLoop packets_;
  ClusterLimits cluster_;
  OwnerSearch owners_;
  std::map<std::string, QueuePair> queues_;  // by link name; a link that goes keeps its pair for its return
  std::uint16_t next_queue_;
  std::string event_text_;
  EventLog event_log_{event_text_};
  bool ending_ = false;
  Channel supervisor_;
  Timer sign_of_life_;
  std::vector<std::string> trouble_;  // that the supervisor told of
  std::optional<Instant> reverts_at_;
  std::vector<std::uint16_t> guard_ports_;  // that the next policy guards
  std::vector<LiveLimit> live_;             // beside the policy in force, or the next one
  std::uint64_t last_live_id_ = 0;
  std::uint64_t changes_ = 0;  // of what is in force
  Timer live_ends_;
  std::optional<Slices> ending_live_;             // live limits are being taken away
  std::map<std::string, std::string> passwords_;  // for Redis, by the files that have them
  std::optional<RulesStatus> rules_;              // as the supervisor saw them last
  std::vector<std::string> rules_warnings_;
  Fd image_;                                 // for what the next worker needs to go on
  Fd inherited_;                             // what the one before has left; none: this one was not started as an heir
  std::optional<Reading> ready_;             // an heir's policy
  bool restarting_ = false;                  // an heir is being made ready
  std::optional<Response> restart_outcome_;  // for whoever asked for it
  bool handed_over_ = false;
  Background background_;  // the last member: its work ends first
};

}  // namespace shaper
