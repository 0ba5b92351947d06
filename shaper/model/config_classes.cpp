// The classes of all links together: names, default classes, and the checks that look at more than one class.
#include <algorithm>
#include <set>

#include "shaper/core/guard.h"
#include "shaper/model/config_parts.h"

namespace shaper {
namespace {

using tree::Node;

// A class on several links counts once for each.
constexpr std::size_t kMostClasses = 16'384;

constexpr std::string_view kDefaultClass = "default";

class ClassCollector {
 public:
  explicit ClassCollector(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  /// Takes what one table says. Complains if a link has the name, or a default class, already.
  void add(const TableReader& reader, std::vector<ClassPolicy> on_links);
  /// Gives each link without a default class one: it measures where the link has no rate, and shares the link else.
  [[nodiscard]] std::vector<ClassPolicy> finish(std::span<const LinkPolicy> links);

  [[nodiscard]] std::span<const ReadClass> classes() const { return classes_; }
  [[nodiscard]] std::size_t room() const { return kMostClasses - classes_.size(); }

 private:
  Diagnostics& diagnostics_;
  std::vector<ReadClass> classes_;
  std::set<std::pair<LinkIndex, std::string>> names_;
  std::set<LinkIndex> with_default_;
};

void ClassCollector::add(const TableReader& reader, std::vector<ClassPolicy> on_links) {
  const bool several = on_links.size() > 1;
  for (ClassPolicy& policy : on_links) {
    if (!names_.emplace(policy.link, policy.name).second && !policy.name.empty()) {
      diagnostics_.error(reader.position_of("name"), "another class of this link has this name already");
    }
    if (policy.is_default && !with_default_.insert(policy.link).second) {
      diagnostics_.error(reader.position_of("default"), "this link has a default class already");
    }
    classes_.push_back({std::move(policy), reader.position(), several});
  }
}

std::vector<ClassPolicy> ClassCollector::finish(std::span<const LinkPolicy> links) {
  std::vector<ClassPolicy> all;
  for (const ReadClass& each : classes_) {
    if (each.policy.name == kDefaultClass && !with_default_.contains(each.policy.link)) {
      diagnostics_.error(each.position,
                         "the name \"default\" is for what matches nothing: add default = true, or choose "
                         "another name");
    }
    if (each.policy.name == kGuardClass && links[each.policy.link].guard) {
      diagnostics_.error(each.position,
                         "the name \"guard\" is for the share of the operator's SSH: choose another name, or switch it "
                         "off by guard = false in the link");
    }
    all.push_back(each.policy);
  }
  const auto count = static_cast<LinkIndex>(links.size());
  for (LinkIndex link = 0; link < count; ++link) {
    if (with_default_.contains(link)) continue;
    ClassPolicy made;
    made.name = kDefaultClass;
    made.link = link;
    made.is_default = true;
    made.over = links[link].rate ? Over::delay : Over::count;
    all.push_back(std::move(made));
  }
  return all;
}

}  // namespace

std::vector<ClassPolicy> read_classes(const TableReader& top, const Declared& declared) {
  Diagnostics& diagnostics = top.diagnostics();
  ClassCollector collector(diagnostics);
  for (const Node* node : tables_of(top, "class", kMostClasses)) {
    const TableReader reader(std::get<tree::Table>(node->value), node->position, kClassLevel, diagnostics);
    std::vector<ClassPolicy> on_links = read_class(reader, declared);
    if (on_links.size() > collector.room()) {
      diagnostics.error(node->position, "a policy has at most " + std::to_string(kMostClasses) +
                                            " classes: one on several links counts for each");
      break;
    }
    collector.add(reader, std::move(on_links));
  }
  if (!diagnostics.ok()) return {};
  std::vector<ClassPolicy> all = collector.finish(declared.links.policies);
  check_coverage(collector.classes(), declared.links.policies, diagnostics);
  warn_of_overcommitted_links(declared.links, all, diagnostics);
  warn_of_unused_limits(declared.limits, all, diagnostics);
  return all;
}

}  // namespace shaper
