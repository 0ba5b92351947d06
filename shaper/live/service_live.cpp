// Live limits: they come and go as another policy does, with the same text.
#include <fmt/format.h>

#include <algorithm>

#include "shaper/live/clock.h"
#include "shaper/live/service.h"
#include "shaper/model/plain_text.h"

namespace shaper {
namespace {

/// Each of them is asked about for each new flow.
constexpr std::size_t kMostLive = 256;

constexpr std::chrono::milliseconds kBetweenLooks{5};
constexpr std::chrono::seconds kBeforeNextTry{1};

}  // namespace

/// `BITS_PER_SECOND SECONDS SELECTOR`, with `-` for no end.
Service::Answer Service::limit(const std::string& body, const Peer& peer) {
  if (!loaded_) return refused("the daemon has no policy yet: run 'shaper up'");
  std::string_view rest = body;
  const auto rate = parse_number<std::uint64_t>(take_word(rest));
  const std::string_view time = take_word(rest);
  const auto seconds = parse_number<std::uint32_t>(time);
  if (!rate || DataRate{*rate} < kSlowestRate || DataRate{*rate} > kFastestRate || (!seconds && time != "-")) {
    return refused("a live limit needs a rate, its time or '-', and a selector");
  }
  if (live_.size() >= kMostLive) {
    return refused(
        fmt::format("there are {} live limits, which is the most: lift one with 'shaper unlimit'", kMostLive));
  }
  for (const LiveLimit& other : live_) last_live_id_ = std::max(last_live_id_, other.id);
  LiveLimit wanted;
  wanted.id = ++last_live_id_;
  wanted.rate = {*rate};
  if (seconds) wanted.until = monotonic_now() + std::chrono::seconds{*seconds};
  wanted.selector = rest;
  Wish wish;
  wish.answer = std::to_string(wanted.id);
  wish.log = fmt::format("uid {}: limit {} to {} bit/s", peer.user, quote_line(wanted.selector), *rate);
  wish.change_live = [wanted](std::vector<LiveLimit>& live) { live.push_back(wanted); };
  return bring_about(std::move(wish));
}

Service::Answer Service::unlimit(const std::string& body, const Peer& peer) {
  const auto id = parse_number<std::uint64_t>(body);
  const auto known = std::find_if(live_.begin(), live_.end(), [&](const LiveLimit& each) { return each.id == id; });
  if (known == live_.end()) return refused("there is no live limit of this number: 'shaper status' lists them");
  Wish wish;
  wish.log = fmt::format("uid {}: unlimit {}", peer.user, *id);
  wish.change_live = [id](std::vector<LiveLimit>& live) {
    std::erase_if(live, [id](const LiveLimit& each) { return each.id == id; });
  };
  return bring_about(std::move(wish));
}

void Service::await_end_of_live_limits() {
  std::optional<Instant> first;
  for (const LiveLimit& each : live_) {
    if (each.until) first = std::min(first.value_or(*each.until), *each.until);
  }
  live_ends_.set(first);
}

/// These processes have ended with all that they had started, and so do the limits that are for them alone.
void Service::end_limits_of(std::string_view processes) {
  std::vector<std::uint32_t> gone;
  while (!processes.empty()) {
    if (const auto number = parse_number<std::uint32_t>(take_word(processes))) gone.push_back(*number);
  }
  const auto is_gone = [&](std::uint32_t pid) { return std::find(gone.begin(), gone.end(), pid) != gone.end(); };
  for (LiveLimit& limit : live_) {
    const std::vector<std::uint32_t>& of = limit.match.pid;
    if (!of.empty() && std::all_of(of.begin(), of.end(), is_gone)) limit.until = monotonic_now();
  }
  await_end_of_live_limits();
}

/// As if somebody had lifted those whose time is over.
void Service::on_live_limit_ends() {
  if (!ending_live_) {
    Wish wish;
    wish.log = "live limits whose time is over";
    wish.change_live = [now = monotonic_now()](std::vector<LiveLimit>& live) {
      std::erase_if(live, [now](const LiveLimit& each) { return each.until && *each.until <= now; });
    };
    ending_live_ = bring_about(std::move(wish));
  }
  Response response;
  if ((*ending_live_)(response) != Progress::done) return live_ends_.set(monotonic_now() + kBetweenLooks);
  ending_live_.reset();
  if (response.status != ResponseStatus::ok) live_ends_.set(monotonic_now() + kBeforeNextTry);
}

}  // namespace shaper
