#include "shaper/live/engine_socket.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "shaper/live/clock.h"
#include "shaper/live/fd.h"
#include "shaper/live/system_call.h"

namespace shaper {
namespace {

constexpr std::size_t kLongestAnswer = 8 * 1024 * 1024;

/// Without waiting: the queue of one that answers is not full.
Fd connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return {};
  std::memcpy(address.sun_path, path.data(), path.size());
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const auto* const plain = reinterpret_cast<const sockaddr*>(&address);
  if (!fd || ::connect(fd.get(), plain, sizeof address) != 0) return {};
  return fd;
}

bool wait_for_bytes(int socket, Instant until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - monotonic_now());
  pollfd waits{socket, POLLIN, 0};
  return left.count() > 0 && ::poll(&waits, 1, static_cast<int>(left.count())) > 0;
}

std::string body_of(const std::string& answer) {
  const std::size_t status = answer.find(' ');
  const std::size_t body = answer.find("\r\n\r\n");
  if (!answer.starts_with("HTTP/1.") || body == std::string::npos) return "";
  return std::string_view(answer).substr(status).starts_with(" 200 ") ? answer.substr(body + 4) : "";
}

}  // namespace

std::string ask_engine(const std::string& socket, const std::string& path, Nanos patience) {
  const Instant until = monotonic_now() + patience;
  const Fd fd = connect_to(socket);
  if (!fd) return "";
  std::string question = fmt::format("GET {} HTTP/1.0\r\nHost: localhost\r\n\r\n", path);
  send_what_fits(fd.get(), question);
  std::string answer;
  std::array<char, 65'536> bytes;
  while (wait_for_bytes(fd.get(), until)) {
    const ssize_t count = ::recv(fd.get(), bytes.data(), bytes.size(), 0);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0 || answer.size() > kLongestAnswer) return "";
    if (count == 0) return body_of(answer);
    answer.append(bytes.data(), static_cast<std::size_t>(count));
  }
  return "";
}

}  // namespace shaper
