// The other end of the control socket, for the command line: asks, waits for the answer.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "shaper/live/fd.h"
#include "shaper/model/control_protocol.h"

namespace shaper {

class ControlClient {
 public:
  /// Nothing: no daemon listens at `path`. Throws std::system_error for anything else (no permission).
  [[nodiscard]] static std::optional<ControlClient> connect(const std::string& path);

  /// Throws std::runtime_error if the daemon goes away, does not answer within `limit` or answers with something else.
  [[nodiscard]] Response request(std::string_view verb, std::string_view body = "",
                                 std::chrono::milliseconds limit = std::chrono::seconds{30});

  /// Asks for the event log and hands it over as it comes, until the daemon ends or `take` returns false.
  [[nodiscard]] Response stream(std::string_view verb, const std::function<bool(std::string_view)>& take);

  /// Ends what another thread waits for: it finds the connection closed.
  void hang_up() const;

 private:
  explicit ControlClient(Fd fd) : fd_(std::move(fd)) {}

  void send_request(std::string_view verb, std::string_view body);
  [[nodiscard]] std::optional<std::string> receive();

  Fd fd_;
};

}  // namespace shaper
