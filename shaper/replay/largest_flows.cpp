#include "shaper/replay/largest_flows.h"

#include <algorithm>

namespace shaper {
LargestFlows::Sender LargestFlows::arrived(const Packet& packet) {
  const FlowKey key = flow_key(packet);
  const ByteCount bytes{packet.ip_bytes};
  if (const auto found = place_of_.find(key); found != place_of_.end()) {
    Place& place = places_[found->second];
    place.arrived += bytes;
    if (found->second == smallest_) find_smallest();
    return {found->second, place.owner};
  }
  if (places_.size() < kPlaces) {
    const auto next = static_cast<std::uint16_t>(places_.size());
    places_.emplace_back();
    return take_place(next, key, bytes);
  }
  ByteCount& waiting = waiting_[cell_of(key)];
  waiting += bytes;
  Place& smallest = places_[smallest_];
  if (waiting <= smallest.arrived) return {};
  const ByteCount arrived = std::exchange(waiting, {});
  ByteCount& loser = waiting_[cell_of(smallest.flow.key)];
  loser = std::max(loser, smallest.arrived);
  rest_.add(smallest.flow.series);
  place_of_.erase(smallest.flow.key);
  ++smallest.owner;
  return take_place(smallest_, key, arrived);
}

LargestFlows::Sender LargestFlows::take_place(std::uint16_t place, const FlowKey& key, ByteCount arrived) {
  places_[place].flow = {key, {}, {}, {}};
  places_[place].arrived = arrived;
  place_of_[key] = place;
  find_smallest();
  return {place, places_[place].owner};
}

void LargestFlows::find_smallest() {
  const auto smallest = std::min_element(places_.begin(), places_.end(),
                                         [](const Place& a, const Place& b) { return a.arrived < b.arrived; });
  smallest_ = static_cast<std::uint16_t>(smallest - places_.begin());
}

void LargestFlows::sent(Sender sender, ClassIndex class_index, ByteCount wire_bytes, std::size_t bin) {
  const auto amount = static_cast<double>(wire_bytes.value);
  if (sender.place == kNoPlace || places_[sender.place].owner != sender.owner) return rest_.add(bin, amount);
  FlowSeries& flow = places_[sender.place].flow;
  flow.class_index = class_index;
  flow.sent += wire_bytes;
  flow.series.add(bin, amount);
}

void LargestFlows::fold() {
  for (Place& place : places_) place.flow.series.fold();
  rest_.fold();
}

LargestFlows::Ranking LargestFlows::ranking(std::size_t most) const {
  Ranking ranking{{}, rest_};
  for (const Place& place : places_) ranking.largest.push_back(place.flow);
  std::sort(ranking.largest.begin(), ranking.largest.end(),
            [](const FlowSeries& a, const FlowSeries& b) { return a.sent > b.sent; });
  for (std::size_t i = most; i < ranking.largest.size(); ++i) ranking.rest.add(ranking.largest[i].series);
  ranking.largest.resize(std::min(most, ranking.largest.size()));
  return ranking;
}

}  // namespace shaper
