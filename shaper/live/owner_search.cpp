#include "shaper/live/owner_search.h"

#include <fmt/format.h>

#include "shaper/live/clock.h"
#include "shaper/live/owner_messages.h"
#include "shaper/model/owner_keys.h"
#include "shaper/model/plain_text.h"

namespace shaper {
namespace {

constexpr std::size_t kMostWaiting = 4'096;
/// Who has not answered by then has died, or cannot start.
constexpr std::chrono::seconds kPatience{2};

OwnerAsk ask_for(std::uint64_t id, const FlowKey& flow, Direction direction) {
  OwnerAsk ask{id, flow.family, flow.protocol, flow.source, flow.destination, flow.source_port, flow.destination_port};
  if (direction == Direction::ingress) {
    std::swap(ask.local, ask.remote);
    std::swap(ask.local_port, ask.remote_port);
  }
  return ask;
}

}  // namespace

void OwnerSearch::obey(const Policy& policy, Shaper& shaper) {
  std::string settings;
  if (policy.finds_owners) {
    settings = "find\n";
    for (const std::uint32_t pid : watched_pids(policy)) settings += fmt::format("pid {}\n", pid);
  }
  if (policy.finds_owners && shaper_ == nullptr) starts_ = monotonic_now();
  send_("owners", settings);
  waiting_.clear();  // the flows may have other keys now; the core asks anew
  directions_.clear();
  for (const LinkPolicy& link : policy.links) directions_.push_back(link.direction);
  shaper_ = policy.finds_owners ? &shaper : nullptr;
  ask();
}

void OwnerSearch::on_begin(std::string_view lacks) {
  starts_.reset();
  lacks_.clear();
  while (!lacks.empty()) lacks_.emplace_back(take_line(lacks));
}

bool OwnerSearch::ready() const {
  return shaper_ == nullptr || !starts_ || monotonic_now() - *starts_ > kPatience;
}

void OwnerSearch::ask() {
  if (shaper_ == nullptr) return;
  wanted_.clear();
  shaper_->owners_wanted(wanted_);
  if (wanted_.empty()) return;
  const Instant now = monotonic_now();
  forget_unanswered(now);
  std::vector<OwnerAsk> asks;
  for (const FlowKey& flow : wanted_) {
    if (waiting_.size() >= kMostWaiting) {
      ++unasked_;
      continue;
    }
    asks.push_back(ask_for(++last_id_, flow, directions_[flow.link]));
    waiting_.emplace(last_id_, Waiting{flow, now});
  }
  if (!asks.empty()) send_("own", owner_asks_text(asks));
}

void OwnerSearch::forget_unanswered(Instant now) {
  while (!waiting_.empty() && now - waiting_.begin()->second.since > kPatience) waiting_.erase(waiting_.begin());
}

void OwnerSearch::on_answers(std::string_view text) {
  for (const OwnerAnswer& answer : parse_owner_answers(text)) {
    const auto found = waiting_.find(answer.id);
    if (found == waiting_.end()) continue;
    packets_.tell_owner(found->second.flow, answer.owner);
    waiting_.erase(found);
  }
}

}  // namespace shaper
