// What `shaper` and `shaperd` say to each other over the control socket: pure, bytes in and bytes out.
//
//   request   shaper/1 VERB BYTES\n  and so many bytes of body
//   response  ok|refused|policy BYTES\n  and so many bytes of body
//
// `refused` and `policy` carry a line for people: the daemon will not, or the policy is bad. The answer to `events` is
// `ok 0` and then lines without end. Another version of the protocol is
// refused; a sender of anything else is cut off. docs/control-protocol.md lists the verbs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shaper {

/// The longest body of a request: a policy of ten thousand classes fits.
inline constexpr std::size_t kLongestRequest = 8 * 1024 * 1024;

/// How the daemon refuses a change to somebody who may not make it.
inline constexpr std::string_view kMayNotChange = "only root and the policy's 'operators' may change what is shaped";

/// How it refuses a verb of another version.
inline constexpr std::string_view kUnknownRequest = "the daemon does not know this request";

struct Request {
  std::string verb;
  std::string body;

  friend bool operator==(const Request&, const Request&) = default;
};

enum class ResponseStatus : std::uint8_t { ok, refused, policy };

struct Response {
  ResponseStatus status = ResponseStatus::ok;
  std::string body;

  friend bool operator==(const Response&, const Response&) = default;
};

/// `why` is a sentence.
[[nodiscard]] inline Response refused(std::string why) {
  return {ResponseStatus::refused, std::move(why)};
}

[[nodiscard]] std::string encode(const Request& request);
/// The first line of a response; its body follows.
[[nodiscard]] std::string encode_head(ResponseStatus status, std::size_t body_bytes);

/// What somebody is told who speaks another version of this protocol; nothing: `bytes` begin with none.
[[nodiscard]] std::optional<Response> answer_to_other_protocol(std::string_view bytes);

/// Puts a message together from the pieces in which a stream brings it.
template <typename Message>
class MessageReader {
 public:
  /// Takes bytes. False: this is not our protocol, and nothing more will be read.
  [[nodiscard]] bool feed(std::string_view bytes);
  /// The next whole message.
  [[nodiscard]] std::optional<Message> next();
  /// What came behind the last message that was taken.
  [[nodiscard]] std::string take_rest();
  /// Whether nothing is left of what was fed.
  [[nodiscard]] bool empty() const { return buffer_.empty() && !body_bytes_; }

 private:
  [[nodiscard]] bool read_head();

  std::string buffer_;
  Message message_;
  std::optional<std::size_t> body_bytes_;  // known when the first line is read
  bool broken_ = false;
};

using RequestReader = MessageReader<Request>;
using ResponseReader = MessageReader<Response>;

}  // namespace shaper
