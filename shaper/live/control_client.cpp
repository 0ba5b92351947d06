#include "shaper/live/control_client.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "shaper/live/system_call.h"

namespace shaper {

std::optional<ControlClient> ControlClient::connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) throw std::system_error(ENAMETOOLONG, std::system_category(), path);
  std::copy(path.begin(), path.end(), address.sun_path);
  Fd fd(require(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    return ControlClient(std::move(fd));
  }
  if (errno == ENOENT || errno == ECONNREFUSED) return std::nullopt;
  throw std::system_error(errno, std::system_category(), "connect " + path);
}

void ControlClient::hang_up() const {
  ::shutdown(fd_.get(), SHUT_RDWR);
}

void ControlClient::send_request(std::string_view verb, std::string_view body) {
  const std::string bytes = encode(Request{std::string(verb), std::string(body)});
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t count = ::send(fd_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      throw std::runtime_error("the daemon closed the connection: it takes no more clients, or it stopped");
    sent += static_cast<std::size_t>(count);
  }
}

/// Some bytes; nothing at the end of the stream.
std::optional<std::string> ControlClient::receive() {
  std::array<char, 65'536> bytes;
  for (;;) {
    const ssize_t count = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
    if (count > 0) return std::string(bytes.data(), static_cast<std::size_t>(count));
    if (count == 0 || errno == ECONNRESET) return std::nullopt;
    if (errno == EAGAIN) throw std::runtime_error("the daemon does not answer");
    if (errno != EINTR) throw std::system_error(errno, std::system_category(), "recv");
  }
}

Response ControlClient::request(std::string_view verb, std::string_view body, std::chrono::milliseconds limit) {
  const timeval time{limit.count() / 1000, static_cast<suseconds_t>(limit.count() % 1000 * 1000)};
  require(::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time), "setsockopt SO_RCVTIMEO");
  send_request(verb, body);
  ResponseReader reader;
  for (;;) {
    const auto bytes = receive();
    if (!bytes) throw std::runtime_error("the daemon closed the connection");
    if (!reader.feed(*bytes))
      throw std::runtime_error("the daemon speaks another protocol: restart it with this version");
    if (auto response = reader.next()) return *response;
  }
}

Response ControlClient::stream(std::string_view verb, const std::function<bool(std::string_view)>& take) {
  send_request(verb, "");
  ResponseReader reader;
  std::optional<Response> response;
  while (auto bytes = receive()) {
    if (response) {
      if (!take(*bytes)) break;
      continue;
    }
    if (!reader.feed(*bytes))
      throw std::runtime_error("the daemon speaks another protocol: restart it with this version");
    response = reader.next();
    if (!response) continue;
    if (response->status != ResponseStatus::ok || !take(reader.take_rest())) break;
  }
  if (!response) throw std::runtime_error("the daemon closed the connection");
  return *response;
}

}  // namespace shaper
