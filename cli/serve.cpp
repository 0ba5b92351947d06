// `shaper serve`: a process without privileges that asks the daemon and answers HTTP, only to readers.
//
// The socket is opened first; then root becomes nobody, with the one group that may ask the daemon, so that it also
// finds a daemon that starts later. It ends by a signal.
#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <mutex>
#include <thread>

#include "cli/commands.h"
#include "cli/daemon_link.h"
#include "shaper/live/confinement.h"
#include "shaper/model/plain_text.h"
#include "shaper/model/tables.h"
#include "shaper/web/http_server.h"
#include "shaper/web/site.h"

namespace shaper::cli {
namespace {

constexpr std::chrono::seconds kAnswerLimit{5};

void notice(std::string_view line) {
  std::fputs(fmt::format("shaper: {}\n", line).c_str(), stderr);
}

EndPoint read_listen(const std::string& text) {
  const auto end_point = parse_end_point(text);
  if (end_point && end_point->family != Family::other && end_point->port.value_or(0) != 0) return *end_point;
  throw CommandError(
      ExitCode::wrong_usage,
      fmt::format("--listen: '{}' is no address with a port; write 127.0.0.1:9469 or [::1]:9469", terminal_text(text)));
}

HostNames names_for(const EndPoint& listen, const ServeOptions& options, const std::string& own_name) {
  std::vector<std::string> names = options.hosts;
  for (const std::string& name : names) {
    if (host_in_header(name)) continue;
    throw CommandError(ExitCode::wrong_usage, fmt::format("--host: '{}' is no name of a host", terminal_text(name)));
  }
  names.push_back(own_name);
  return {listen, names};
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

bool is_loopback(const EndPoint& listen) {
  constexpr Address kLoopback6{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  return listen.family == Family::ipv4 ? listen.address.front() == 127 : listen.address == kLoopback6;
}

/// Nothing: we stay who we are.
std::optional<Account> account_for(const std::optional<std::string>& wanted) {
  const RuntimeFolder folder = runtime_folder_here();
  if (::geteuid() != 0 || !folder.real_root) {
    if (!wanted) return std::nullopt;
    throw CommandError(ExitCode::no_permission, "--user: only root may become another user (CAP_SETUID is missing)");
  }
  Account account{kNobody, kNobody, {group_of_readers(folder)}};
  if (!wanted) return account;
  const passwd* user = ::getpwnam(wanted->c_str());  // there is one thread yet
  if (user == nullptr) {
    throw CommandError(ExitCode::wrong_usage, fmt::format("--user: no user is called '{}'", terminal_text(*wanted)));
  }
  account.user = user->pw_uid;
  account.group = user->pw_gid;
  return account;
}

/// Asks the daemon that runs now. A reason why that cannot be is told once on stderr, until it is another one.
class Asker {
 public:
  DaemonAnswer operator()(const std::string& verb) {
    DaemonAnswer answer = ask(verb);
    const std::scoped_lock lock(mutex_);
    if (answer.kind == DaemonAnswer::Kind::failed && answer.text != told_) notice(answer.text);
    if (answer.kind != DaemonAnswer::Kind::refused)
      told_ = answer.kind == DaemonAnswer::Kind::failed ? answer.text : "";
    return answer;
  }

 private:
  static DaemonAnswer ask(const std::string& verb) {
    try {
      ControlClient daemon = connect_or_fail();
      Response response = daemon.request(verb, "", kAnswerLimit);
      const bool ok = response.status == ResponseStatus::ok;
      return {ok ? DaemonAnswer::Kind::ok : DaemonAnswer::Kind::refused, std::move(response.body)};
    } catch (const CommandError& error) {
      const bool none = error.code() == ExitCode::no_daemon;
      return {none ? DaemonAnswer::Kind::no_daemon : DaemonAnswer::Kind::failed, error.what()};
    } catch (const std::exception& error) {
      return {DaemonAnswer::Kind::failed, error.what()};
    }
  }

  std::mutex mutex_;
  std::string told_;
};

}  // namespace

void serve(const ServeOptions& options) {
  const EndPoint listen = read_listen(options.listen);
  const std::string own_name = host_name();
  const HostNames names = names_for(listen, options, own_name);
  const auto account = account_for(options.user);
  Fd listener = listen_on(listen);
  drop_privileges(Confined::http, account);
  (void)find_folder();  // throws where we may not look: then we never could

  Asker asker;
  Site site([&asker](const std::string& verb) { return asker(verb); },
            options.flows ? Site::Flows::shown : Site::Flows::hidden, own_name);
  HttpServer server(std::move(listener), names, [&site](const HttpRequest& request) { return site.reply(request); });
  filter_system_calls(Confined::http);
  if (!is_loopback(listen)) notice("whoever reaches this address can read: it has no password and no encryption");
  std::puts(fmt::format("serving http://{}/", format_end_point(listen)).c_str());
  std::fflush(stdout);
  for (;;) {
    std::this_thread::sleep_for(std::chrono::seconds{1});
    server.cut_off_slow();
  }
}

}  // namespace shaper::cli
