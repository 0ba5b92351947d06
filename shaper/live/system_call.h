// System calls whose errors are handled in one way: at start-up by an exception with the call's name, caught in main.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace shaper {

/// Passes the result on, or throws with errno's meaning and `call`.
inline int require(int result, const std::string& call) {
  if (result < 0) throw std::system_error(errno, std::system_category(), call);
  return result;
}

/// Sends what the socket takes now; the rest stays in `text`. What cannot be sent at all is found out by reading.
inline void send_what_fits(int socket, std::string& text) {
  std::size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t count = ::send(socket, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;
    sent += static_cast<std::size_t>(count);
  }
  text.erase(0, sent);
}

}  // namespace shaper
