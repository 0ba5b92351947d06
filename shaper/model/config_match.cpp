// `match` tables: what a packet must look like.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "shaper/model/address_text.h"
#include "shaper/model/config_parts.h"
#include "shaper/model/dscp_text.h"
#include "shaper/model/plain_text.h"
#include "shaper/model/units_text.h"

namespace shaper {
namespace {

using tree::Entry;
using tree::Node;

class MatchReader {
 public:
  MatchReader(const TableReader& reader, const Declared& declared) : reader_(reader), declared_(declared) {}

  [[nodiscard]] Match read();

 private:
  void error(const Node& node, std::string message) { reader_.diagnostics().error(node.position, std::move(message)); }

  void protocols(Match& match);
  void prefixes(std::string_view key, std::vector<Prefix>& prefixes);
  void ports(std::string_view key, std::vector<Range<std::uint16_t>>& ports);
  void dscps(Match& match);
  void marks(Match& match);
  void check_ports(const Match& match);
  void check_families(const Match& match);

  const TableReader& reader_;
  const Declared& declared_;
};

Match MatchReader::read() {
  Match match;
  protocols(match);
  prefixes("source", match.source);
  prefixes("destination", match.destination);
  prefixes("local", match.local);
  prefixes("remote", match.remote);
  ports("source_port", match.source_port);
  ports("destination_port", match.destination_port);
  ports("local_port", match.local_port);
  ports("remote_port", match.remote_port);
  dscps(match);
  marks(match);
  read_owner_keys(reader_, declared_.names, match);
  if (const Entry* entry = reader_.find("not")) match.none_of = read_matches(*entry, declared_, reader_.diagnostics());
  check_ports(match);
  check_families(match);
  return match;
}

void MatchReader::protocols(Match& match) {
  reader_.values("protocol", [&](const Node& node, const std::string& text) {
    const auto numbers = parse_protocol(text);
    if (numbers.empty() && is_number(text)) return error(node, "a protocol is a name or a number from 0 to 255");
    if (numbers.empty()) return error(node, "unknown protocol: the nearest name is " + nearest(text, protocol_names()));
    match.protocol.insert(match.protocol.end(), numbers.begin(), numbers.end());
  });
}

void MatchReader::prefixes(std::string_view key, std::vector<Prefix>& prefixes) {
  reader_.values(key, [&](const Node& node, const std::string& text) {
    const auto prefix = parse_prefix(text);
    if (!prefix) {
      error(node, "\"" + std::string(key) + "\" must be an address or a prefix such as \"203.0.113.0/24\"");
    } else if (masked(*prefix) != *prefix) {
      error(node, "the address has bits beyond its prefix: write \"" + format_prefix(masked(*prefix)) + "\" or \"" +
                      format_address(prefix->family, prefix->address) + "\"");
    } else {
      prefixes.push_back(*prefix);
    }
  });
}

void MatchReader::ports(std::string_view key, std::vector<Range<std::uint16_t>>& ports) {
  reader_.values(key, [&](const Node& node, const std::string& text) {
    const auto range = parse_range<std::uint16_t>(text);
    if (!range || range->first == 0) {
      error(node, "\"" + std::string(key) + "\" must be a port from 1 to 65535 or a range such as \"8000-8010\"");
    } else if (range->first > range->last) {
      error(node, "this range of ports ends before it begins");
    } else {
      ports.push_back(*range);
    }
  });
}

void MatchReader::dscps(Match& match) {
  reader_.values("dscp", [&](const Node& node, const std::string& text) {
    const auto dscp = parse_dscp(text);
    if (!dscp && is_number(text)) return error(node, "a DSCP is a name or a number from 0 to 63");
    if (!dscp) return error(node, "unknown DSCP: the nearest name is " + nearest(text, dscp_names()));
    match.dscp.push_back(*dscp);
  });
}

void MatchReader::marks(Match& match) {
  reader_.values("mark", [&](const Node& node, const std::string& text) {
    const std::size_t slash = text.find('/');
    const auto value = parse_mark_number(std::string_view(text).substr(0, slash));
    const auto mask = slash == std::string::npos ? std::optional{MarkMatch{}.mask}
                                                 : parse_mark_number(std::string_view(text).substr(slash + 1));
    if (!value || !mask) {
      error(node, "\"mark\" must be a value, or a value and a mask such as \"0x10/0xff\"");
    } else if (*mask == 0) {
      error(node, "a mask of zero matches every mark");
    } else if ((*value & ~*mask) != 0) {
      error(node, "no mark can match: the value has bits outside its mask");
    } else if ((*value & declared_.mark_mask) != 0) {
      error(node, fmt::format("no mark can match: its bit {:#x} is the shaper's own; leave it out, or give the shaper "
                              "another by \"mark_mask\"",
                              declared_.mark_mask));
    } else {
      match.mark.push_back({*value, *mask});
    }
  });
}

void MatchReader::check_ports(const Match& match) {
  constexpr std::array kWithPorts{kTcp, kUdp, kDccp, kSctp, kUdpLite};
  const auto without = std::find_if(match.protocol.begin(), match.protocol.end(), [&](std::uint8_t protocol) {
    return std::find(kWithPorts.begin(), kWithPorts.end(), protocol) == kWithPorts.end();
  });
  if (without == match.protocol.end()) return;
  for (const std::string_view key : {"source_port", "destination_port", "local_port", "remote_port"}) {
    const Entry* entry = reader_.find(key);
    if (entry == nullptr) continue;
    reader_.diagnostics().error(entry->position, "protocol " + protocol_name(*without) + " has no ports");
  }
}

void MatchReader::check_families(const Match& match) {
  bool ipv4 = true;
  bool ipv6 = true;
  const auto narrow = [&](const std::vector<Prefix>& prefixes) {
    if (prefixes.empty()) return;
    const auto has = [&](Family family) {
      return std::any_of(prefixes.begin(), prefixes.end(), [&](const Prefix& p) { return p.family == family; });
    };
    ipv4 = ipv4 && has(Family::ipv4);
    ipv6 = ipv6 && has(Family::ipv6);
  };
  for (const auto* prefixes : {&match.source, &match.destination, &match.local, &match.remote}) narrow(*prefixes);
  if (ipv4 || ipv6) return;
  reader_.diagnostics().error(reader_.position(), "no packet can match: one address is IPv4 and the other IPv6");
}

}  // namespace

std::optional<std::uint32_t> parse_mark_number(std::string_view text) {
  return parse_number<std::uint32_t>(text);
}

std::vector<Match> read_matches(const Entry& entry, const Declared& declared, Diagnostics& diagnostics) {
  std::vector<Match> matches;
  const std::string key = quoted(entry.key);
  const auto read_one = [&](const Node& node) {
    const auto* table = std::get_if<tree::Table>(&node.value);
    if (table == nullptr) {
      diagnostics.error(node.position, key + " must be a table such as { protocol = \"tcp\" }, or a list of tables");
    } else if (table->empty()) {
      diagnostics.error(node.position, "an empty table matches everything: leave it out");
    } else {
      const TableReader reader(*table, node.position, kMatchLevel, diagnostics);
      matches.push_back(MatchReader(reader, declared).read());
    }
  };
  const auto* list = std::get_if<tree::List>(&entry.node.value);
  if (list == nullptr) {
    read_one(entry.node);
    return matches;
  }
  if (list->empty()) diagnostics.error(entry.node.position, key + " is an empty list: leave it out to match all");
  for (const Node& node : *list) read_one(node);
  return matches;
}

}  // namespace shaper
