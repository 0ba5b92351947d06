// What the tables of a policy have in common: names, lists of tables, references to one another.
#include "shaper/model/config_parts.h"

#include <algorithm>

namespace shaper {

using tree::Entry;
using tree::Node;

namespace {

std::string unknown_name(std::string_view name, const std::string& what, const NameIndex& index) {
  std::vector<std::string_view> candidates;
  for (const auto& [candidate, position] : index) {
    if (is_plain_name(candidate)) candidates.push_back(candidate);
  }
  std::string message = "no " + what + " has this name: ";
  message += candidates.empty() ? "there is no [[" + what + "]]" : "the nearest is " + nearest(name, candidates);
  return message;
}

}  // namespace

bool is_plain_name(std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  return !name.empty() && name.size() <= 32 && std::all_of(name.begin(), name.end(), plain);
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("-0123456789") == std::string_view::npos;
}

std::string read_name(const TableReader& reader) {
  reader.require("name");
  std::string name = reader.text("name").value_or("");
  if (reader.find("name") != nullptr && !is_plain_name(name)) {
    reader.diagnostics().error(reader.position_of("name"),
                               "a name has 1 to 32 letters, digits, dots, underscores and hyphens");
  }
  return name;
}

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

std::vector<std::uint16_t> read_references(const TableReader& reader, std::string_view key, const NameIndex& index) {
  std::vector<std::uint16_t> positions;
  for (const NamedThing& thing : reader.names(key)) {
    const auto found = index.find(thing.name);
    if (found == index.end()) {
      reader.diagnostics().error(thing.position, unknown_name(thing.name, key == "limits" ? "limit" : "link", index));
      break;  // to look for the nearest of many names for many others takes its time
    }
    positions.push_back(found->second);
  }
  return positions;
}

}  // namespace shaper
