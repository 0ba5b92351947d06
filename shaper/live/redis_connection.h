// A connection to one Redis server that never waits: commands go out as the socket takes them, each answer comes to
// whoever asked, and what is not answered in time ends the connection.
//
// The protocol is hiredis's; the socket is ours, so that it has our mark from its first packet on (own traffic is not
// shaped: model/rules.h) and a dead path is noticed. A lost connection is tried again after 20 ms, then ever more
// slowly, 500 ms at most. A host name is looked up at each try, which may take a while: nothing else happens meanwhile.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "shaper/core/units.h"
#include "shaper/live/event_loop.h"
#include "shaper/live/fd.h"
#include "shaper/live/timer.h"

struct redisReader;
struct redisReply;

namespace shaper {

class RedisConnection {
 public:
  /// The answer, valid inside the call; or nothing and one word: why there is none.
  using Answered = std::function<void(const redisReply* reply, std::string_view failure)>;

  /// `address` is HOST:PORT, [ADDRESS]:PORT or the path of a unix socket. `on_up` is called after each connect, before
  /// anything else is sent. Throws std::system_error.
  RedisConnection(EventLoop& loop, std::string address, std::function<void()> on_up);
  ~RedisConnection();
  RedisConnection(const RedisConnection&) = delete;
  RedisConnection& operator=(const RedisConnection&) = delete;

  /// Calls `on_message` with what is published to a channel that this connection has subscribed to.
  void listen(std::function<void(std::string_view)> on_message) { on_message_ = std::move(on_message); }

  /// Sends a command. Without a connection it has failed at once.
  void call(std::span<const std::string> words, Nanos timeout, Answered answered);

  [[nodiscard]] bool up() const { return state_ == State::up; }

 private:
  enum class State : std::uint8_t { down, connecting, up };
  struct Pending {
    Instant until;
    Answered answered;
  };
  struct FreeReader {
    void operator()(redisReader* reader) const;
  };

  void connect();
  void on_event(std::uint32_t events);
  void on_connected();
  void read_answers();
  void take(const redisReply* reply);
  void write_out();
  void lose(std::string_view reason);
  void on_timer();
  void set_timer();

  EventLoop& loop_;
  Timer timer_;
  std::string address_;
  std::function<void()> on_up_;
  std::function<void(std::string_view)> on_message_;
  State state_ = State::down;
  Fd fd_;
  std::unique_ptr<redisReader, FreeReader> reader_;
  std::string out_;
  bool waits_to_write_ = false;
  std::deque<Pending> pending_;
  std::optional<Instant> try_at_;
  Nanos pause_{0};
};

}  // namespace shaper
