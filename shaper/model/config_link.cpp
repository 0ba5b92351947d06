// Links: an interface, a direction, a rate, and how packets become frames there.
#include <algorithm>
#include <array>
#include <set>

#include "shaper/model/config_parts.h"

namespace shaper {
namespace {

using tree::Entry;
using tree::Node;

constexpr std::size_t kMostLinks = 65'535;  // LinkIndex
// The largest that tc-cake(8) takes.
constexpr Range<std::uint32_t> kOverheads{0, 256};

constexpr std::array kDirectionWords{Word<Direction>{"egress", Direction::egress},
                                     Word<Direction>{"ingress", Direction::ingress}};
constexpr std::array kWithoutDaemonWords{Word<WithoutDaemon>{"pass", WithoutDaemon::pass},
                                         Word<WithoutDaemon>{"block", WithoutDaemon::block}};

constexpr Framing frames(std::uint32_t overhead, Cells cells = Cells::none, std::uint32_t smallest_frame = 0) {
  return {.overhead = overhead, .smallest_frame = smallest_frame, .cells = cells};
}

// The figures are those of tc-cake(8), with three exceptions. "ethernet" is the header that the kernel's own shapers
// charge: cake's word of that name adds preamble, gap and checksum too, 38 bytes and an mpu of 84. "ether-vlan" is that
// header with one tag: cake adds the tag to whatever else was said. "raw" is the packet as it is handed over, which is
// the IP packet for us and the frame for cake. The words for cells alone add no bytes.
constexpr std::array kOverheadWords{Word<Framing>{"ethernet", frames(14)},
                                    Word<Framing>{"ether-vlan", frames(18)},
                                    Word<Framing>{"ip", frames(0)},
                                    Word<Framing>{"raw", frames(0)},
                                    Word<Framing>{"conservative", frames(48, Cells::atm)},
                                    Word<Framing>{"atm", frames(0, Cells::atm)},
                                    Word<Framing>{"ptm", frames(0, Cells::ptm)},
                                    Word<Framing>{"noatm", frames(0)},
                                    Word<Framing>{"docsis", frames(18, Cells::none, 64)},
                                    Word<Framing>{"pppoa-vcmux", frames(10, Cells::atm)},
                                    Word<Framing>{"pppoa-llc", frames(14, Cells::atm)},
                                    Word<Framing>{"pppoe-vcmux", frames(32, Cells::atm)},
                                    Word<Framing>{"pppoe-llcsnap", frames(40, Cells::atm)},
                                    Word<Framing>{"bridged-vcmux", frames(24, Cells::atm)},
                                    Word<Framing>{"bridged-llcsnap", frames(32, Cells::atm)},
                                    Word<Framing>{"ipoa-vcmux", frames(8, Cells::atm)},
                                    Word<Framing>{"ipoa-llcsnap", frames(16, Cells::atm)},
                                    Word<Framing>{"pppoe-ptm", frames(30, Cells::ptm)},
                                    Word<Framing>{"bridged-ptm", frames(22, Cells::ptm)}};

/// What an interface may be called by the kernel (dev_valid_name), less what iptables or a terminal would read as more
/// than a name: "+" is a wildcard there.
bool is_interface_name(std::string_view name) {
  const auto plain = [](char c) { return c == '@' || is_plain_name(std::string_view(&c, 1)); };
  return !name.empty() && name.size() <= 15 && name != "." && name != ".." && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), plain);
}

Framing read_framing(const TableReader& reader) {
  Framing framing;
  if (const Entry* entry = reader.find("overhead")) {
    if (std::holds_alternative<std::int64_t>(entry->node.value)) {
      framing.overhead = reader.integer("overhead", kOverheads).value_or(framing.overhead);
    } else {
      framing = reader.word<Framing>("overhead", kOverheadWords).value_or(framing);
    }
  }
  framing.smallest_frame = reader.integer("mpu", kOverheads).value_or(framing.smallest_frame);
  return framing;
}

LinkPolicy read_link(const TableReader& reader) {
  LinkPolicy link;
  link.name = read_name(reader);
  reader.require("interface");
  link.interface = reader.text("interface").value_or("");
  if (reader.find("interface") != nullptr && !is_interface_name(link.interface)) {
    reader.diagnostics().error(reader.position_of("interface"),
                               "an interface name has 1 to 15 letters, digits, dots, underscores, hyphens and @");
  }
  link.direction = reader.word<Direction>("direction", kDirectionWords).value_or(Direction::egress);
  link.rate = reader.rate("rate");
  const Framing framing = read_framing(reader);
  link.overhead = framing.overhead;
  link.smallest_frame = framing.smallest_frame;
  link.cells = framing.cells;
  link.without_daemon = reader.word<WithoutDaemon>("without_daemon", kWithoutDaemonWords).value_or(WithoutDaemon::pass);
  link.guard = reader.boolean("guard").value_or(true);
  return link;
}

}  // namespace

ReadLinks read_links(const TableReader& top) {
  Diagnostics& diagnostics = top.diagnostics();
  ReadLinks links;
  std::set<std::pair<std::string, Direction>> taken;
  for (const Node* node : tables_of(top, "link", kMostLinks)) {
    const TableReader reader(std::get<tree::Table>(node->value), node->position, kLinkLevel, diagnostics);
    LinkPolicy link = read_link(reader);
    const bool new_name = links.index.emplace(link.name, static_cast<LinkIndex>(links.policies.size())).second;
    const bool new_place = taken.emplace(link.interface, link.direction).second;
    if (!new_name && !link.name.empty()) {
      diagnostics.error(reader.position_of("name"), "another link has this name already");
    } else if (!new_place && !link.interface.empty()) {
      diagnostics.error(reader.position_of("interface"), "another link has this interface and direction already");
    }
    links.rates.push_back(reader.position_of("rate"));
    links.policies.push_back(std::move(link));
  }
  if (links.policies.empty() && diagnostics.ok()) diagnostics.error({}, "a policy needs at least one [[link]]");
  return links;
}

}  // namespace shaper
