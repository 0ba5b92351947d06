// The process that talks to Redis for a worker, which never waits for it: takes asks for cluster limits from the
// supervisor, sends them in calls of the script, and tells what came of each.
//
// It knows nothing of packets and policies, and its death is to the worker what the death of Redis is.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "shaper/cluster/lease_script.h"
#include "shaper/live/channel.h"
#include "shaper/live/event_loop.h"
#include "shaper/live/lease_messages.h"
#include "shaper/live/redis_connection.h"
#include "shaper/live/timer.h"

namespace shaper {

class RedisHelper {
 public:
  /// Takes the other end of the supervisor's channel.
  RedisHelper(EventLoop& loop, Fd channel);

 private:
  void on_message(const Request& message);
  void connect(std::string_view settings);
  void greet();
  void ask(LeaseAsks asks, bool whole_script);
  void listen();
  void subscribe();
  void look_after_listener();
  void ask_listener(const std::vector<std::string>& words);
  void on_published(std::string_view text);
  void tell(const LeaseAsks& asks, const redisReply* reply, std::string_view failure);

  EventLoop& loop_;
  Channel supervisor_;
  LeaseHost host_;
  std::string address_;
  std::vector<std::string> login_;  // a command; empty: none is needed
  std::unique_ptr<RedisConnection> redis_;
  std::unique_ptr<RedisConnection> listener_;  // where a limit needs it: what other hosts spend comes there
  Instant told_;                               // for the last time
  Timer still_there_;
  Timer pass_on_;
  std::string spent_;   // elsewhere, to be passed on
  std::string barred_;  // why the server does not let us in; empty: it does
  Instant greeted_;
};

}  // namespace shaper
