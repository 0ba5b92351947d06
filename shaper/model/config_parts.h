// The parts of reading a policy, each in a file of its own: one match table, one class, what a class hides.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "shaper/core/policy.h"
#include "shaper/model/config.h"
#include "shaper/model/policy_reader.h"

namespace shaper {

/// True if `name` is 1 to 32 characters of A-Z a-z 0-9 . _ -: it may stand in rules, on terminals and in reports.
[[nodiscard]] bool is_plain_name(std::string_view name);

/// Reads the value of `match` or `not`: a table or a list of tables.
[[nodiscard]] std::vector<Match> read_matches(const tree::Entry& entry, const NameLookup& names,
                                              Diagnostics& diagnostics);

/// A class and where things of it stand, for the checks that need all classes.
struct ReadClass {
  ClassPolicy policy;
  tree::Position position;
  bool has_link = false;  ///< it names a link that exists
};

/// Reads a class; `links` are the names of all links, in order.
[[nodiscard]] ReadClass read_class(const TableReader& reader, const std::vector<std::string>& links,
                                   const NameLookup& names);

/// Complains about classes that never get a packet because an earlier one takes them all.
void check_coverage(std::span<const ReadClass> classes, std::span<const LinkPolicy> links, Diagnostics& diagnostics);

}  // namespace shaper
