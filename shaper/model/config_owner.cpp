// The keys of a match that ask who sends. Users and groups come with the packet; for the others see core/owner.h.
#include <algorithm>
#include <utility>

#include "shaper/core/owner.h"
#include "shaper/model/config_parts.h"

namespace shaper {
namespace {

using tree::Node;
using Lookup = std::function<std::optional<std::uint32_t>(const std::string&)>;

// The highest number means "none" to the kernel.
constexpr std::uint32_t kHighestId = 0xfffffffe;
// PID_MAX_LIMIT of linux/threads.h: numbers stay below it.
constexpr std::uint32_t kHighestPid = (1U << 22) - 1;
constexpr std::size_t kLongestName = 255;  // NAME_MAX: of a folder, so of a cgroup
// What is shorter could be the beginning of too many ids.
constexpr std::size_t kShortestIdPrefix = 4;

/// Those of ASCII, and of 0x80 to 0x9f in UTF-8, which terminals obey as well.
bool has_control_character(std::string_view name) {
  unsigned char before = 0;
  return std::any_of(name.begin(), name.end(), [&](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < ' ' || byte == 0x7f || (std::exchange(before, byte) == 0xc2 && byte <= 0x9f);
  });
}

/// What is wrong with any name; empty: nothing.
std::string_view flaw_of(std::string_view name) {
  if (name.empty()) return "is empty";
  if (name.size() > kLongestName) return "is longer than 255 bytes";
  if (has_control_character(name)) return "has a control character";
  return "";
}

class OwnerKeys {
 public:
  explicit OwnerKeys(const TableReader& reader) : reader_(reader) {}

  void ids(std::string_view key, const Lookup& lookup, OwnerMatch& owners) const;
  void cgroups(std::vector<std::string>& paths) const;
  void units(std::vector<std::string>& units) const;
  void processes(std::vector<std::string>& names) const;
  void pids(std::vector<std::uint32_t>& pids) const;
  void containers(std::vector<std::string>& containers) const;

 private:
  void error(const Node& node, std::string message) const {
    reader_.diagnostics().error(node.position, std::move(message));
  }

  /// Calls `read_one` with each name that has no flaw.
  void names(std::string_view key, const std::function<void(const Node&, const std::string&)>& read_one) const {
    reader_.values(key, [&](const Node& node, const std::string& name) {
      const std::string_view flaw = flaw_of(name);
      if (flaw.empty()) return read_one(node, name);
      error(node, "this name in \"" + std::string(key) + "\" " + std::string(flaw));
    });
  }

  const TableReader& reader_;
};

void OwnerKeys::ids(std::string_view key, const Lookup& lookup, OwnerMatch& owners) const {
  reader_.values(key, [&](const Node& node, const std::string& text) {
    if (text == "unknown") {
      owners.unknown = true;
      return;
    }
    if (is_number(text)) {
      const auto range = parse_range<std::uint32_t>(text);
      if (!range || range->first > range->last || range->last > kHighestId) {
        error(node, "\"" + std::string(key) + "\" must be a name, a number or a range such as \"1000-59999\"");
      } else {
        owners.ids.push_back(*range);
      }
      return;
    }
    const auto id = lookup ? lookup(text) : std::nullopt;
    if (!id) return error(node, "this " + std::string(key) + " is not known on this host");
    owners.ids.push_back({*id, *id});
  });
}

void OwnerKeys::cgroups(std::vector<std::string>& paths) const {
  reader_.values("cgroup", [&](const Node& node, const std::string& text) {
    if (text.starts_with("/sys/fs/cgroup")) {
      return error(node, "a cgroup's path begins below /sys/fs/cgroup, as in \"system.slice/backup.service\"");
    }
    std::string_view rest = text;
    if (rest.starts_with('/')) rest.remove_prefix(1);
    if (rest.ends_with('/')) rest.remove_suffix(1);
    if (rest.empty() && text == "/") return paths.push_back("/");
    const std::string path = "/" + std::string(rest);
    for (bool last = false; !last;) {
      const std::size_t slash = rest.find('/');
      const std::string_view part = rest.substr(0, slash);
      const std::string_view flaw = part == "." || part == ".." ? "is relative" : flaw_of(part);
      if (!flaw.empty()) return error(node, "a part of this cgroup's path " + std::string(flaw));
      last = slash == std::string_view::npos;
      if (!last) rest.remove_prefix(slash + 1);
    }
    paths.push_back(path);
  });
}

void OwnerKeys::units(std::vector<std::string>& units) const {
  names("unit", [&](const Node& node, const std::string& name) {
    if (name.find('/') != std::string::npos) {
      error(node, "a unit is one part of a cgroup's path; for a path there is \"cgroup\"");
    } else if (const std::size_t dot = name.rfind('.'); dot == std::string::npos || dot + 1 == name.size()) {
      error(node, "a unit is named with its kind, as \"backup.service\"");
    } else {
      units.push_back(name);
    }
  });
}

void OwnerKeys::processes(std::vector<std::string>& processes) const {
  names("process", [&](const Node& node, const std::string& name) {
    if (name.starts_with('/')) return error(node, "a process is named without its path, as \"ps -o comm\" shows it");
    if (name.size() > kProcessNameBytes) {
      reader_.diagnostics().warning(node.position,
                                    "the kernel keeps 15 bytes of a process's name: only the first 15 "
                                    "of this one are compared");
    }
    processes.push_back(name.substr(0, kProcessNameBytes));
  });
}

void OwnerKeys::pids(std::vector<std::uint32_t>& pids) const {
  reader_.values("pid", [&](const Node& node, const std::string& text) {
    const auto pid = is_number(text) ? parse_number<std::uint32_t>(text) : std::nullopt;
    if (pid && *pid >= 1 && *pid <= kHighestPid) return pids.push_back(*pid);
    error(node, "\"pid\" must be the number of a process, from 1 to " + std::to_string(kHighestPid));
  });
}

void OwnerKeys::containers(std::vector<std::string>& containers) const {
  names("container", [&](const Node& node, const std::string& name) {
    const bool may_be_id = name.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (may_be_id && name.size() < kShortestIdPrefix) {
      return error(node, "many containers may have an id that begins so: write 4 digits of it at least");
    }
    if (name.find('/') != std::string::npos) return error(node, "a container's name has no slash");
    containers.push_back(name);
  });
}

}  // namespace

void read_owner_keys(const TableReader& reader, const NameLookup& names, Match& match) {
  const OwnerKeys keys(reader);
  keys.ids("user", names.user, match.user);
  keys.ids("group", names.group, match.group);
  keys.cgroups(match.cgroup);
  keys.units(match.unit);
  keys.processes(match.process);
  keys.pids(match.pid);
  keys.containers(match.container);
}

}  // namespace shaper
