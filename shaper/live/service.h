// The daemon's work: a policy in force, the queues of its links, and answers to the command line.
//
// It starts without a policy; the first `load` brings one, later ones change it. The rules that lead packets here are
// the command line's. Single thread: everything runs in the event loop.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shaper/live/background.h"
#include "shaper/live/control_server.h"
#include "shaper/live/event_loop.h"
#include "shaper/live/links.h"
#include "shaper/live/packet_loop.h"
#include "shaper/model/config.h"
#include "shaper/model/report.h"

namespace shaper {

class Service {
 public:
  /// `socket_path`: where to listen. Throws std::system_error.
  Service(EventLoop& loop, const std::string& socket_path, StartCredit credit);

  /// Lets everything held go and ends the loop; nothing is lost, also while rules still lead here.
  void shut_down();

 private:
  static constexpr std::uint32_t kUnknownMtu = 1500;

  using Answer = ControlServer::Answer;

  /// A policy that has come into force, and what came with its text.
  struct Loaded {
    std::string text;
    Policy policy;
    std::vector<std::string> warnings;
    std::vector<event::Name> names;
  };
  /// A policy that may come into force, made away from the packets.
  struct Ready {
    Loaded loaded;
    PreparedPolicy prepared;
  };
  using Reading = tl::expected<Ready, Response>;

  Answer answer(const Request& request, const Peer& peer);
  Answer load(const std::string& body, const Peer& peer);
  [[nodiscard]] static Reading read_policy(const std::string& body);
  [[nodiscard]] Response bring_into_force(Reading reading);
  Answer status();
  Answer flows();
  Answer events();
  Answer explain(const std::string& body);

  [[nodiscard]] tl::expected<std::vector<QueuePair>, std::string> bind_queues(const Policy& policy);
  [[nodiscard]] tl::expected<QueuePair, std::string> bind_next_pair(LinkIndex link);
  void follow_mtus();
  void on_links_changed();
  void follow_realtime();
  [[nodiscard]] std::vector<std::string> warnings() const;
  [[nodiscard]] StatusReport status_without_classes() const;
  void publish_events();
  bool on_idle();

  EventLoop& loop_;
  StartCredit credit_;
  HashKey key_;
  LinkWatch links_;
  ControlServer control_;
  KernelQueueTable kernel_queues_;
  std::shared_ptr<const Loaded> loaded_;  // shared with work in the background, which reads the policy
  std::string realtime_trouble_;          // why the policy in force is not served in real time
  int runaways_before_ = 0;               // of the time when it came into force
  std::optional<Shaper> shaper_;
  std::optional<PacketLoop> packets_;
  std::map<std::string, QueuePair> queues_;  // by link name; a link that goes keeps its pair for its return
  std::uint16_t next_queue_;
  std::string event_text_;
  EventLog event_log_{event_text_};
  bool ending_ = false;
  Background background_;  // the last member: its work ends first
};

}  // namespace shaper
