// Messages between the supervisor and its worker over a pair of stream sockets, both ways alike: a verb and a body, as
// on the control socket. Sending never waits: what the other side does not take yet stays here.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "shaper/live/event_loop.h"
#include "shaper/live/fd.h"
#include "shaper/model/control_protocol.h"

namespace shaper {

class Channel {
 public:
  /// Calls `take` for each message and `closed` once, when the other side is gone; neither may destroy the channel.
  Channel(EventLoop& loop, Fd fd, std::function<void(const Request&)> take, std::function<void()> closed);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  void send(std::string_view verb, std::string_view body = {});
  /// Takes what has come already, without waiting for the loop.
  void receive();

  [[nodiscard]] int fd() const { return fd_.get(); }
  /// Whether neither a message nor a part of one waits here.
  [[nodiscard]] bool quiet() const { return out_.empty() && reader_.empty(); }

  /// Two ends that belong together. Throws std::system_error.
  [[nodiscard]] static std::pair<Fd, Fd> make_ends();

 private:
  void write_out();
  void close();

  EventLoop& loop_;
  Fd fd_;
  std::function<void(const Request&)> take_;
  std::function<void()> closed_;
  RequestReader reader_;
  std::string out_;
  bool waits_to_write_ = false;
};

}  // namespace shaper
