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
  using Answer = ControlServer::Answer;

  /// What comes with a policy text.
  struct Loaded {
    std::string text;
    Policy policy;
    std::vector<std::string> warnings;
    std::vector<event::Name> names;
  };

  Answer answer(const Request& request, const Peer& peer);
  Response load(const std::string& body);
  Answer status();
  Answer flows();
  Answer events();
  Answer explain(const std::string& body);

  [[nodiscard]] tl::expected<std::vector<QueuePair>, std::string> bind_queues(const Policy& policy);
  [[nodiscard]] tl::expected<QueuePair, std::string> bind_next_pair(LinkIndex link);
  void follow_mtus();
  void on_links_changed();
  [[nodiscard]] std::vector<std::string> warnings() const;
  void publish_events();
  bool on_idle();

  EventLoop& loop_;
  StartCredit credit_;
  HashKey key_;
  LinkWatch links_;
  ControlServer control_;
  std::optional<Loaded> loaded_;
  std::optional<Shaper> shaper_;
  std::optional<PacketLoop> packets_;
  std::map<std::string, QueuePair> queues_;  // by link name; a link that goes keeps its pair for its return
  std::uint16_t next_queue_;
  std::string event_text_;
  EventLog event_log_{event_text_};
  bool ending_ = false;
};

}  // namespace shaper
