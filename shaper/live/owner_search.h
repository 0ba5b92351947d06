// Finding out who sends, as the packet loop's thread sees it: carries what the core wants to know to the process that
// looks it up, and its answers back. Nothing here waits.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shaper/core/shaper.h"
#include "shaper/live/packet_loop.h"

namespace shaper {

class OwnerSearch {
 public:
  using Send = std::function<void(std::string_view verb, std::string_view body)>;

  OwnerSearch(PacketLoop& packets, Send send) : packets_(packets), send_(std::move(send)) {}

  /// `policy` is in force now in `shaper`.
  void obey(const Policy& policy, Shaper& shaper);

  /// Asks for what the core wants to know since the last call. Of a flood some go unasked: their flows ask again.
  void ask();
  void on_answers(std::string_view text);

  /// The other process runs; `lacks` is what it cannot find, a line each.
  void on_begin(std::string_view lacks);

  /// Whether who comes into force now would be found at once; not so for a moment, while the other process starts.
  [[nodiscard]] bool ready() const;
  [[nodiscard]] const std::vector<std::string>& lacks() const { return lacks_; }
  [[nodiscard]] std::uint64_t unasked() const { return unasked_; }

 private:
  struct Waiting {
    FlowKey flow;
    Instant since;
  };

  void forget_unanswered(Instant now);

  PacketLoop& packets_;
  Send send_;
  Shaper* shaper_ = nullptr;           // nothing: nobody is asked
  std::vector<Direction> directions_;  // of the links
  std::map<std::uint64_t, Waiting> waiting_;
  std::optional<Instant> starts_;  // since when the other process is being started
  std::vector<std::string> lacks_;
  std::uint64_t last_id_ = 0;
  std::uint64_t unasked_ = 0;
  std::vector<FlowKey> wanted_;  // for ask()
};

}  // namespace shaper
