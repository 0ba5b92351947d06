// The policy as a whole: the top of the file, and its parts put together.
#include "shaper/model/config.h"

#include <bit>

#include "shaper/model/config_parts.h"
#include "shaper/model/units_text.h"

namespace shaper {
namespace {

using tree::Entry;

// A table of flows takes some hundred bytes for each.
constexpr Range<std::uint32_t> kMaxFlows{1, 1U << 24};

void read_version(const TableReader& top) {
  const Entry* version = top.find("version");
  if (version == nullptr) {
    top.diagnostics().error({}, "\"version\" is missing: a policy begins with version = 1");
  } else if (const auto* number = std::get_if<std::int64_t>(&version->node.value); number == nullptr || *number != 1) {
    top.diagnostics().error(version->node.position, "this version of policies is not known: write version = 1");
  }
}

std::uint32_t read_mark_mask(const TableReader& top) {
  const Entry* entry = top.find("mark_mask");
  if (entry == nullptr) return kDefaultMarkMask;
  const auto text = scalar_text(entry->node);
  const auto mask = text ? parse_mark_number(*text) : std::nullopt;
  if (mask && std::has_single_bit(*mask)) return *mask;
  top.diagnostics().error(entry->node.position, "\"mark_mask\" must be exactly one of 32 bits, such as \"0x8000000\"");
  return kDefaultMarkMask;
}

HostPolicy read_host_policy(const TableReader& top, const NameLookup& names) {
  HostPolicy host;
  host.repair = top.boolean("repair").value_or(false);
  if (const auto group = top.text("operators")) {
    host.operators = names.group ? names.group(*group) : std::nullopt;
    if (!host.operators) top.diagnostics().error(top.position_of("operators"), "this group is not known on this host");
  }
  return host;
}

ParsedPolicy read_policy(const tree::Table& table, const NameLookup& names, Diagnostics& diagnostics) {
  const TableReader top(table, {}, kTopLevel, diagnostics);
  ParsedPolicy parsed;
  Policy& policy = parsed.policy;
  read_version(top);
  policy.max_flows = top.integer("max_flows", kMaxFlows).value_or(kDefaultMaxFlows);
  policy.mark_mask = read_mark_mask(top);
  policy.realtime = top.boolean("realtime").value_or(false);
  policy.owners = top.boolean("owners").value_or(false);
  parsed.host = read_host_policy(top, names);
  parsed.host.cluster = read_cluster(top);
  const auto threads = top.integer("threads", {1, 1024});
  if (threads.value_or(1) != 1) top.not_in_this_version("threads", std::to_string(*threads));
  const ReadLinks links = read_links(top);
  const ReadLimits limits = read_limits(top);
  policy.classes = read_classes(top, {links, limits, names, policy.mark_mask});
  policy.links = links.policies;
  policy.limits = limits.policies;
  return parsed;
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
  ParsedPolicy result = read_policy(*tree, names, diagnostics);
  if (!diagnostics.ok()) return tl::unexpected(located(diagnostics.first_error()));
  for (tree::Complaint warning : diagnostics.warnings()) {
    warning.message.insert(0, "warning: ");
    result.warnings.push_back(located(warning).text());
  }
  return result;
}

std::string policy_for_interface(std::string_view interface, std::string_view rate_text) {
  return "version = 1\n\n[[link]]\nname = \"uplink\"\ninterface = " + toml_text(interface) +
         "\nrate = " + toml_text(rate_text) + "\n";
}

}  // namespace shaper
