// Which class a packet belongs to: the first one on its link, in file order, of which a match table holds; else the
// link's default class. While the owner of a flow is being found out, it is the strictest of those that this may lead
// to. Asked once for a flow, not for each packet.
#pragma once

#include <optional>
#include <vector>

#include "shaper/core/flow_key.h"
#include "shaper/core/match_index.h"
#include "shaper/core/policy.h"

namespace shaper {

/// Whether all keys of `match` hold for the packet; perhaps: that depends on an owner who is not found yet.
enum class Holds : std::uint8_t { no, perhaps, yes };
[[nodiscard]] Holds holds(const Match& match, const Packet& packet, Direction direction);

class Classifier {
 public:
  explicit Classifier(const Policy& policy);

  struct Result {
    ClassIndex class_index = 0;
    std::optional<std::size_t> match;  ///< which of the class's tables held; absent: the class takes everything
  };
  [[nodiscard]] Result classify(const Packet& packet) const;

  /// The guard of the flow's link, if its local port is guarded there.
  [[nodiscard]] std::optional<ClassIndex> guard_of(const FlowKey& flow) const;

  // Whether any class asks for it: only then it tells flows apart.
  [[nodiscard]] bool asks_dscp() const { return asks_dscp_; }
  [[nodiscard]] bool asks_mark() const { return asks_mark_; }
  [[nodiscard]] bool asks_user() const { return asks_user_; }

 private:
  struct Candidate {
    Result result;
    Match match;  ///< ignored where the class takes everything
  };
  struct LinkClasses {
    Direction direction = Direction::egress;
    std::vector<Candidate> candidates;
    MatchIndex index;  ///< numbers them
    ClassIndex default_class = 0;
    std::optional<ClassIndex> guard;
  };

  void note_keys(const Match& match);

  std::vector<LinkClasses> links_;
  std::vector<std::uint16_t> guard_ports_;  // sorted
  bool asks_dscp_ = false;
  bool asks_mark_ = false;
  bool asks_user_ = false;
  std::vector<std::uint64_t> rates_;  // bit/s: the smallest that all packets of a class obey
};

}  // namespace shaper
