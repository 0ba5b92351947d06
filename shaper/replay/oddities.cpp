#include "shaper/replay/oddities.h"

#include <fmt/format.h>

#include <string_view>

namespace shaper {
namespace {

/// In the order of the enum.
constexpr std::array<std::string_view, kOddities> kWords{
    "no IP, or cut short before it; left out",
    "an IP header that is cut short or wrong; left out",
    "neighbour discovery or MLD, which is never shaped; left out",
    "captured without all of its headers (snap length); ports may be missing",
    "an IP length beyond the end of the frame; the frame's length counts",
    "more in the frame than the IP packet; the packet's length counts",
    "a time before that of the packet in front; the later time counts",
    "an hour or more behind the packet in front",
};

}  // namespace

void Oddities::note(Oddity kind, std::uint64_t packet) {
  Seen& seen = seen_.at(static_cast<std::size_t>(kind));
  if (seen.count++ == 0) seen.first = packet;
}

std::vector<std::string> Oddities::sentences() const {
  std::vector<std::string> sentences;
  for (std::size_t kind = 0; kind < kOddities; ++kind) {
    const auto& [count, first] = seen_.at(kind);
    if (count == 0) continue;
    const std::string who =
        count == 1 ? fmt::format("packet {}", first) : fmt::format("{} packets, the first is packet {}", count, first);
    sentences.push_back(fmt::format("{}: {}", who, kWords.at(kind)));
  }
  return sentences;
}

}  // namespace shaper
