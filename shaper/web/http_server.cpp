#include "shaper/web/http_server.h"

#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "shaper/live/system_call.h"

namespace shaper {
namespace {

constexpr unsigned kIdleSeconds = 10;
constexpr std::size_t kMemoryOfConnection = 16 * 1024;

/// With every reply. Scripts, styles and pictures come from us alone, nothing may frame the page, and no other site may
/// take our answers in.
constexpr std::array<std::pair<const char*, const char*>, 5> kHeaders{{
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
     "form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cache-Control", "no-store"},
}};

/// One request from its first line to its end.
struct Exchange {
  HttpRequest request;
  bool asked = false;
  std::optional<HttpReply> reply;
};

MHD_Result send(MHD_Connection* connection, const HttpReply& reply) {
  // The body stays where it is: the exchange outlives the response.
  MHD_Response* response = MHD_create_response_from_buffer(
      reply.body.size(), const_cast<char*>(reply.body.data()),  // NOLINT: it is only read
      MHD_RESPMEM_PERSISTENT);
  if (response == nullptr) return MHD_NO;
  for (const auto& [name, value] : kHeaders) MHD_add_response_header(response, name, value);
  MHD_add_response_header(response, "Content-Type", reply.type.c_str());
  if (reply.status == MHD_HTTP_METHOD_NOT_ALLOWED) MHD_add_response_header(response, "Allow", "GET, HEAD");
  const MHD_Result result = MHD_queue_response(connection, reply.status, response);
  MHD_destroy_response(response);
  return result;
}

std::vector<std::string> values_of(MHD_Connection* connection, MHD_ValueKind kind, std::string_view wanted) {
  struct Search {
    std::string_view wanted;
    std::vector<std::string> found;
  } search{wanted, {}};
  const auto take = [](void* to, MHD_ValueKind, const char* name, const char* value) {
    auto& into = *static_cast<Search*>(to);
    const std::string_view key = name;
    const bool same = key.size() == into.wanted.size() && ::strncasecmp(name, into.wanted.data(), key.size()) == 0;
    if (same) into.found.emplace_back(value == nullptr ? "" : value);
    return MHD_YES;
  };
  MHD_get_connection_values(connection, kind, take, &search);
  return search.found;
}

std::map<std::string, std::string> query_of(MHD_Connection* connection) {
  std::map<std::string, std::string> query;
  const auto take = [](void* to, MHD_ValueKind, const char* name, const char* value) {
    (*static_cast<std::map<std::string, std::string>*>(to))[name] = value == nullptr ? "" : value;
    return MHD_YES;
  };
  MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, take, &query);
  return query;
}

int descriptor_of(MHD_Connection* connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

/// Why it is not served; nothing: it is.
std::optional<HttpReply> refusal(MHD_Connection* connection, std::string_view method, const HostNames& names) {
  if (method != MHD_HTTP_METHOD_GET && method != MHD_HTTP_METHOD_HEAD) {
    return HttpReply{MHD_HTTP_METHOD_NOT_ALLOWED, HttpReply{}.type, "only GET and HEAD: nothing can be changed here\n"};
  }
  const auto hosts = values_of(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
  if (hosts.size() == 1 && names.allow(hosts.front())) return std::nullopt;
  return HttpReply{MHD_HTTP_FORBIDDEN, HttpReply{}.type,
                   "this name of the host is not served; start 'shaper serve' with --host NAME for it\n"};
}

}  // namespace

Fd listen_on(const EndPoint& end_point) {
  const bool ipv4 = end_point.family == Family::ipv4;
  Fd listener(require(::socket(ipv4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "socket"));
  const int yes = 1;
  require(::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes), "setsockopt SO_REUSEADDR");
  const std::string what = "cannot listen at " + format_end_point(end_point);
  const in_port_t port = htons(end_point.port.value_or(0));
  if (ipv4) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = port;
    std::memcpy(&address.sin_addr, end_point.address.data(), sizeof address.sin_addr);
    require(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), what);
  } else {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = port;
    std::memcpy(&address.sin6_addr, end_point.address.data(), sizeof address.sin6_addr);
    require(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), what);
  }
  require(::listen(listener.get(), SOMAXCONN), what);
  return listener;
}

