#include "shaper/live/channel.h"

#include <sys/socket.h>

#include <array>

#include "shaper/live/system_call.h"

namespace shaper {

std::pair<Fd, Fd> Channel::make_ends() {
  std::array<int, 2> ends{};
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), "socketpair");
  return {Fd(ends[0]), Fd(ends[1])};
}

Channel::Channel(EventLoop& loop, Fd fd, std::function<void(const Request&)> take, std::function<void()> closed)
    : loop_(loop), fd_(std::move(fd)), take_(std::move(take)), closed_(std::move(closed)) {
  loop_.add(fd_.get(), EPOLLIN, [this](std::uint32_t events) {
    if ((events & EPOLLOUT) != 0) write_out();
    if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0) receive();
  });
}

Channel::~Channel() {
  if (fd_) loop_.remove(fd_.get());
}

void Channel::close() {
  if (!fd_) return;
  loop_.remove(fd_.get());
  fd_.close();
  closed_();
}

void Channel::receive() {
  std::array<char, 65'536> bytes;
  while (fd_) {
    const ssize_t count = ::recv(fd_.get(), bytes.data(), bytes.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0 || !reader_.feed({bytes.data(), static_cast<std::size_t>(count)})) return close();
    while (const auto message = reader_.next()) take_(*message);
  }
}

void Channel::send(std::string_view verb, std::string_view body) {
  if (!fd_) return;
  out_ += encode(Request{std::string(verb), std::string(body)});
  write_out();
}

void Channel::write_out() {
  send_what_fits(fd_.get(), out_);
  const bool waits = !out_.empty();
  if (waits == waits_to_write_) return;
  waits_to_write_ = waits;
  loop_.change(fd_.get(), waits ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

}  // namespace shaper
