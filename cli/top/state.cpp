#include "cli/top/state.h"

#include <algorithm>
#include <utility>

#include "cli/top/flow_words.h"
#include "shaper/core/classifier.h"
#include "shaper/core/guard.h"
#include "shaper/model/live_limits.h"

namespace shaper::top {

void Cursor::move(std::ptrdiff_t lines, std::size_t count) {
  const auto last = static_cast<std::ptrdiff_t>(count) - 1;
  at = static_cast<std::size_t>(
      std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(at) + lines, 0, std::max<std::ptrdiff_t>(last, 0)));
}

void Cursor::fit(std::size_t rows_seen, std::size_t count) {
  rows = std::max<std::size_t>(rows_seen, 1);
  move(0, count);
  first = std::min(first, at);
  if (at >= first + rows) first = at + 1 - rows;
  first = std::min(first, count > rows ? count - rows : 0);
}

void State::take(StatusReport report, Instant now, std::optional<Nanos> every) {
  status_every_ = every;
  meters_ = meters_of(report, std::move(trouble_ ? meters_before_ : meters_), now);
  trouble_.reset();
  status_ = std::move(report);
  read_live_limits();
  follow();
}

void State::take(FlowsReport report, std::optional<Nanos> every) {
  flows_ = std::move(report);
  flows_every_ = every;
  choose_flows();
}

void State::take_trouble(StatusReport without_daemon, std::string why, Instant now) {
  if (!trouble_) {
    meters_before_ = std::exchange(meters_, {});
    for (Meter& meter : meters_before_) meter.history.interrupt(now);
  }
  trouble_ = std::move(why);
  status_ = std::move(without_daemon);
  live_.clear();
  take(FlowsReport{}, std::nullopt);
}

void State::set_sort(FlowSort sort) {
  sort_ = sort;
  choose_flows();
}

void State::set_reverse(bool reverse) {
  reverse_ = reverse;
  choose_flows();
}

void State::set_filter(std::string text) {
  filter_ = std::move(text);
  choose_flows();
}

/// Sorts all, so that only places need to be kept of those that the filter leaves.
void State::choose_flows() {
  sort_flows(flows_.flows, sort_, reverse_);
  FlowFilter filter;
  if (!filter_.empty()) filter.text = filter_;
  chosen_.clear();
  totals_ = {};
  for (std::size_t place = 0; place < flows_.flows.size(); ++place) {
    if (!filter.matches(flows_.flows[place])) continue;
    chosen_.push_back(place);
    totals_.add(flows_.flows[place]);
  }
  follow();
}

void State::follow() {
  const auto is_followed = [&](std::size_t place) { return same_flow(flows_.flows[place], *followed_flow_); };
  if (followed_flow_) {
    const auto found = std::find_if(chosen_.begin(), chosen_.end(), is_followed);
    if (found != chosen_.end()) flow_cursor.at = static_cast<std::size_t>(found - chosen_.begin());
  }
  if (followed_meter_) {
    const auto found =
        std::find_if(meters_.begin(), meters_.end(), [&](const Meter& row) { return row.is(*followed_meter_); });
    if (found != meters_.end()) meter_cursor.at = static_cast<std::size_t>(found - meters_.begin());
  }
  flow_cursor.move(0, chosen_.size());
  meter_cursor.move(0, meters_.size());
}

void State::move(std::ptrdiff_t lines) {
  if (part == Part::flows) {
    flow_cursor.move(lines, chosen_.size());
    followed_flow_.reset();
    if (flow() != nullptr) followed_flow_ = *flow();
  } else {
    meter_cursor.move(lines, meters_.size());
    followed_meter_.reset();
    if (meter() != nullptr) followed_meter_ = *meter();
  }
}

void State::select_first() {
  (part == Part::flows ? flow_cursor : meter_cursor).at = 0;
  if (part == Part::flows) {
    followed_flow_.reset();
  } else {
    followed_meter_.reset();
  }
}

void State::select_last() {
  move(static_cast<std::ptrdiff_t>(part == Part::flows ? chosen_.size() : meters_.size()));
}

const Meter* State::meter() const {
  return meter_cursor.at < meters_.size() ? &meters_[meter_cursor.at] : nullptr;
}

const FlowReport* State::flow() const {
  return flow_cursor.at < chosen_.size() ? &flow(flow_cursor.at) : nullptr;
}

/// Names in selectors are looked up only when a limit is new.
void State::read_live_limits() {
  std::vector<LiveMatch> before = std::move(live_);
  live_.clear();
  for (const LimitReport& limit : status_.limits) {
    if (!limit.id || !limit.selector) continue;
    const auto known = std::find_if(before.begin(), before.end(), [&](const LiveMatch& each) {
      return each.id == limit.id && each.selector == *limit.selector;
    });
    if (known != before.end()) {
      live_.push_back(std::move(*known));
    } else if (auto match = parse_selector(*limit.selector, names_)) {
      live_.push_back({*limit.id, *limit.selector, std::move(*match)});
    }
  }
}

std::vector<std::uint64_t> State::live_limits_of(const FlowReport& flow) const {
  std::vector<std::uint64_t> ids;
  const auto question = question_of(flow, names_);
  if (!question || flow.class_name == kGuardClass) return ids;
  for (const LiveMatch& each : live_) {
    if (holds(each.match, question->packet, direction_of(flow.link)) == Holds::yes) ids.push_back(each.id);
  }
  return ids;
}

Direction State::direction_of(const std::string& link) const {
  for (const LinkReport& each : status_.links) {
    if (each.name == link) return each.direction;
  }
  return Direction::egress;
}

}  // namespace shaper::top
