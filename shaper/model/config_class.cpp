// One class of a policy: what its table says, on each link that it names.
#include <algorithm>
#include <array>

#include "shaper/model/config_parts.h"
#include "shaper/model/units_text.h"

namespace shaper {
namespace {

using tree::Entry;

constexpr Nanos kLongestDelay = std::chrono::hours{1};
// A packet looks at each of them.
constexpr std::size_t kMostLimitsOfAClass = 64;
constexpr std::string_view kCeilIsLink = "link";

constexpr std::array kOverWords{Word<Over>{"delay", Over::delay}, Word<Over>{"drop", Over::drop},
                                Word<Over>{"count", Over::count}};
constexpr std::array kFairWords{Word<Fair>{"host", Fair::host},     Word<Fair>{"flow", Fair::flow},
                                Word<Fair>{"source", Fair::source}, Word<Fair>{"destination", Fair::destination},
                                Word<Fair>{"user", Fair::user},     Word<Fair>{"off", Fair::off}};

std::optional<Each> read_each(const TableReader& owner) {
  const Entry* entry = owner.find("each");
  if (entry == nullptr) return std::nullopt;
  const auto* table = std::get_if<tree::Table>(&entry->node.value);
  if (table == nullptr) {
    owner.diagnostics().error(entry->node.position,
                              "\"each\" must be a table such as { by = \"flow\", rate = \"2mbit\" }");
    return std::nullopt;
  }
  const TableReader reader(*table, entry->node.position, kEachLevel, owner.diagnostics());
  reader.require("by");
  reader.require("rate");
  Each each{read_by(reader), {}, reader.burst("burst").value_or(kDefaultBurst)};
  const auto rate = reader.rate("rate");
  if (!rate) return std::nullopt;
  each.rate = *rate;
  return each;
}

void read_rates(const TableReader& reader, ClassPolicy& policy) {
  policy.rate = reader.rate("rate");
  const Entry* ceil = reader.find("ceil");
  policy.ceil_is_link = ceil != nullptr && scalar_text(ceil->node) == kCeilIsLink;
  if (!policy.ceil_is_link) policy.ceil = reader.rate("ceil");
  if (policy.rate && policy.ceil && *policy.rate > *policy.ceil) {
    reader.diagnostics().error(reader.position_of("rate"), "the rate, " + format_rate(*policy.rate) +
                                                               ", is above the ceil, " + format_rate(*policy.ceil));
  }
}

/// Whether a rate or a ceil of its own is written, sound or not.
bool names_a_rate(const TableReader& reader, const ClassPolicy& policy) {
  return reader.find("rate") != nullptr || (reader.find("ceil") != nullptr && !policy.ceil_is_link);
}

/// A leaky class is a bucket that saves nothing, with a bound on what waits for it.
void read_leaky(const TableReader& reader, ClassPolicy& policy) {
  const auto error = [&](std::string_view key, std::string message) {
    if (reader.find(key) != nullptr) reader.diagnostics().error(reader.position_of(key), std::move(message));
  };
  policy.burst = kLeakySlack;
  error("burst", "a leaky class has no burst: its packets leave evenly spaced");
  if (policy.over != Over::delay) {
    error("over", "a leaky class spaces packets by holding them: over = \"delay\" is the only way for it");
  }
  if (policy.ceil_is_link || !names_a_rate(reader, policy)) {
    error("discipline", "a leaky class spaces its packets at a rate: it needs a \"rate\" or a \"ceil\" of its own");
  }
  const auto capacity = reader.size("capacity");
  if (!capacity) return;
  if (policy.backlog) error("capacity", "\"capacity\" and \"backlog\" say the same: write one of them");
  policy.backlog = capacity;
}

void read_token(const TableReader& reader, ClassPolicy& policy) {
  Diagnostics& diagnostics = reader.diagnostics();
  policy.burst = reader.burst("burst").value_or(kDefaultBurst);
  if (reader.find("burst") != nullptr && !names_a_rate(reader, policy)) {
    diagnostics.warning(reader.position_of("burst"), "this burst does nothing: there is no rate and no ceil");
  }
  if (const Entry* capacity = reader.find("capacity")) {
    diagnostics.error(capacity->position,
                      "\"capacity\" is of discipline = \"leaky\": what may wait elsewhere is \"backlog\"");
  }
}

void read_bounds(const TableReader& reader, ClassPolicy& policy) {
  policy.max_delay = reader.time("max_delay");
  if (policy.max_delay && *policy.max_delay > kLongestDelay) {
    reader.diagnostics().error(reader.position_of("max_delay"),
                               "\"max_delay\" may be " + format_time(kLongestDelay) + " at most");
  }
  policy.backlog = reader.size("backlog");
  policy.discipline = reader.word<Discipline>("discipline", kDisciplineWords).value_or(Discipline::token);
  if (policy.discipline == Discipline::leaky) {
    read_leaky(reader, policy);
  } else {
    read_token(reader, policy);
  }
}

}  // namespace

std::vector<ClassPolicy> read_class(const TableReader& reader, const Declared& declared) {
  ClassPolicy policy;
  policy.name = read_name(reader);
  reader.require("link");
  const auto links = read_references(reader, "link", declared.links.index);
  policy.is_default = reader.boolean("default").value_or(false);
  if (const Entry* match = reader.find("match")) {
    policy.match = read_matches(*match, declared, reader.diagnostics());
    if (policy.is_default) {
      reader.diagnostics().error(match->position, "the default class takes what matches nothing: it has no \"match\"");
    }
  }
  policy.over = reader.word<Over>("over", kOverWords).value_or(Over::delay);
  policy.priority = static_cast<std::uint8_t>(
      reader.integer("priority", {0, kPriorities - 1}).value_or(std::uint32_t{kDefaultPriority}));
  read_rates(reader, policy);
  read_bounds(reader, policy);
  policy.each = read_each(reader);
  policy.limits = read_references(reader, "limits", declared.limits.index);
  if (policy.limits.size() > kMostLimitsOfAClass) {
    reader.diagnostics().error(reader.position_of("limits"),
                               "a class has at most " + std::to_string(kMostLimitsOfAClass) + " limits");
  }
  policy.fair = reader.word<Fair>("fair", kFairWords).value_or(Fair::host);
  policy.aqm = reader.boolean("aqm").value_or(true);
  policy.ecn = reader.boolean("ecn").value_or(true);

  std::vector<ClassPolicy> on_links(links.size(), policy);
  for (std::size_t i = 0; i < links.size(); ++i) {
    on_links[i].link = links[i];
    check_class_on_link(reader, on_links[i], declared.links.policies[links[i]]);
  }
  return on_links;
}

}  // namespace shaper
