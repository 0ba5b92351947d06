#include "shaper/live/service.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <syslog.h>
#include <unistd.h>

#include "shaper/live/clock.h"
#include "shaper/live/name_lookup.h"
#include "shaper/live/system_call.h"
#include "shaper/model/event_names.h"
#include "shaper/model/packet_text.h"
#include "shaper/version.h"

namespace shaper {
namespace {

/// Pairs begin at an unusual number: 0 and its neighbours are what other programs take without thinking.
constexpr std::uint16_t kFirstQueue = 41'200;
constexpr int kPairsTried = 256;

/// Flows in one slice of a listing: about half a millisecond.
constexpr std::size_t kFlowsPerSlice = 100;

constexpr std::uint32_t kUnknownMtu = 1500;

HashKey random_key() {
  HashKey key{};
  const ssize_t count = ::getrandom(key.data(), sizeof key, 0);
  require(count == sizeof key ? 0 : -1, "getrandom");
  return key;
}

Response refused(std::string text) {
  return {ResponseStatus::refused, std::move(text)};
}

}  // namespace

Service::Service(EventLoop& loop, const std::string& socket_path, StartCredit credit)
    : loop_(loop),
      credit_(credit),
      key_(random_key()),
      control_(loop, socket_path, [this](const Request& request, const Peer& peer) { return answer(request, peer); }),
      next_queue_(kFirstQueue) {
  loop_.add(links_.fd(), EPOLLIN, [this](std::uint32_t) { on_links_changed(); });
  loop_.on_idle([this] { return on_idle(); });
}

Service::Answer Service::answer(const Request& request, const Peer& peer) {
  const bool may_change = peer.user == 0 || peer.user == ::geteuid();
  const auto& verb = request.verb;
  if (verb == "ping") return Response{ResponseStatus::ok, kVersion};
  if (!may_change && (verb == "load" || verb == "down")) return refused("only root may change what is shaped");
  if (verb == "load") {
    Response response = load(request.body);
    // Who changed what is shaped: the file's name is the client's word, so it is escaped.
    const std::string file = json_string(std::string_view(request.body).substr(0, request.body.find('\n')));
    ::syslog(LOG_NOTICE, "uid %u: load %s: %s", peer.user, file.c_str(),
             response.status == ResponseStatus::ok ? "in force" : "refused");
    return response;
  }
  if (verb == "down") {
    ::syslog(LOG_NOTICE, "uid %u: down", peer.user);
    shut_down();
    return Response{};
  }
  if (!shaper_) return refused("the daemon has no policy yet: run 'shaper up'");
  if (verb == "status") return status();
  if (verb == "flows") return flows();
  if (verb == "events") return events();
  if (verb == "explain") return explain(request.body);
  return refused("this daemon does not know that request: it may be older than the command line");
}

// --- A policy comes into force ---------------------------------------------------------------------------------------

Response Service::load(const std::string& body) {
  const std::size_t line_end = body.find('\n');
  if (line_end == std::string::npos) return refused("a request to load names the file in its first line");
  Loaded loaded;
  loaded.text = body.substr(line_end + 1);
  const auto parsed =
      parse_policy(loaded.text, body.substr(0, line_end), recording_lookup(system_names(), loaded.names));
  if (!parsed) return {ResponseStatus::policy, parsed.error().text()};
  loaded.policy = parsed->policy;
  loaded.warnings = parsed->warnings;

  const auto queues = bind_queues(loaded.policy);
  if (!queues) return refused(queues.error());
  if (!shaper_) {
    shaper_.emplace(loaded.policy, credit_, key_, monotonic_now());
    packets_->drive(*shaper_);
  } else {
    packets_->swap(loaded.policy, loaded.text, loaded.names);
    packets_->assign(*queues);
  }
  loaded_ = std::move(loaded);
  follow_mtus();

  std::string answer;
  for (const QueuePair& pair : *queues) {
    answer += fmt::format("queues {} {} {}\n", loaded_->policy.links[pair.link].name, pair.fast, pair.split);
  }
  for (const std::string& warning : loaded_->warnings) answer += fmt::format("warning {}\n", warning);
  return {ResponseStatus::ok, answer};
}

/// A pair for each link: its own if it has one. On an error nothing new stays bound to a link.
tl::expected<std::vector<QueuePair>, std::string> Service::bind_queues(const Policy& policy) {
  if (!packets_) packets_.emplace(loop_);
  std::vector<QueuePair> pairs;
  for (const LinkPolicy& link : policy.links) {
    const auto index = static_cast<LinkIndex>(pairs.size());
    if (const auto known = queues_.find(link.name); known != queues_.end()) {
      known->second.link = index;
      pairs.push_back(known->second);
      continue;
    }
    const auto pair = bind_next_pair(index);
    if (!pair) return tl::unexpected(pair.error());
    queues_[link.name] = *pair;
    pairs.push_back(*pair);
  }
  return pairs;
}

tl::expected<QueuePair, std::string> Service::bind_next_pair(LinkIndex link) {
  std::string reason;
  for (int i = 0; i < kPairsTried; ++i) {
    const QueuePair pair{link, next_queue_, static_cast<std::uint16_t>(next_queue_ + 1)};
    next_queue_ = static_cast<std::uint16_t>(next_queue_ + 2);
    const auto bound = packets_->bind(pair);
    if (bound) return pair;
    reason = bound.error().text(pair.fast);
    if (bound.error().reason == BindRefusal::Reason::no_permission) break;
  }
  return tl::unexpected(reason);
}

void Service::follow_mtus() {
  for (std::size_t i = 0; i < loaded_->policy.links.size(); ++i) {
    const auto facts = links_.find(loaded_->policy.links[i].interface);
    packets_->set_mtu(static_cast<LinkIndex>(i), facts ? facts->mtu : kUnknownMtu);
  }
}

void Service::on_links_changed() {
  const std::vector<std::string> changed = links_.receive();
  if (!changed.empty() && loaded_) follow_mtus();
}

// --- Answers ---------------------------------------------------------------------------------------------------------

std::vector<std::string> Service::warnings() const {
  std::vector<std::string> warnings = loaded_->warnings;
  for (const LinkPolicy& link : loaded_->policy.links) {
    const auto facts = links_.find(link.interface);
    if (!facts) {
      warnings.push_back(
          fmt::format("link {}: there is no interface {} (yet): nothing is shaped on it", link.name, link.interface));
    } else if (!facts->up) {
      warnings.push_back(fmt::format("link {}: interface {} is down", link.name, link.interface));
    }
  }
  const ReceiveBuffer buffer = packets_->socket().receive_buffer();
  if (!buffer.forced) {
    warnings.push_back(
        fmt::format("the kernel grants only {} bytes for unread packets (net.core.rmem_max): bursts may "
                    "be lost",
                    buffer.granted.value));
  }
  const SocketCounters& socket = packets_->socket().counters();
  if (socket.overruns > 0) {
    warnings.push_back(
        fmt::format("the socket overran {} times: packets came faster than they were read", socket.overruns));
  }
  const PacketLoop::Counters& counters = packets_->counters();
  if (counters.latest_error) {
    warnings.push_back(fmt::format("the kernel refused {} verdicts, at last with: {}", counters.other_errors,
                                   std::generic_category().message(*counters.latest_error)));
  }
  return warnings;
}

Service::Answer Service::status() {
  StatusReport report = status_report(loaded_->policy, shaper_->snapshot(monotonic_now()));
  report.version = kVersion;
  report.mode = Mode::shaping;
  report.warnings = warnings();
  for (const LinkPolicy& link : loaded_->policy.links) {
    const QueuePair& pair = queues_.at(link.name);
    for (const std::uint16_t number : {pair.fast, pair.split}) {
      const auto kernel = read_queue_counters(number);
      const PacketLoop::QueueCounters ours = packets_->queue_counters(number);
      report.queues.push_back({number, kernel ? kernel->held : 0, kernel ? kernel->queue_dropped : 0,
                               kernel ? kernel->socket_dropped : 0, ours.lost_verdicts, ours.split_packets});
    }
  }
  return Response{ResponseStatus::ok, status_json(report)};
}

Service::Answer Service::flows() {
  struct Listing {
    FlowCursor cursor;
    Nanos to_utc = offset_to_utc();
    UserNames users;
    std::vector<FlowSnapshot> flows;
    std::uint64_t listed = 0;
  };
  const auto listing = std::make_shared<Listing>();  // std::function copies what it holds
  return Slices([this, listing](std::string& body) {
    if (body.empty()) body = flows_json_head();
    listing->flows.clear();
    shaper_->flows(listing->cursor, kFlowsPerSlice, monotonic_now(), listing->flows);
    for (const FlowSnapshot& flow : listing->flows) {
      if (flow.user && !listing->users.contains(*flow.user)) {
        listing->users[*flow.user] = user_name(*flow.user).value_or(std::to_string(*flow.user));
      }
      if (listing->listed++ > 0) body += ',';
      body += flow_json(flow_report(loaded_->policy, flow, listing->users, listing->to_utc));
    }
    if (!listing->cursor.done) return true;
    const CoreSnapshot snapshot = shaper_->snapshot(monotonic_now());
    body += flows_json_tail(listing->listed, snapshot.evicted_flows);
    return false;
  });
}

Service::Answer Service::events() {
  Subscription subscription;
  std::vector<std::uint32_t> mtus;
  for (const LinkPolicy& link : loaded_->policy.links) {
    const auto facts = links_.find(link.interface);
    mtus.push_back(facts ? facts->mtu : kUnknownMtu);
  }
  publish_events();  // what came before is not for the new reader
  const Instant now = monotonic_now();
  EventLog(subscription.head)
      .begin(now, {StartCredit::full, key_}, loaded_->policy, loaded_->text, loaded_->names, mtus);
  event_log_.begin(now, {StartCredit::full, key_}, loaded_->policy, loaded_->text, loaded_->names, mtus);
  event_text_.clear();  // the log knows the names of the classes now; who listens already had this
  packets_->log_to(&event_log_);
  return subscription;
}

Service::Answer Service::explain(const std::string& body) {
  const auto question = parse_packet(body, system_names());
  if (!question) return refused(question.error());
  const auto text = explain_packet(*question, loaded_->policy, *shaper_, monotonic_now());
  if (!text) return refused(text.error());
  return Response{ResponseStatus::ok, *text};
}

// --- The loop --------------------------------------------------------------------------------------------------------

void Service::publish_events() {
  if (event_text_.empty()) return;
  control_.publish(event_text_);
  event_text_.clear();
}

bool Service::on_idle() {
  publish_events();
  if (packets_ && !control_.has_subscribers()) packets_->log_to(nullptr);
  const bool unfinished = control_.work();
  if (ending_ && control_.all_answered()) loop_.stop();
  return unfinished;
}

void Service::shut_down() {
  if (ending_) return;
  ending_ = true;
  if (packets_ && shaper_) packets_->pass_all();
  publish_events();
}

}  // namespace shaper
