// The policy as a whole: the top of the file, its links, and the classes put together.
#include "shaper/model/config.h"

#include <algorithm>
#include <array>

#include "shaper/model/config_parts.h"
#include "shaper/model/units_text.h"

namespace shaper {
namespace {

using tree::Entry;
using tree::Node;
using tree::Position;

constexpr std::size_t kMostLinks = 65'535;  // LinkIndex
constexpr std::size_t kMostClasses = 4'096;
// A table of flows takes some hundred bytes for each.
constexpr Range<std::uint32_t> kMaxFlows{1, 1U << 24};
// The largest that tc-cake(8) takes.
constexpr Range<std::uint32_t> kOverheads{0, 256};

constexpr std::string_view kDefaultClass = "default";

constexpr std::array kDirectionWords{Word<Direction>{"egress", Direction::egress}, Word<Direction>{"ingress", {}}};
constexpr std::array kWithoutDaemonWords{Word<WithoutDaemon>{"pass", WithoutDaemon::pass},
                                         Word<WithoutDaemon>{"block", WithoutDaemon::block}};
// tc-cake(8): compound keywords for link layers; only plain Ethernet and no overhead work so far.
constexpr std::array kOverheadWords{
    Word<std::uint32_t>{"ethernet", 14},      Word<std::uint32_t>{"ip", 0},
    Word<std::uint32_t>{"raw", {}},           Word<std::uint32_t>{"conservative", {}},
    Word<std::uint32_t>{"atm", {}},           Word<std::uint32_t>{"ptm", {}},
    Word<std::uint32_t>{"noatm", {}},         Word<std::uint32_t>{"docsis", {}},
    Word<std::uint32_t>{"pppoa-vcmux", {}},   Word<std::uint32_t>{"pppoa-llc", {}},
    Word<std::uint32_t>{"pppoe-vcmux", {}},   Word<std::uint32_t>{"pppoe-llcsnap", {}},
    Word<std::uint32_t>{"bridged-vcmux", {}}, Word<std::uint32_t>{"bridged-llcsnap", {}},
    Word<std::uint32_t>{"ipoa-vcmux", {}},    Word<std::uint32_t>{"ipoa-llcsnap", {}},
    Word<std::uint32_t>{"pppoe-ptm", {}},     Word<std::uint32_t>{"bridged-ptm", {}},
    Word<std::uint32_t>{"ether-vlan", {}}};

/// What an interface may be called by the kernel (dev_valid_name), less what iptables or a terminal would read as more
/// than a name: "+" is a wildcard there.
bool is_interface_name(std::string_view name) {
  const auto plain = [](char c) { return c == '@' || is_plain_name(std::string_view(&c, 1)); };
  return !name.empty() && name.size() <= 15 && name != "." && name != ".." && name.front() != '-' &&
         std::all_of(name.begin(), name.end(), plain);
}

/// The tables of `[[key]]`.
std::vector<const Node*> tables_of(const TableReader& top, std::string_view key, std::size_t most) {
  const Entry* entry = top.find(key);
  if (entry == nullptr) return {};
  const auto* list = std::get_if<tree::List>(&entry->node.value);
  std::vector<const Node*> tables;
  if (list == nullptr) {
    top.diagnostics().error(entry->position,
                            "\"" + std::string(key) + "\" is a list of tables: write [[" + std::string(key) + "]]");
    return tables;
  }
  for (const Node& node : *list) {
    if (std::holds_alternative<tree::Table>(node.value)) {
      tables.push_back(&node);
    } else {
      top.diagnostics().error(node.position, "\"" + std::string(key) + "\" is a list of tables");
    }
  }
  if (tables.size() > most) {
    top.diagnostics().error(tables[most]->position,
                            "a policy has at most " + std::to_string(most) + " tables [[" + std::string(key) + "]]");
    tables.resize(most);
  }
  return tables;
}

std::uint32_t read_overhead(const TableReader& reader) {
  constexpr std::uint32_t kEthernet = 14;
  const Entry* entry = reader.find("overhead");
  if (entry == nullptr) return kEthernet;
  const bool number = std::holds_alternative<std::int64_t>(entry->node.value);
  const auto overhead =
      number ? reader.integer("overhead", kOverheads) : reader.word<std::uint32_t>("overhead", kOverheadWords);
  return overhead.value_or(kEthernet);
}

LinkPolicy read_link(const TableReader& reader) {
  Diagnostics& diagnostics = reader.diagnostics();
  LinkPolicy link;
  reader.require("name");
  reader.require("interface");
  link.name = reader.text("name").value_or("");
  if (reader.find("name") != nullptr && !is_plain_name(link.name)) {
    diagnostics.error(reader.position_of("name"), "a name has 1 to 32 letters, digits, dots, underscores and hyphens");
  }
  link.interface = reader.text("interface").value_or("");
  if (reader.find("interface") != nullptr && !is_interface_name(link.interface)) {
    diagnostics.error(reader.position_of("interface"),
                      "an interface name has 1 to 15 letters, digits, dots, underscores, hyphens and @");
  }
  link.direction = reader.word<Direction>("direction", kDirectionWords).value_or(Direction::egress);
  link.overhead = read_overhead(reader);
  link.smallest_frame = reader.integer("mpu", kOverheads).value_or(0);
  link.without_daemon = reader.word<WithoutDaemon>("without_daemon", kWithoutDaemonWords).value_or(WithoutDaemon::pass);
  reader.only_false("guard");
  return link;
}

void read_links(const TableReader& top, Policy& policy) {
  Diagnostics& diagnostics = top.diagnostics();
  for (const Node* node : tables_of(top, "link", kMostLinks)) {
    const TableReader reader(std::get<tree::Table>(node->value), node->position, kLinkLevel, diagnostics);
    LinkPolicy link = read_link(reader);
    for (const LinkPolicy& other : policy.links) {
      if (!link.name.empty() && other.name == link.name) {
        diagnostics.error(reader.position_of("name"), "another link has this name already");
      } else if (!link.interface.empty() && other.interface == link.interface && other.direction == link.direction) {
        diagnostics.error(reader.position_of("interface"), "another link has this interface already");
      }
    }
    policy.links.push_back(std::move(link));
  }
  if (policy.links.empty() && diagnostics.ok()) diagnostics.error({}, "a policy needs at least one [[link]]");
}

void check_names(std::span<const ReadClass> classes, const TableReader& reader, const ClassPolicy& added) {
  for (const ReadClass& other : classes) {
    if (!other.has_link || other.policy.link != added.link) continue;
    if (!added.name.empty() && other.policy.name == added.name) {
      reader.diagnostics().error(reader.position_of("name"), "another class of this link has this name already");
    }
    if (other.policy.is_default && added.is_default) {
      reader.diagnostics().error(reader.position_of("default"), "this link has a default class already");
    }
  }
}

/// Gives each link without a default class one that only counts.
void add_default_classes(const std::vector<ReadClass>& classes, Policy& policy, Diagnostics& diagnostics) {
  const auto links = static_cast<LinkIndex>(policy.links.size());
  for (LinkIndex link = 0; link < links; ++link) {
    const auto on_link = [&](const ReadClass& each) { return each.policy.link == link; };
    if (std::any_of(classes.begin(), classes.end(),
                    [&](const ReadClass& each) { return on_link(each) && each.policy.is_default; })) {
      continue;
    }
    for (const ReadClass& each : classes) {
      if (!on_link(each) || each.policy.name != kDefaultClass) continue;
      diagnostics.error(each.position,
                        "the name \"default\" is for what matches nothing: add default = true, or choose "
                        "another name");
    }
    ClassPolicy made;
    made.name = kDefaultClass;
    made.link = link;
    made.is_default = true;
    made.over = Over::count;
    policy.classes.push_back(std::move(made));
  }
}

void read_classes(const TableReader& top, const NameLookup& names, Policy& policy) {
  Diagnostics& diagnostics = top.diagnostics();
  std::vector<std::string> links;
  for (const LinkPolicy& link : policy.links) links.push_back(link.name);
  std::vector<ReadClass> classes;
  for (const Node* node : tables_of(top, "class", kMostClasses)) {
    const TableReader reader(std::get<tree::Table>(node->value), node->position, kClassLevel, diagnostics);
    ReadClass added = read_class(reader, links, names);
    if (added.has_link) check_names(classes, reader, added.policy);
    classes.push_back(std::move(added));
  }
  for (const ReadClass& each : classes) policy.classes.push_back(each.policy);
  if (!diagnostics.ok()) return;
  add_default_classes(classes, policy, diagnostics);
  check_coverage(classes, policy.links, diagnostics);
}

void read_version(const TableReader& top) {
  const Entry* version = top.find("version");
  if (version == nullptr) {
    top.diagnostics().error({}, "\"version\" is missing: a policy begins with version = 1");
  } else if (const auto* number = std::get_if<std::int64_t>(&version->node.value); number == nullptr || *number != 1) {
    top.diagnostics().error(version->node.position, "this version of policies is not known: write version = 1");
  }
}

Policy read_policy(const tree::Table& table, const NameLookup& names, Diagnostics& diagnostics) {
  const TableReader top(table, {}, kTopLevel, diagnostics);
  Policy policy;
  read_version(top);
  policy.max_flows = top.integer("max_flows", kMaxFlows).value_or(kDefaultMaxFlows);
  top.only_false("repair");
  top.only_false("realtime");
  const auto threads = top.integer("threads", {1, 1024});
  if (threads.value_or(1) != 1) top.not_in_this_version("threads", std::to_string(*threads));
  read_links(top, policy);
  read_classes(top, names, policy);
  return policy;
}

std::string toml_text(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      result += "\\u00";
      result += kHex[byte >> 4];
      result += kHex[byte & 0xf];
    } else {
      if (c == '"' || c == '\\') result += '\\';
      result += c;
    }
  }
  return result + "\"";
}

}  // namespace

