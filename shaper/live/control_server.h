// Answers over a unix socket, in the packet loop's thread, so it never waits: what a client sends is put together piece
// by piece, what it is sent stays in a bounded buffer until it takes it, and long answers are made in slices between
// packets. Who may ask what is decided by the handler, from the peer's credentials. A client that has shut down its
// writing side asks no more and still gets what it has asked for.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "shaper/live/event_loop.h"
#include "shaper/live/fd.h"
#include "shaper/live/outbox.h"
#include "shaper/model/control_protocol.h"

namespace shaper {

/// Who asks, by the kernel's word.
struct Peer {
  uid_t user = 0;
  pid_t process = 0;
  std::vector<gid_t> groups;
};

/// How far a long answer is.
enum class Progress : std::uint8_t {
  more,   ///< call again soon
  waits,  ///< nothing to do until something wakes the loop up
  done,
};

/// Makes the next slice of a long answer: its body goes behind those of the slices before, its status counts when it is
/// done. A slice should take less than a millisecond.
using Slices = std::function<Progress(Response& response)>;

/// The client gets `head` now and everything that is published from now on.
struct Subscription {
  std::string head;
};

/// Listens at `path`, in the place of a socket that was left there. Throws std::system_error.
[[nodiscard]] Fd listen_at(const std::string& path);

class ControlServer {
 public:
  using Answer = std::variant<Response, Slices, Subscription>;
  using Handler = std::function<Answer(const Request&, const Peer&)>;

  /// For who connects to `listener`, of listen_at().
  ControlServer(EventLoop& loop, Fd listener, Handler handler);
  ~ControlServer();

  /// Takes new clients from now on, or leaves them to another process. Throws std::system_error.
  void open();
  void close();

  /// Sends lines to all subscribers. One that is too slow loses whole lines and is told how many.
  void publish(std::string_view lines);
  [[nodiscard]] bool has_subscribers() const;

  /// Makes one slice of one long answer, of each in turn; true while there is more to do.
  bool work();

  /// Whether everything was sent that is not for a subscriber.
  [[nodiscard]] bool all_answered() const;

 private:
  struct Client {
    Fd fd;
    Peer peer;
    RequestReader reader;
    Outbox out;
    Slices slices;
    Outbox made;  // by slices so far
    bool subscribed = false;
    bool asks_no_more = false;
    std::uint32_t watched = 0;  // epoll events
    std::uint64_t skipped = 0;  // lines that a slow subscriber lost
  };
  using Clients = std::list<Client>;

  void on_connect();
  void on_event(Clients::iterator client, std::uint32_t events);
  [[nodiscard]] bool read_requests(Client& client);
  void answer_requests(Client& client);
  [[nodiscard]] static Progress next_slice(Client& client, Response& response);
  void finish_slices(Clients::iterator client, ResponseStatus status);
  [[nodiscard]] bool write_out(Client& client);
  [[nodiscard]] static bool is_answered(const Client& client);
  void remove(Clients::iterator client);

  EventLoop& loop_;
  Handler handler_;
  Fd listener_;
  Clients clients_;
  Outbox unwanted_;  // of clients that went: given back piece by piece
  bool open_ = false;
};

}  // namespace shaper
