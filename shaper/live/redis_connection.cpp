#include "shaper/live/redis_connection.h"

#include <hiredis/hiredis.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "shaper/live/clock.h"
#include "shaper/live/system_call.h"
#include "shaper/model/rules.h"

namespace shaper {
namespace {

constexpr Nanos kFirstPause = std::chrono::milliseconds{20};
constexpr Nanos kLongestPause = std::chrono::milliseconds{500};
constexpr Nanos kLongestConnect = std::chrono::milliseconds{500};
/// For a path that has died: the kernel gives up on data that is not acknowledged in so many milliseconds.
constexpr unsigned kUnacknowledged = 200;

void set(int fd, int level, int option, unsigned value) {
  ::setsockopt(fd, level, option, &value, sizeof value);  // each of them helps, none is needed
}

Fd connect_to(const sockaddr* address, socklen_t length) {
  Fd fd(::socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return fd;
  if (address->sa_family != AF_UNIX) {
    set(fd.get(), SOL_SOCKET, SO_MARK, kOwnTraffic);
    set(fd.get(), IPPROTO_TCP, TCP_NODELAY, 1);
    set(fd.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, kUnacknowledged);
  }
  if (::connect(fd.get(), address, length) < 0 && errno != EINPROGRESS) fd.close();
  return fd;
}

Fd connect_to_path(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return {};
  std::copy(path.begin(), path.end(), address.sun_path);
  return connect_to(reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

/// To the first of its addresses that can be tried.
Fd connect_to_host(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return {};
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), address.c_str() + colon + 1, &hints, &found) != 0) return {};
  Fd fd;
  for (const addrinfo* each = found; each != nullptr && !fd; each = each->ai_next) {
    fd = connect_to(each->ai_addr, each->ai_addrlen);
  }
  ::freeaddrinfo(found);
  return fd;
}

std::string format_command(std::span<const std::string> words) {
  std::vector<const char*> texts;
  std::vector<std::size_t> lengths;
  for (const std::string& word : words) {
    texts.push_back(word.data());
    lengths.push_back(word.size());
  }
  char* formatted = nullptr;
  const int length = redisFormatCommandArgv(&formatted, static_cast<int>(texts.size()), texts.data(), lengths.data());
  if (length < 0) return {};
  std::string command(formatted, static_cast<std::size_t>(length));
  redisFreeCommand(formatted);
  return command;
}

/// What was published, if it is that and no answer.
std::optional<std::string_view> published(const redisReply* reply) {
  if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3) return std::nullopt;
  const redisReply* kind = reply->element[0];
  const redisReply* text = reply->element[2];
  if (kind->type != REDIS_REPLY_STRING || text->type != REDIS_REPLY_STRING) return std::nullopt;
  if (std::string_view(kind->str, kind->len) != "message") return std::nullopt;
  return std::string_view(text->str, text->len);
}

}  // namespace

void RedisConnection::FreeReader::operator()(redisReader* reader) const {
  redisReaderFree(reader);
}

RedisConnection::RedisConnection(EventLoop& loop, std::string address, std::function<void()> on_up)
    : loop_(loop), timer_(loop, [this] { on_timer(); }), address_(std::move(address)), on_up_(std::move(on_up)) {
  connect();
}

RedisConnection::~RedisConnection() {
  if (fd_) loop_.remove(fd_.get());
}

void RedisConnection::connect() {
  try_at_.reset();
  fd_ = address_.starts_with('/') ? connect_to_path(address_) : connect_to_host(address_);
  if (!fd_) return lose("unreachable");
  state_ = State::connecting;
  reader_.reset(redisReaderCreate());
  out_.clear();
  waits_to_write_ = true;
  loop_.add(fd_.get(), EPOLLIN | EPOLLOUT, [this](std::uint32_t events) { on_event(events); });
  try_at_ = monotonic_now() + kLongestConnect;  // if nothing has come of it then
  set_timer();
}

void RedisConnection::on_event(std::uint32_t events) {
  if (state_ == State::connecting) return on_connected();
  if ((events & EPOLLOUT) != 0) write_out();
  if (state_ == State::up && (events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) read_answers();
}

void RedisConnection::on_connected() {
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0 || error != 0) return lose("refused");
  state_ = State::up;
  pause_ = {};
  try_at_.reset();
  on_up_();
  write_out();
}

void RedisConnection::call(std::span<const std::string> words, Nanos timeout, Answered answered) {
  if (state_ != State::up) return answered(nullptr, "unreachable");
  pending_.push_back({monotonic_now() + timeout, std::move(answered)});
  out_ += format_command(words);
  write_out();
  set_timer();
}

void RedisConnection::write_out() {
  send_what_fits(fd_.get(), out_);
  const bool waits = !out_.empty();
  if (waits == waits_to_write_) return;
  waits_to_write_ = waits;
  loop_.change(fd_.get(), waits_to_write_ ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void RedisConnection::read_answers() {
  std::array<char, 65'536> bytes;
  const ssize_t count = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return lose("disconnected");
  redisReaderFeed(reader_.get(), bytes.data(), static_cast<std::size_t>(count));
  while (state_ == State::up) {
    void* reply = nullptr;
    if (redisReaderGetReply(reader_.get(), &reply) != REDIS_OK) return lose("garbled");
    if (reply == nullptr) break;
    take(static_cast<const redisReply*>(reply));
    freeReplyObject(reply);
  }
  set_timer();
}

void RedisConnection::take(const redisReply* reply) {
  if (const auto message = published(reply); message && on_message_) return on_message_(*message);
  if (pending_.empty()) return lose("garbled");
  const Answered answered = std::move(pending_.front().answered);
  pending_.pop_front();
  answered(reply, {});
}

/// What waits for an answer is told that there is none.
void RedisConnection::lose(std::string_view reason) {
  if (fd_) {
    loop_.remove(fd_.get());
    fd_.close();
  }
  state_ = State::down;
  pause_ = pause_ == Nanos{0} ? kFirstPause : std::min(2 * pause_, kLongestPause);
  try_at_ = monotonic_now() + pause_;
  for (const Pending& each : std::exchange(pending_, {})) each.answered(nullptr, reason);
  set_timer();
}

/// Answers come in the order of the questions, so the first one is the oldest; but times differ.
void RedisConnection::on_timer() {
  const Instant now = monotonic_now();
  const bool late =
      std::any_of(pending_.begin(), pending_.end(), [&](const Pending& each) { return each.until <= now; });
  if (late) {
    lose("timeout");
  } else if (try_at_ && *try_at_ <= now) {
    state_ == State::connecting ? lose("timeout") : connect();
  }
  set_timer();
}

void RedisConnection::set_timer() {
  std::optional<Instant> next = try_at_;
  for (const Pending& each : pending_) {
    if (!next || each.until < *next) next = each.until;
  }
  timer_.set(next);
}

}  // namespace shaper
