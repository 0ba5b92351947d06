#include "shaper/live/service.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <syslog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <utility>

#include "shaper/core/guard.h"
#include "shaper/live/clock.h"
#include "shaper/live/name_lookup.h"
#include "shaper/live/realtime.h"
#include "shaper/live/runtime_folder.h"
#include "shaper/live/system_call.h"
#include "shaper/live/unseen_traffic.h"
#include "shaper/model/event_names.h"
#include "shaper/model/owner_keys.h"
#include "shaper/model/plain_text.h"
#include "shaper/version.h"

namespace shaper {
namespace {

HashKey random_key() {
  HashKey key{};
  const ssize_t count = ::getrandom(key.data(), sizeof key, 0);
  require(count == sizeof key ? 0 : -1, "getrandom");
  return key;
}

/// As others in the cluster see this host: cloned machines and network namespaces share a machine's number.
std::string host_name(const ClusterPolicy& cluster) {
  if (!cluster.host.empty()) return cluster.host;
  std::string machine;
  std::ifstream("/etc/machine-id") >> machine;
  return fmt::format("{}-{}", machine, network_namespace_cookie());
}

}  // namespace

Service::Service(EventLoop& loop, const WorkerTask& task, NfqueueSocket queues)
    : loop_(loop),
      credit_(task.credit),
      owner_(task.owner),
      key_(random_key()),
      control_(loop, Fd(task.listener),
               [this](const Request& request, const Peer& peer) { return answer(request, peer); }),
      packets_(loop, std::move(queues)),
      cluster_(loop, packets_, [this](const LeaseAsks& asks) { supervisor_.send("ask", asks.text()); }),
      owners_(packets_, [this](std::string_view verb, std::string_view body) { supervisor_.send(verb, body); }),
      next_queue_(kFirstQueue),
      supervisor_(
          loop, Fd(task.channel), [this](const Request& message) { on_supervisor(message); }, [this] { shut_down(); }),
      sign_of_life_(loop,
                    [this] {
                      supervisor_.send("alive");
                      if (handed_over_) loop_.stop();  // a client that does not take its answer is not waited for
                    }),
      live_ends_(loop, [this] { on_live_limit_ends(); }),
      image_(task.image),
      inherited_(task.inherited),
      background_(loop) {
  if (!inherited_) control_.open();
  give_signs_of_life();
  loop_.add(links_.fd(), EPOLLIN, [this](std::uint32_t) { on_links_changed(); });
  loop_.on_idle([this] { return on_idle(); });
}

Service::Answer Service::answer(const Request& request, const Peer& peer) {
  const auto& verb = request.verb;
  if (verb == "ping") return Response{ResponseStatus::ok, kVersion};
  if (auto changed = change(request, peer)) return std::move(*changed);
  if (!shaper_) return refused("the daemon has no policy yet: run 'shaper up'");
  if (verb == "status") return status();
  if (verb == "flows") return flows();
  if (verb == "events") return events();
  if (verb == "explain") return explain(request.body);
  if (verb == "cluster") return cluster();
  return refused(std::string(kUnknownRequest));
}

bool Service::may_change(const Peer& peer) const {
  if (peer.user == 0 || peer.user == owner_) return true;
  const auto group = loaded_ ? loaded_->host.operators : std::nullopt;
  return group && std::find(peer.groups.begin(), peer.groups.end(), *group) != peer.groups.end();
}

/// The answer to a request that only who may change something may make; nothing: it is none of these.
std::optional<Service::Answer> Service::change(const Request& request, const Peer& peer) {
  const auto& verb = request.verb;
  constexpr std::array<std::string_view, 13> kChanges{
      "guard-too",    "password", "load",   "guard",   "down",  "rules-installed", "install-rules",
      "revert-after", "disarm",   "policy", "restart", "limit", "unlimit"};
  if (std::find(kChanges.begin(), kChanges.end(), verb) == kChanges.end()) return std::nullopt;
  if (!may_change(peer)) return refused(std::string(kMayNotChange));
  if (verb == "load") return load(request.body, peer, true);
  if (verb == "limit") return limit(request.body, peer);
  if (verb == "unlimit") return unlimit(request.body, peer);
  if (verb == "policy") return Response{ResponseStatus::ok, loaded_ ? loaded_->file + '\n' + loaded_->text : ""};
  if (verb == "rules-installed") {
    rules_.reset();
    rules_warnings_.clear();
    supervisor_.send("rules-installed");
    return Response{};
  }
  if (verb == "guard-too") return guard_too(request.body, peer);
  if (verb == "guard") {
    guard_ports_ = parse_numbers(request.body);
    return Response{};
  }
  if (verb == "password") {
    std::string_view text = request.body;
    const std::string_view file = take_line(text);
    passwords_[std::string(file)] = text;
    return Response{};
  }
  if (verb == "install-rules") {
    supervisor_.send("install-rules");
    return Response{};
  }
  ::syslog(LOG_NOTICE, "uid %u: %s", peer.user, verb.c_str());
  if (verb == "revert-after") return await_confirmation(request.body);
  if (verb == "disarm") return disarm();
  if (verb == "restart") return restart();
  shut_down();
  return Response{};
}

// --- A policy comes into force ---------------------------------------------------------------------------------------

Service::Answer Service::load(const std::string& body, const Peer& peer, bool ordered) {
  // Who changed what is shaped: the file's name is the client's word, so it is escaped.
  const std::string file = json_string(std::string_view(body).substr(0, body.find('\n')));
  return bring_about({body, ordered, {}, {}, fmt::format("uid {}: load {}", peer.user, file)});
}

/// Reading a policy of ten thousand classes takes a second, so packets go on meanwhile. A client that does not wait for
/// the answer has changed nothing.
Slices Service::bring_about(Wish wish) {
  const auto job = std::make_shared<Job>(Job{std::move(wish), 0, {}, {}});  // std::function copies what it holds
  begin_reading(*job);
  return [this, job](Response& response) {
    if (!job->response && !bring_about(*job)) return Progress::waits;
    if (!owners_.ready()) return Progress::waits;
    response = *job->response;
    return Progress::done;
  };
}

/// Whether it is decided.
bool Service::bring_about(Job& job) {
  if (!is_ready(job.reading)) return false;
  Reading reading = job.reading.get();
  if (job.began_at != changes_) {  // another change came in between: it is not undone
    begin_reading(job);
    return false;
  }
  if (reading) reading->loaded.ordered = job.wish.ordered;
  job.response = bring_into_force(std::move(reading));
  const bool done = job.response->status == ResponseStatus::ok;
  if (done && job.wish.change_live) job.response->body = job.wish.answer;
  ::syslog(LOG_NOTICE, "%s: %s", job.wish.log.c_str(), done ? "in force" : "refused");
  return true;
}

void Service::begin_reading(Job& job) {
  job.began_at = changes_;
  Beside beside{guard_ports_, live_};
  if (job.wish.change_live) job.wish.change_live(beside.live);
  std::string policy = job.wish.policy ? *job.wish.policy : loaded_->file + '\n' + loaded_->text;
  job.reading =
      background_.run([policy = std::move(policy), beside = std::move(beside)] { return read_policy(policy, beside); });
}

/// Ports that were not there when the policy came into force.
Service::Answer Service::guard_too(const std::string& ports, const Peer& peer) {
  if (!loaded_) return Response{};
  std::vector<std::uint16_t> all = parse_numbers(ports);
  const std::vector<std::uint16_t>& guarded = loaded_->policy.guard_ports;
  all.insert(all.end(), guarded.begin(), guarded.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  if (all == guarded) return Response{};
  guard_ports_ = std::move(all);
  return bring_about(
      {{}, false, {}, {}, fmt::format("uid {}: guard ports {}", peer.user, fmt::join(guard_ports_, " "))});
}

Service::Reading Service::read_policy(const std::string& body, Beside beside) {
  const std::size_t line_end = body.find('\n');
  if (line_end == std::string::npos) {
    return tl::unexpected(refused("a request to load names the file in its first line"));
  }
  Loaded loaded;
  loaded.file = body.substr(0, line_end);
  loaded.text = body.substr(line_end + 1);
  const NameLookup names = recording_lookup(system_names(), loaded.names);
  auto parsed = parse_policy(loaded.text, loaded.file, names);
  if (!parsed) return tl::unexpected(Response{ResponseStatus::policy, parsed.error().text()});
  loaded.policy = std::move(parsed->policy);
  loaded.host = parsed->host;
  set_guard_ports(loaded.policy, beside.guard_ports);
  for (LiveLimit& limit : beside.live) {
    auto match = parse_selector(limit.selector, names, loaded.policy.mark_mask);
    if (!match) return tl::unexpected(refused(match.error()));
    limit.match = std::move(*match);
  }
  add_live_limits(loaded.policy, beside.live);
  loaded.policy.finds_owners = needs_owners(loaded.policy);
  loaded.live = std::move(beside.live);
  loaded.warnings = std::move(parsed->warnings);
  PreparedPolicy prepared(loaded.policy);
  return Ready{std::move(loaded), std::move(prepared)};
}

Response Service::bring_into_force(Reading reading) {
  if (!reading) return reading.error();
  if (ending_) return refused("the daemon ends");
  if (restarting_) return refused("the daemon is being restarted: try again");
  const Loaded& loaded = reading->loaded;
  const auto queues = bind_queues(loaded.policy);
  if (!queues) return refused(queues.error());
  if (!shaper_) {
    shaper_.emplace(std::move(reading->prepared), credit_, key_, monotonic_now());
    packets_.assign(*queues);
    packets_.drive(*shaper_, loaded.policy);
  } else {
    packets_.swap(std::move(reading->prepared), loaded.text, loaded.names);
    packets_.assign(*queues);
  }
  settle_in(std::move(reading->loaded));

  std::string answer;
  for (const QueuePair& pair : *queues) {
    answer += fmt::format("queues {} {} {}\n", loaded_->policy.links[pair.link].name, pair.fast, pair.split);
  }
  for (const std::string& warning : loaded_->warnings) answer += fmt::format("warning {}\n", warning);
  for (const std::string& line : unseen_traffic(loaded_->policy, links_)) answer += fmt::format("notice {}\n", line);
  if (!realtime_trouble_.empty()) answer += fmt::format("notice {}\n", realtime_trouble_);
  return {ResponseStatus::ok, answer};
}

/// What follows when the core obeys a policy.
void Service::settle_in(Loaded loaded) {
  loaded_ = std::make_shared<const Loaded>(std::move(loaded));
  live_ = loaded_->live;
  ++changes_;
  await_end_of_live_limits();
  follow_mtus();
  follow_realtime();
  tell_in_force();
  follow_cluster();
  owners_.obey(loaded_->policy, *shaper_);
}

/// Where the policy has limits over several hosts, a process is needed that talks to their Redis.
void Service::follow_cluster() {
  std::optional<ClusterPolicy> cluster = loaded_->host.cluster;
  const bool needed = cluster && std::any_of(loaded_->policy.limits.begin(), loaded_->policy.limits.end(),
                                             [](const LimitPolicy& limit) { return limit.scope == Scope::cluster; });
  if (needed) cluster->host = host_name(*cluster);
  supervisor_.send("cluster", needed ? fmt::format("{}\n{}\n{}\n{}\n", cluster->host, cluster->redis, cluster->user,
                                                   passwords_[cluster->password_file])
                                     : "");
  needed ? cluster_.obey(loaded_->policy, *cluster, *shaper_, loaded_->ordered) : cluster_.stop();
}

/// A pair for each link: its own if it has one. On an error nothing new stays bound to a link.
tl::expected<std::vector<QueuePair>, std::string> Service::bind_queues(const Policy& policy) {
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
  std::optional<BindRefusal> refusal;
  const std::uint16_t first = next_queue_;
  for (int i = 0; i < kPairsTried; ++i) {
    const QueuePair pair{link, next_queue_, static_cast<std::uint16_t>(next_queue_ + 1)};
    next_queue_ = static_cast<std::uint16_t>(next_queue_ + 2);
    const auto bound = packets_.bind(pair);
    if (bound) return pair;
    refusal = bound.error();
    if (refusal->reason == BindRefusal::Reason::no_permission) return tl::unexpected(refusal->text());
  }
  return tl::unexpected(fmt::format("no two neighbours of the {} queues from {} on are free: the last {}",
                                    2 * kPairsTried, first, refusal->text()));
}

void Service::follow_mtus() {
  for (std::size_t i = 0; i < loaded_->policy.links.size(); ++i) {
    const auto facts = links_.find(loaded_->policy.links[i].interface);
    packets_.set_mtu(static_cast<LinkIndex>(i), facts ? facts->mtu : kUnknownMtu);
  }
}

void Service::follow_realtime() {
  realtime_trouble_.clear();
  runaways_before_ = realtime_runaways();
  if (!loaded_->policy.realtime) return end_realtime();
  if (const auto begun = begin_realtime(); !begun) realtime_trouble_ = begun.error();
}

void Service::on_links_changed() {
  const std::vector<std::string> changed = links_.receive();
  if (!changed.empty() && loaded_) follow_mtus();
}

// --- The loop --------------------------------------------------------------------------------------------------------

void Service::publish_events() {
  if (event_text_.empty()) return;
  control_.publish(event_text_);
  event_text_.clear();
}

bool Service::on_idle() {
  owners_.ask();
  publish_events();
  if (!control_.has_subscribers()) packets_.log_to(nullptr);
  const bool unfinished = control_.work();
  if (ending_ && control_.all_answered()) loop_.stop();
  return unfinished;
}

void Service::shut_down() {
  if (ending_) return;
  ending_ = true;
  if (shaper_) packets_.pass_all();
  publish_events();
}

}  // namespace shaper
