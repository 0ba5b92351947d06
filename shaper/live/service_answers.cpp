// What the daemon answers to those who look. Whatever grows with the policy or the traffic is made in slices, between
// packets.
#include <fmt/format.h>

#include <utility>

#include "shaper/live/clock.h"
#include "shaper/live/name_lookup.h"
#include "shaper/live/realtime.h"
#include "shaper/live/service.h"
#include "shaper/live/unseen_traffic.h"
#include "shaper/model/packet_text.h"
#include "shaper/version.h"

namespace shaper {
namespace {

/// Flows in one slice of a listing: about half a millisecond.
constexpr std::size_t kFlowsPerSlice = 100;
constexpr std::size_t kClassesPerSlice = 200;

/// How long a passing fault is told of.
constexpr std::chrono::seconds kRecent{60};

void add_packet_warnings(std::vector<std::string>& warnings, const SocketCounters& socket,
                         const PacketLoop::Counters& packets) {
  if (socket.overruns > 0) {
    warnings.push_back(
        fmt::format("the socket overran {} times: packets came faster than they were read", socket.overruns));
  }
  if (packets.latest_error) {
    warnings.push_back(fmt::format("the kernel refused {} verdicts, at last with: {}", packets.other_errors,
                                   std::generic_category().message(*packets.latest_error)));
  }
  if (packets.truncated_messages > 0) {
    warnings.push_back(fmt::format("{} packets came with their headers cut short: they may be in the wrong class",
                                   packets.truncated_messages));
  }
  if (packets.unknown_messages > 0) {
    warnings.push_back(
        fmt::format("{} messages of the kernel were not understood: a packet among them is held for ever",
                    packets.unknown_messages));
  }
  if (packets.latest_unmarked && monotonic_now() - *packets.latest_unmarked < kRecent) {
    warnings.push_back(
        fmt::format("{} packets came back without the CE that they should carry: the rules that set it "
                    "are missing; 'shaper up' repairs them",
                    packets.unmarked_packets));
  }
}

void add_lease_states(std::vector<LimitReport>& limits, const std::optional<ClusterReport>& cluster) {
  if (!cluster) return;
  for (const ClusterLimitReport& lease : cluster->limits) {
    for (LimitReport& limit : limits) {
      if (limit.name != lease.name) continue;
      limit.state = lease.state;
      limit.strategy = lease.strategy;
      limit.wait = lease.wait;
    }
  }
}

void add_ends(std::vector<LimitReport>& limits, const std::vector<LiveLimit>& live, Nanos to_utc) {
  for (const LiveLimit& each : live) {
    for (LimitReport& limit : limits) {
      if (limit.id == each.id && each.until) limit.expires = rfc3339(each.until->time_since_epoch() + to_utc);
    }
  }
}

}  // namespace

std::vector<std::string> Service::warnings(const std::optional<ClusterReport>& cluster) const {
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
  const ReceiveBuffer buffer = packets_.socket().receive_buffer();
  if (!buffer.forced) {
    warnings.push_back(
        fmt::format("the kernel grants only {} bytes for unread packets (net.core.rmem_max): bursts may "
                    "be lost",
                    buffer.granted.value));
  }
  for (std::string& line : unseen_traffic(loaded_->policy, links_)) warnings.push_back(std::move(line));
  if (!realtime_trouble_.empty()) warnings.push_back(realtime_trouble_);
  if (realtime_runaways() != runaways_before_) {
    warnings.push_back(
        fmt::format("realtime: the packet loop did not sleep for {} s and is a normal task since; "
                    "'shaper reload' makes it real-time again",
                    kLongestRealtimeRun / std::chrono::seconds{1}));
  }
  add_warnings_of_supervisor(warnings);
  if (cluster) {
    warnings.insert(warnings.end(), cluster->warnings.begin(), cluster->warnings.end());
  }
  if (loaded_->policy.finds_owners) {
    warnings.insert(warnings.end(), owners_.lacks().begin(), owners_.lacks().end());
  }
  add_packet_warnings(warnings, packets_.socket().counters(), packets_.counters());
  return warnings;
}

StatusReport Service::status_without_classes(const std::optional<ClusterReport>& cluster) const {
  StatusReport report;
  report.rules = rules_;
  report.warnings = warnings(cluster);
  const std::string table = packets_.socket().kernel_table();
  for (const LinkPolicy& link : loaded_->policy.links) {
    const QueuePair& pair = queues_.at(link.name);
    for (const std::uint16_t number : {pair.fast, pair.split}) {
      const KernelQueueCounters kernel = parse_queue_counters(table, number).value_or(KernelQueueCounters{});
      const PacketLoop::QueueCounters ours = packets_.queue_counters(number);
      report.queues.push_back(
          {number, kernel.held, kernel.queue_dropped, kernel.socket_dropped, ours.lost_verdicts, ours.split_packets});
    }
  }
  return report;
}

/// First the core is asked in slices, then the text is made in the background: 4,000 classes are 2 MB.
Service::Answer Service::status() {
  struct Survey {
    std::shared_ptr<const Loaded> of;
    ClassCursor cursor;
    CoreSnapshot snapshot;
    std::future<std::string> text;
  };
  const auto survey = std::make_shared<Survey>();  // std::function copies what it holds
  return Slices([this, survey](Response& response) {
    if (survey->text.valid()) {
      if (!is_ready(survey->text)) return Progress::waits;
      response.body = survey->text.get();
      return Progress::done;
    }
    if (survey->of != loaded_) *survey = {loaded_, {}, {}, {}};  // the first time, or another policy came in between
    shaper_->snapshot(survey->cursor, kClassesPerSlice, monotonic_now(), survey->snapshot);
    if (!survey->cursor.done) return Progress::more;
    const std::optional<ClusterReport> cluster = cluster_.report();
    survey->text = background_.run([of = survey->of, snapshot = std::move(survey->snapshot),
                                    other = status_without_classes(cluster), cluster, unasked = owners_.unasked(),
                                    to_utc = offset_to_utc()]() mutable {
      StatusReport report = status_report(of->policy, snapshot);
      add_lease_states(report.limits, cluster);
      add_ends(report.limits, of->live, to_utc);
      report.version = kVersion;
      report.mode = Mode::shaping;
      report.rules = other.rules;
      report.warnings = std::move(other.warnings);
      report.queues = std::move(other.queues);
      if (report.owners) report.owners->unasked = unasked;
      return status_json(report);
    });
    return Progress::waits;
  });
}

Service::Answer Service::flows() {
  struct Listing {
    FlowCursor cursor;
    Nanos to_utc = offset_to_utc();
    UserNames users;
    std::vector<FlowSnapshot> flows;
    std::uint64_t listed = 0;
    bool begun = false;
  };
  const auto listing = std::make_shared<Listing>();  // std::function copies what it holds
  return Slices([this, listing](Response& response) {
    std::string& body = response.body;
    if (!listing->begun) body = flows_json_head();
    listing->begun = true;
    listing->flows.clear();
    shaper_->flows(listing->cursor, kFlowsPerSlice, monotonic_now(), listing->flows);
    for (const FlowSnapshot& flow : listing->flows) {
      if (flow.user && !listing->users.contains(*flow.user)) {
        listing->users[*flow.user] = user_name(*flow.user).value_or(std::to_string(*flow.user));
      }
      if (listing->listed++ > 0) body += ',';
      body += flow_json(flow_report(loaded_->policy, flow, listing->users, listing->to_utc));
    }
    if (!listing->cursor.done) return Progress::more;
    ClassCursor first;  // with it come the totals, which are all that is asked
    CoreSnapshot snapshot;
    shaper_->snapshot(first, 1, monotonic_now(), snapshot);
    body += flows_json_tail(listing->listed, snapshot.evicted_flows);
    return Progress::done;
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
  const auto begin = [&](EventLog& log) {
    log.begin(now, {StartCredit::full, key_}, loaded_->policy, loaded_->text, loaded_->names, mtus);
    for (const WalletState& wallet : shaper_->wallets(now)) log.wallet(wallet);
  };
  EventLog head(subscription.head);
  begin(head);
  begin(event_log_);
  event_text_.clear();  // the log knows the names of the classes now; who listens already had this
  packets_.log_to(&event_log_);
  return subscription;
}

Service::Answer Service::cluster() const {
  const auto report = cluster_.report();
  if (!report) return refused("the policy in force has no limit over several hosts");
  return Response{ResponseStatus::ok, cluster_json(*report)};
}

Service::Answer Service::explain(const std::string& body) {
  const auto question = parse_packet(body, system_names());
  if (!question) return refused(question.error());
  const auto text = explain_packet(*question, loaded_->policy, *shaper_, monotonic_now());
  if (!text) return refused(text.error());
  return Response{ResponseStatus::ok, *text};
}

}  // namespace shaper
