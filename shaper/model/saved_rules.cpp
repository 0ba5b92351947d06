#include "shaper/model/saved_rules.h"

#include <sstream>

namespace shaper {
namespace {

bool is_our_chain(std::string_view name) {
  return contains(kOurChains, name);
}

/// Calls visit(table, line) for each line; the table is empty before the first one.
void for_each_line(std::string_view saved, auto&& visit) {
  std::string table;
  std::istringstream lines{std::string{saved}};
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('*')) table = line.substr(1);
    visit(table, line);
  }
}

/// The lines of the table `mangle`, of a text that may hold others.
std::vector<std::string> mangle_lines(std::string_view saved) {
  std::vector<std::string> mangle;
  for_each_line(saved, [&](const std::string& table, const std::string& line) {
    if (table == "mangle") mangle.push_back(line);
  });
  return mangle;
}

/// Of "# Table `filter' is incompatible, use 'nft' tool.", as iptables-nft-save says: filter.
std::string incompatible_table(std::string_view line) {
  constexpr std::string_view kBegin = "# Table `";
  constexpr std::string_view kEnd = "' is incompatible";
  const std::size_t end = line.find(kEnd);
  if (!line.starts_with(kBegin) || end == std::string_view::npos) return "";
  return std::string{line.substr(kBegin.size(), end - kBegin.size())};
}

/// A rule that is not ours and leads to nothing of ours, or a policy to drop.
bool is_foreign(std::string_view line) {
  if (line.starts_with("-A ")) return !is_our_chain(word_at(line, 3)) && !is_our_chain(target_of(line));
  return line.starts_with(':') && line.find(" DROP [") != std::string_view::npos;
}

}  // namespace

std::string_view word_at(std::string_view line, std::size_t from) {
  return from < line.size() ? line.substr(from, line.find(' ', from) - from) : std::string_view{};
}

/// Quoted text is skipped: a comment may well contain "-j shaper-out".
std::string_view target_of(std::string_view rule) {
  std::string_view target;
  bool quoted = false;
  for (std::size_t i = 0; i < rule.size(); ++i) {
    if (quoted && rule[i] == '\\') {
      ++i;
    } else if (rule[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && (rule.substr(i).starts_with(" -j ") || rule.substr(i).starts_with(" -g "))) {
      target = word_at(rule, i + 4);
    }
  }
  return target;
}

SavedRules read_saved_rules(std::string_view saved) {
  SavedRules found;
  std::vector<std::string> jumped;  // chains that had a jump of ours already
  for (const std::string& line : mangle_lines(saved)) {
    if (line.starts_with(':') && is_our_chain(word_at(line, 1))) found.ours.chains.emplace_back(word_at(line, 1));
    if (line.starts_with(':') && !line.ends_with(" [0:0]")) found.counted.push_back(line);
    if (!line.starts_with("-A ")) continue;
    const std::string_view chain = word_at(line, 3);
    if (is_our_chain(chain)) {
      found.ours.rules.push_back(line);
    } else if (is_our_chain(target_of(line))) {
      found.ours.jumps.push_back(line);
      jumped.emplace_back(chain);
    } else if (contains(jumped, chain)) {
      found.behind.push_back(line);
    }
  }
  // The order of chains depends on the back end; only that of the rules inside one counts. A policy's are sorted alike.
  std::ranges::sort(found.ours.chains);
  std::ranges::stable_sort(found.ours.rules, {}, [](const std::string& rule) { return word_at(rule, 3); });
  std::ranges::sort(found.ours.jumps);
  return found;
}

std::vector<std::string> foreign_tables(std::string_view saved) {
  std::vector<std::string> tables;
  for_each_line(saved, [&](const std::string& table, const std::string& line) {
    std::string found = is_foreign(line) ? table : incompatible_table(line);
    if (!found.empty() && !contains(tables, found)) tables.push_back(std::move(found));
  });
  std::ranges::sort(tables);
  return tables;
}

ForeignChains foreign_chains(std::string_view saved) {
  ForeignChains chains;
  for (const std::string& line : mangle_lines(saved)) {
    if (!line.starts_with("-A ")) continue;
    const std::string_view chain = word_at(line, 3);
    if (!is_our_chain(chain)) chains[std::string{chain}].push_back(line);
  }
  return chains;
}

}  // namespace shaper
