#include "shaper/replay/report_collector.h"

#include <algorithm>

namespace shaper {
namespace {

/// Changes of policy without end must not fill the memory: later ones replace the last step.
constexpr std::size_t kMostSteps = 200;

void follow(RateSteps& steps, std::optional<DataRate> rate, Instant now) {
  if (!steps.empty() && steps.back().rate == rate) return;
  if (steps.size() == kMostSteps) steps.pop_back();
  steps.push_back({now, rate});
}

std::optional<DataRate> guarantee_of(const Policy& policy, const ClassPolicy& of) {
  const auto asked = of.guarantee();
  const auto link_rate = policy.links[of.link].rate;
  if (!asked || !link_rate || of.is_guard) return asked;
  return guarantee_in_force(*asked, sum_of_guarantees(policy.classes, of.link), *link_rate);
}

double seconds(Nanos time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

void ReportCollector::obeys(const Policy& policy, Instant now) {
  if (policies_++ == 0) time_ = TimeBins(now);
  reach(now);
  for (const LinkPolicy& link : policy.links) {
    auto history = std::find_if(links_.begin(), links_.end(), [&](auto& each) { return each.name == link.name; });
    if (history == links_.end()) history = links_.insert(history, {link.name, {}});
    follow(history->limit, link.rate, now);
  }
  history_of_.clear();
  std::unordered_map<std::string, std::size_t> known;
  const auto words = [](const std::string& link, const std::string& name) { return link + '\n' + name; };
  for (const ClassHistory& each : classes_) known.emplace(words(each.link, each.name), known.size());
  for (const ClassPolicy& of : policy.classes) {
    const std::string& link = policy.links[of.link].name;
    const auto [entry, is_new] = known.emplace(words(link, of.name), classes_.size());
    if (is_new) classes_.push_back({link, of.name, {}, {}, {}, {}, {}, {}, {}});
    history_of_.push_back(entry->second);
    follow(classes_[entry->second].limit, of.limit(), now);
    follow(classes_[entry->second].guarantee, guarantee_of(policy, of), now);
  }
}

void ReportCollector::arrived(const Packet& packet, Instant now) {
  reach(now);
  ++arrivals_;
  if (latest_) held_.insert(*latest_);
  latest_.emplace(packet.id, flows_.arrived(packet));
}

void ReportCollector::decided(const Verdict& verdict, Instant now) {
  reach(now);
  const LargestFlows::Sender sender = take_sender(verdict.id);
  if (verdict.decision == Decision::detour || verdict.class_index >= history_of_.size()) return;
  const std::size_t index = history_of_[verdict.class_index];
  ClassHistory& of = classes_[index];
  const std::size_t bin = time_.index(now);
  add_backlog(of, verdict, now);
  if (verdict.decision == Decision::drop) {
    of.drops.at(static_cast<std::size_t>(verdict.reason)).add(bin, verdict.frames);
  }
  if (!departs(verdict.decision)) return;
  of.sent.add(bin, static_cast<double>(verdict.wire_bytes.value));
  if (verdict.decision == Decision::mark) of.marked.add(bin, verdict.frames);
  if (verdict.delay > Nanos{0}) of.delays.add(verdict.delay, verdict.frames);
  flows_.sent(sender, static_cast<ClassIndex>(index), verdict.wire_bytes, bin);
}

void ReportCollector::reach(Instant now) {
  for (int folds = time_.reach(now); folds > 0; --folds) {
    flows_.fold();
    for (ClassHistory& of : classes_) {
      of.sent.fold();
      of.backlog.fold();
      of.marked.fold();
      for (Series& drops : of.drops) drops.fold();
    }
  }
}

LargestFlows::Sender ReportCollector::take_sender(PacketId id) {
  if (latest_ && latest_->first == id) return std::exchange(latest_, std::nullopt)->second;
  const auto held = held_.find(id);
  if (held == held_.end()) return {};
  const LargestFlows::Sender sender = held->second;
  held_.erase(held);
  return sender;
}

/// The packet was held until now: in every bin since it came, for as long as it was there.
void ReportCollector::add_backlog(ClassHistory& of, const Verdict& verdict, Instant now) {
  if (verdict.delay <= Nanos{0}) return;
  const auto bytes = static_cast<double>(verdict.wire_bytes.value);
  Instant from = std::max(now - verdict.delay, time_.start());
  for (std::size_t bin = time_.index(from); from < now; ++bin) {
    const Instant until = std::min(time_.begin_of(bin + 1), now);
    of.backlog.add(bin, bytes * seconds(until - from));
    from = until;
  }
}

}  // namespace shaper
