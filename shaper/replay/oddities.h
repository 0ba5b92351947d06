// What is odd about the packets of a capture: every kind is counted, and told once with the first packet that has it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace shaper {

enum class Oddity : std::uint8_t {
  no_ip,                ///< or cut short before it: not replayed
  bad_header,           ///< not replayed
  never_shaped,         ///< neighbour discovery and MLD: not replayed
  headers_missing,      ///< the snap length was too short for them
  longer_than_frame,    ///< by its IP header; the frame's length counts
  shorter_than_frame,   ///< by its IP header, and not by padding; the header's length counts
  late_stamp,           ///< a time before that of the packet in front: replayed at the latter's
  long_silence_before,  ///< an hour or more
};
inline constexpr std::size_t kOddities = 8;

class Oddities {
 public:
  /// Packets are counted from 1, as Wireshark and tcpdump count them.
  void note(Oddity kind, std::uint64_t packet);

  [[nodiscard]] std::uint64_t count(Oddity kind) const { return seen_.at(static_cast<std::size_t>(kind)).count; }

  /// One for each kind that was seen: `3 packets, the first is packet 5: no IP …`.
  [[nodiscard]] std::vector<std::string> sentences() const;

 private:
  struct Seen {
    std::uint64_t count = 0;
    std::uint64_t first = 0;
  };
  std::array<Seen, kOddities> seen_{};
};

}  // namespace shaper
