#include "shaper/model/control_protocol.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <utility>

#include "shaper/version.h"

namespace shaper {
namespace {

constexpr std::string_view kProtocol = "shaper/1 ";
constexpr std::size_t kLongestHead = 128;
constexpr std::array<std::string_view, 3> kStatusNames{"ok", "refused", "policy"};

/// "WORD NUMBER" -> both.
struct WordAndNumber {
  std::string_view word;
  std::size_t number = 0;
};
std::optional<WordAndNumber> split(std::string_view text) {
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos || space == 0) return std::nullopt;
  WordAndNumber both{text.substr(0, space), 0};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + space + 1, end, both.number);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return both;
}

bool set_head(std::string_view line, Request& request, std::size_t& body_bytes) {
  if (!line.starts_with(kProtocol)) return false;
  const auto head = split(line.substr(kProtocol.size()));
  if (!head || head->number > kLongestRequest) return false;
  request.verb = head->word;
  body_bytes = head->number;
  return true;
}

bool set_head(std::string_view line, Response& response, std::size_t& body_bytes) {
  const auto head = split(line);
  if (!head) return false;
  for (std::size_t i = 0; i < kStatusNames.size(); ++i) {
    if (kStatusNames[i] != head->word) continue;
    response.status = static_cast<ResponseStatus>(i);
    body_bytes = head->number;
    return true;
  }
  return false;
}

}  // namespace

std::string encode(const Request& request) {
  return fmt::format("{}{} {}\n{}", kProtocol, request.verb, request.body.size(), request.body);
}

std::string encode_head(ResponseStatus status, std::size_t body_bytes) {
  return fmt::format("{} {}\n", kStatusNames[static_cast<std::size_t>(status)], body_bytes);
}

std::optional<Response> answer_to_other_protocol(std::string_view bytes) {
  constexpr std::string_view kName = kProtocol.substr(0, kProtocol.find('/') + 1);
  if (!bytes.starts_with(kName) || bytes.starts_with(kProtocol)) return std::nullopt;
  return refused(
      fmt::format("the daemon is version {}, which speaks {}and no other protocol: use the shaper that was "
                  "installed with it, or end it ('shaper down' of that version) and start it anew",
                  kVersion, kProtocol));
}

template <typename Message>
bool MessageReader<Message>::feed(std::string_view bytes) {
  if (broken_) return false;
  buffer_ += bytes;
  if (!body_bytes_) broken_ = !read_head();
  return !broken_;
}

template <typename Message>
bool MessageReader<Message>::read_head() {
  const std::size_t end = buffer_.find('\n');
  if (end == std::string::npos) return buffer_.size() <= kLongestHead;
  std::size_t body_bytes = 0;
  message_ = {};
  if (end > kLongestHead || !set_head(std::string_view(buffer_).substr(0, end), message_, body_bytes)) return false;
  body_bytes_ = body_bytes;
  buffer_.erase(0, end + 1);
  return true;
}

template <typename Message>
std::optional<Message> MessageReader<Message>::next() {
  if (broken_ || !body_bytes_ || buffer_.size() < *body_bytes_) return std::nullopt;
  message_.body = buffer_.substr(0, *body_bytes_);
  buffer_.erase(0, *body_bytes_);
  body_bytes_.reset();
  Message whole = std::move(message_);
  broken_ = !read_head();
  return whole;
}

template <typename Message>
std::string MessageReader<Message>::take_rest() {
  return std::exchange(buffer_, {});
}

template class MessageReader<Request>;
template class MessageReader<Response>;

}  // namespace shaper
