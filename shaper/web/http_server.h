// HTTP for readers, on libmicrohttpd: GET and HEAD, and nothing that another site's page could read.
//
// One thread serves all connections and never waits: what must be asked for first is given to Later, and the connection
// rests until it is there. Connections are bounded in number and memory; one that finishes no request for 20 s is cut
// off, however many bytes it sends or takes meanwhile.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>

#include "shaper/live/fd.h"
#include "shaper/web/host_names.h"

struct MHD_Daemon;

namespace shaper {

inline constexpr unsigned kMostConnections = 256;
inline constexpr unsigned kMostConnectionsOfAddress = 128;
inline constexpr std::chrono::seconds kRequestLimit{20};

struct HttpRequest {
  std::string path;
  std::map<std::string, std::string> query;
};

struct HttpReply {
  unsigned status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

/// A socket that listens there. Throws std::system_error.
[[nodiscard]] Fd listen_on(const EndPoint& end_point);

class HttpServer {
 public:
  using Answer = std::function<void(HttpReply)>;
  /// Calls its argument once, from any thread.
  using Later = std::function<void(Answer)>;
  /// Runs in the thread of all connections.
  using Handler = std::function<std::variant<HttpReply, Later>(const HttpRequest&)>;

  /// Serves in a thread of its own from now on. Throws std::runtime_error.
  HttpServer(Fd listener, HostNames names, Handler handler);
  /// Whatever was asked for must have been answered.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// To be called now and then.
  void cut_off_slow();

 private:
  struct Calls;  // what libmicrohttpd calls
  using Clock = std::chrono::steady_clock;

  HostNames names_;
  Handler handler_;
  std::mutex connections_mutex_;
  std::map<int, Clock::time_point> connections_;  ///< by descriptor: since when its request is not finished
  MHD_Daemon* daemon_ = nullptr;
};

}  // namespace shaper
