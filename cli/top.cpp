// `shaper top`: waits for keys, news of the daemon and signals, and draws.
#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "cli/commands.h"
#include "cli/daemon_link.h"
#include "cli/daemon_watch.h"
#include "cli/limit.h"
#include "cli/screen.h"
#include "cli/top/keys.h"
#include "shaper/live/name_lookup.h"
#include "shaper/live/system_call.h"
#include "shaper/model/tables.h"

namespace shaper::cli {
namespace {

/// The signals that a full screen must see come as data while this lives.
class Signals {
 public:
  Signals() {
    ::sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP, SIGCONT}) ::sigaddset(&signals_, signal);
    require(::sigprocmask(SIG_BLOCK, &signals_, &before_), "sigprocmask");
    fd_ = Fd(require(::signalfd(-1, &signals_, SFD_NONBLOCK | SFD_CLOEXEC), "signalfd"));
  }
  ~Signals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  [[nodiscard]] int fd() const { return fd_.get(); }

  [[nodiscard]] std::optional<int> next() const {
    signalfd_siginfo info{};
    if (::read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return std::nullopt;
    return static_cast<int>(info.ssi_signo);
  }

 private:
  sigset_t signals_{};
  sigset_t before_{};
  Fd fd_;
};

/// What `signal` does to a process that does nothing about it.
void suffer(int signal) {
  sigset_t one;
  sigset_t before;
  ::sigemptyset(&one);
  ::sigaddset(&one, signal);
  (void)std::signal(signal, SIG_DFL);
  (void)::raise(signal);
  ::sigprocmask(SIG_UNBLOCK, &one, &before);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
}

std::string safe_lines(const std::string& text) {
  std::string safe;
  for (const std::string& line : top::lines_of(text)) safe += terminal_text(line) + '\n';
  return safe;
}

/// Asks the daemon for what a key wanted.
class Obey {
 public:
  explicit Obey(top::State& state) : state_(state) {}

  void operator()(std::monostate) {}
  void operator()(top::Quit) {}
  void operator()(const top::SetLimit& order) {
    const std::string request = limit_request(order.selector, order.rate, order.time);
    const std::string id = answer("limit", request);
    tell(fmt::format("live limit {}: {} at most{}; u lifts it", id, order.rate,
                     order.time ? " for " + *order.time : ""));
  }
  void operator()(const top::Lift& order) {
    (void)answer("unlimit", std::to_string(order.id));
    tell(fmt::format("live limit {} is lifted", order.id));
  }
  void operator()(const top::Explain& order) {
    state_.page = top::Page{order.flow, safe_lines(answer("explain", order.packet)), {}};
  }

 private:
  static std::string answer(const char* verb, const std::string& body) {
    ControlClient daemon = connect_or_fail();
    return ask(daemon, verb, body);
  }
  void tell(std::string text) { state_.message = top::Message{std::move(text), false}; }

  top::State& state_;
};

class Top {
 public:
  explicit Top(const Signals& signals) : signals_(signals), state_(system_names()) {}

  /// Until somebody leaves, or the signal that ends it.
  std::optional<int> run() {
    while (!left_ && !ended_by_) {
      screen_.paint(top::draw(state_, screen_.size(), screen_.charset()));
      wait();
    }
    return ended_by_;
  }

 private:
  void wait() {
    std::array<pollfd, 3> sources{{{STDIN_FILENO, POLLIN, 0}, {signals_.fd(), POLLIN, 0}, {watch_.fd(), POLLIN, 0}}};
    if (::poll(sources.data(), sources.size(), -1) < 0 && errno != EINTR) require(-1, "poll");
    if ((sources[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) ended_by_ = SIGHUP;
    while (const auto signal = signals_.next()) on_signal(*signal);
    if (sources[2].revents != 0) take_news();
    while (const auto key = screen_.key()) on_key(*key);
    watch_.set_pace(state_.interval, state_.paused);
  }

  void on_signal(int signal) {
    if (signal == SIGWINCH) {
      screen_.follow_size();
    } else if (signal == SIGTSTP) {
      screen_.leave();
      suffer(signal);
      screen_.come_back();
    } else if (signal == SIGCONT) {
      screen_.come_back();
    } else {
      ended_by_ = signal;
    }
  }

  void take_news() {
    DaemonWatch::News news = watch_.take();
    if (state_.paused) return;
    if (news.trouble) {
      state_.take_trouble(std::move(*news.status), std::move(*news.trouble), news.time);
    } else if (news.status) {
      state_.take(std::move(*news.status), news.time, news.status_every);
    }
    if (news.flows && !news.trouble) state_.take(std::move(*news.flows), news.flows_every);
  }

  void on_key(const top::Key& key) {
    const top::Order order = top::on_key(state_, key);
    if (std::holds_alternative<std::monostate>(order)) return;
    left_ = std::holds_alternative<top::Quit>(order);
    try {
      std::visit(Obey(state_), order);
    } catch (const std::exception& error) {
      state_.message = top::Message{error.what(), true};
    }
    watch_.look_now();
  }

  const Signals& signals_;
  DaemonWatch watch_;  // outlives the screen: the terminal is back before its thread has ended
  Screen screen_;
  top::State state_;
  bool left_ = false;
  std::optional<int> ended_by_;
};

}  // namespace

ExitCode top() {
  require_terminal();
  (void)connect_or_fail();  // later on, a daemon that is gone is waited for
  std::optional<int> ended_by;
  {
    const Signals signals;
    Top view(signals);
    ended_by = view.run();
  }
  if (ended_by) suffer(*ended_by);
  return ExitCode::done;
}

}  // namespace shaper::cli