std::string ConfigError::text() const {
  return where + ":" + std::to_string(line) + ":" + std::to_string(column) + ": " + message;
}

tl::expected<ParsedPolicy, ConfigError> parse_policy(std::string_view text, std::string_view file_name,
                                                     const NameLookup& names) {
  const auto located = [&](const tree::Complaint& complaint) {
    return ConfigError{std::string(file_name), complaint.position.line, complaint.position.column, complaint.message};
  };
  const auto tree = tree::parse(text);
  if (!tree) return tl::unexpected(located(tree.error()));
  if (tree->empty()) {
    return tl::unexpected(located({{}, "this policy is empty: it begins with version = 1 and has a [[link]]"}));
  }
  Diagnostics diagnostics;
  ParsedPolicy result;
  result.policy = read_policy(*tree, names, diagnostics);
  if (!diagnostics.ok()) return tl::unexpected(located(diagnostics.first_error()));
  for (tree::Complaint warning : diagnostics.warnings()) {
    warning.message.insert(0, "warning: ");
    result.warnings.push_back(located(warning).text());
  }
  return result;
}

std::string policy_for_interface(std::string_view interface, std::string_view rate_text) {
  return "version = 1\n\n[[link]]\nname = \"uplink\"\ninterface = " + toml_text(interface) +
         "\n\n[[class]]\nname = \"all\"\nlink = \"uplink\"\ndefault = true\nrate = " + toml_text(rate_text) + "\n";
}

}  // namespace shaper
