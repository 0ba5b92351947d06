#include "shaper/live/control_server.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "shaper/live/system_call.h"

namespace shaper {
namespace {

constexpr std::size_t kMostClients = 64;

/// What a subscriber may be behind before it loses lines.
constexpr std::size_t kMostUnread = 64 * 1024 * 1024;

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) throw std::system_error(ENAMETOOLONG, std::system_category(), path);
  std::copy(path.begin(), path.end(), address.sun_path);
  return address;
}

Peer peer_of(int fd) {
  ucred credentials{};
  socklen_t length = sizeof credentials;
  require(::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length), "getsockopt SO_PEERCRED");
  Peer peer{credentials.uid, credentials.pid, {credentials.gid}};
  length = 0;
  ::getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, nullptr, &length);  // leaves how much room they need
  std::vector<gid_t> further(length / sizeof(gid_t));
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, further.data(), &length) == 0) {
    peer.groups.insert(peer.groups.end(), further.begin(), further.end());
  }
  return peer;
}

void add(Outbox& out, const Response& response) {
  out.add(encode_head(response.status, response.body.size()));
  out.add(response.body);
}

}  // namespace

Fd listen_at(const std::string& path) {
  Fd listener(require(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "socket"));
  const sockaddr_un address = address_of(path);
  ::unlink(path.c_str());  // left by a daemon that was killed; whether one runs was asked before
  require(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), "bind " + path);
  // The folder says who may come this far; the handler says who may change anything.
  require(::chmod(path.c_str(), 0666), "chmod " + path);
  require(::listen(listener.get(), SOMAXCONN), "listen");
  return listener;
}

ControlServer::ControlServer(EventLoop& loop, Fd listener, Handler handler)
    : loop_(loop), handler_(std::move(handler)), listener_(std::move(listener)) {}

ControlServer::~ControlServer() {
  while (!clients_.empty()) remove(clients_.begin());
  close();
}

void ControlServer::open() {
  if (!std::exchange(open_, true)) loop_.add(listener_.get(), EPOLLIN, [this](std::uint32_t) { on_connect(); });
}

void ControlServer::close() {
  if (std::exchange(open_, false)) loop_.remove(listener_.get());
}

void ControlServer::on_connect() {
  Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!fd || clients_.size() >= kMostClients) return;  // closed again: the client says that nobody answers
  try {
    clients_.emplace_front();
    const auto client = clients_.begin();
    client->peer = peer_of(fd.get());
    client->fd = std::move(fd);
    client->watched = EPOLLIN;
    loop_.add(client->fd.get(), EPOLLIN, [this, client](std::uint32_t events) { on_event(client, events); });
  } catch (const std::system_error&) {
    clients_.pop_front();
  }
}

void ControlServer::on_event(Clients::iterator client, std::uint32_t events) {
  const bool alive = (events & EPOLLIN) == 0 || read_requests(*client);
  if (!alive || (events & (EPOLLERR | EPOLLHUP)) != 0 || !write_out(*client)) remove(client);
}

bool ControlServer::read_requests(Client& client) {
  std::array<char, 65'536> bytes;
  const ssize_t count = ::recv(client.fd.get(), bytes.data(), bytes.size(), 0);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  if (count == 0) client.asks_no_more = true;
  if (!client.reader.feed({bytes.data(), static_cast<std::size_t>(count)})) {
    if (const auto refusal = answer_to_other_protocol(client.reader.take_rest())) {
      add(client.out, *refusal);
      (void)client.out.send_to(client.fd.get());
    }
    return false;
  }
  answer_requests(client);
  return true;
}

/// One answer at a time: what else was asked waits in the reader.
void ControlServer::answer_requests(Client& client) {
  while (!client.slices && !client.subscribed) {
    const auto request = client.reader.next();
    if (!request) break;
    Answer answer;
    try {
      answer = handler_(*request, client.peer);
    } catch (const std::exception& error) {
      answer = Response{ResponseStatus::refused, error.what()};  // packets go on, whatever one request met
    }
    if (auto* response = std::get_if<Response>(&answer)) {
      add(client.out, *response);
    } else if (auto* slices = std::get_if<Slices>(&answer)) {
      client.slices = std::move(*slices);
    } else {
      client.out.add(encode_head(ResponseStatus::ok, 0));
      client.out.add(std::get<Subscription>(answer).head);
      client.subscribed = true;
    }
  }
}

/// False: the client is to be removed.
bool ControlServer::write_out(Client& client) {
  if (!client.out.send_to(client.fd.get())) return false;
  if (client.asks_no_more && !client.subscribed && is_answered(client)) return false;
  const std::uint32_t wanted = (client.asks_no_more ? 0U : EPOLLIN) | (client.out.empty() ? 0U : EPOLLOUT);
  if (wanted != client.watched) loop_.change(client.fd.get(), client.watched = wanted);
  return true;
}

bool ControlServer::is_answered(const Client& client) {
  return !client.slices && client.out.empty();
}

void ControlServer::remove(Clients::iterator client) {
  loop_.remove(client->fd.get());
  unwanted_.add_all(std::move(client->out));
  unwanted_.add_all(std::move(client->made));
  clients_.erase(client);
}

bool ControlServer::has_subscribers() const {
  return std::any_of(clients_.begin(), clients_.end(), [](const Client& client) { return client.subscribed; });
}

void ControlServer::publish(std::string_view lines) {
  for (auto client = clients_.begin(); client != clients_.end();) {
    const auto current = client++;
    if (!current->subscribed) continue;
    if (current->out.bytes() > kMostUnread) {
      current->skipped += static_cast<std::uint64_t>(std::count(lines.begin(), lines.end(), '\n'));
      continue;
    }
    if (current->skipped > 0) current->out.add(fmt::format("skipped {}\n", std::exchange(current->skipped, 0)));
    current->out.add(lines);
    if (!write_out(*current)) remove(current);
  }
}

Progress ControlServer::next_slice(Client& client, Response& response) {
  try {
    return client.slices(response);
  } catch (const std::exception& error) {
    client.made = {};
    response = {ResponseStatus::refused, error.what()};
    return Progress::done;
  }
}

void ControlServer::finish_slices(Clients::iterator client, ResponseStatus status) {
  client->slices = nullptr;
  client->out.add(encode_head(status, client->made.bytes()));
  client->out.add_all(std::move(client->made));
  answer_requests(*client);
  if (!write_out(*client)) remove(client);
}

bool ControlServer::work() {
  const bool more_unwanted = unwanted_.drop_piece();
  for (auto client = clients_.begin(); client != clients_.end(); ++client) {
    if (!client->slices) continue;
    Response response;
    const Progress progress = next_slice(*client, response);
    client->made.add(response.body);
    if (progress == Progress::waits) continue;
    clients_.splice(clients_.end(), clients_, client);
    if (progress == Progress::done) finish_slices(client, response.status);
    return true;
  }
  return more_unwanted;
}

bool ControlServer::all_answered() const {
  return std::all_of(clients_.begin(), clients_.end(),
                     [](const Client& client) { return client.subscribed || is_answered(client); });
}

}  // namespace shaper
