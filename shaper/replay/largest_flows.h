// The flows that sent most, over time, in bounded memory however many there are.
//
// A few flows have a place, with a series of their own; the rest are added up. A flow without a place gets that of the
// smallest once more of it has come than of that one (filtered space saving, Homem and Carvalho 2010): so a flow with
// more than a 64th of all traffic has a place, and only what it sent before it got it is missing from its series.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "shaper/core/flow_key.h"
#include "shaper/replay/time_bins.h"

namespace shaper {

class LargestFlows {
 public:
  /// Who has sent a packet: a place, and which of its owners; or nobody who has one.
  struct Sender {
    std::uint16_t place = kNoPlace;
    std::uint32_t owner = 0;
  };

  struct FlowSeries {
    FlowKey key;
    ClassIndex class_index = 0;  ///< of its latest packet that was sent; counted by whoever tells
    ByteCount sent;              ///< wire bytes, as in the series
    Series series;
  };

  [[nodiscard]] Sender arrived(const Packet& packet);
  void sent(Sender sender, ClassIndex class_index, ByteCount wire_bytes, std::size_t bin);
  void fold();

  struct Ranking {
    std::vector<FlowSeries> largest;  ///< by what was sent, the largest first
    Series rest;
  };
  [[nodiscard]] Ranking ranking(std::size_t most) const;

 private:
  static constexpr std::size_t kPlaces = 64;
  static constexpr std::uint16_t kNoPlace = kPlaces;
  static constexpr std::size_t kCells = 4096;

  struct Place {
    FlowSeries flow;
    ByteCount arrived;
    std::uint32_t owner = 0;
  };
  [[nodiscard]] static std::size_t cell_of(const FlowKey& key) { return FlowKeyHash{}(key) % kCells; }
  Sender take_place(std::uint16_t place, const FlowKey& key, ByteCount arrived);
  void find_smallest();

  std::vector<Place> places_;
  std::unordered_map<FlowKey, std::uint16_t, FlowKeyHash> place_of_;
  std::array<ByteCount, kCells> waiting_{};  // what came of flows without a place, by their hash
  std::uint16_t smallest_ = 0;
  Series rest_;
};

}  // namespace shaper