struct HttpServer::Calls {
  static MHD_Result on_request(void* of, MHD_Connection* connection, const char* url, const char* method, const char*,
                               const char*, std::size_t* body_bytes, void** state) {
    auto& server = *static_cast<HttpServer*>(of);
    if (*state == nullptr) {
      auto* exchange = std::make_unique<Exchange>().release();  // on_finished() takes it back
      *state = exchange;
      exchange->reply = refusal(connection, method, server.names_);
      if (exchange->reply) return send(connection, *exchange->reply);  // whatever body follows is not read
      exchange->request = {url, query_of(connection)};
      return MHD_YES;
    }
    auto& exchange = *static_cast<Exchange*>(*state);
    if (*body_bytes > 0) {
      *body_bytes = 0;  // of a GET: means nothing
      return MHD_YES;
    }
    if (!exchange.reply && !ask(server, connection, exchange)) return MHD_YES;
    return send(connection, *exchange.reply);
  }

  /// False: the reply comes later; the connection rests until then.
  static bool ask(HttpServer& server, MHD_Connection* connection, Exchange& exchange) {
    if (std::exchange(exchange.asked, true)) return false;
    auto answer = server.handler_(exchange.request);
    if (auto* reply = std::get_if<HttpReply>(&answer)) {
      exchange.reply = std::move(*reply);
      return true;
    }
    MHD_suspend_connection(connection);
    std::get<Later>(answer)([connection, &exchange](HttpReply reply) {
      exchange.reply = std::move(reply);
      MHD_resume_connection(connection);
    });
    return false;
  }

  static void on_finished(void* of, MHD_Connection* connection, void** state, MHD_RequestTerminationCode) {
    auto& server = *static_cast<HttpServer*>(of);
    const std::unique_ptr<Exchange> exchange(static_cast<Exchange*>(std::exchange(*state, nullptr)));
    const std::scoped_lock lock(server.connections_mutex_);
    const auto found = server.connections_.find(descriptor_of(connection));
    if (found != server.connections_.end()) found->second = Clock::now();
  }

  static void on_connection(void* of, MHD_Connection* connection, void**, MHD_ConnectionNotificationCode what) {
    auto& server = *static_cast<HttpServer*>(of);
    const std::scoped_lock lock(server.connections_mutex_);
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
      server.connections_[descriptor_of(connection)] = Clock::now();
    } else {
      server.connections_.erase(descriptor_of(connection));
    }
  }

  static void on_message(void*, const char*, va_list) {}  // about clients that go, or send what is no HTTP
};

HttpServer::HttpServer(Fd listener, HostNames names, Handler handler)
    : names_(std::move(names)), handler_(std::move(handler)) {
  constexpr unsigned kFlags =
      MHD_USE_EPOLL | MHD_USE_INTERNAL_POLLING_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC | MHD_USE_ERROR_LOG;
  daemon_ = MHD_start_daemon(kFlags, 0, nullptr, nullptr, &Calls::on_request, this,          //
                             MHD_OPTION_EXTERNAL_LOGGER, &Calls::on_message, nullptr,        //
                             MHD_OPTION_LISTEN_SOCKET, listener.get(),                       //
                             MHD_OPTION_NOTIFY_COMPLETED, &Calls::on_finished, this,         //
                             MHD_OPTION_NOTIFY_CONNECTION, &Calls::on_connection, this,      //
                             MHD_OPTION_CONNECTION_LIMIT, kMostConnections,                  //
                             MHD_OPTION_PER_IP_CONNECTION_LIMIT, kMostConnectionsOfAddress,  //
                             MHD_OPTION_CONNECTION_TIMEOUT, kIdleSeconds,                    //
                             MHD_OPTION_CONNECTION_MEMORY_LIMIT, kMemoryOfConnection,        //
                             MHD_OPTION_STRICT_FOR_CLIENT, 1,                                //
                             MHD_OPTION_END);
  if (daemon_ == nullptr)
    throw std::runtime_error("the HTTP server cannot start: no memory, thread or descriptor left");
  (void)listener.release();  // libmicrohttpd closes it
}

HttpServer::~HttpServer() {
  MHD_stop_daemon(daemon_);
}

void HttpServer::cut_off_slow() {
  const std::scoped_lock lock(connections_mutex_);
  const auto now = Clock::now();
  for (auto& [descriptor, since] : connections_) {
    // It is closed by the thread that serves it, which cannot be before this lock is free.
    if (now - since > kRequestLimit) ::shutdown(descriptor, SHUT_RDWR);
  }
}

}  // namespace shaper
