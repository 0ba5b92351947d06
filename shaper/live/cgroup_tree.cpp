#include "shaper/live/cgroup_tree.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "shaper/live/folder.h"
#include "shaper/model/plain_text.h"

namespace shaper {
namespace {

constexpr std::size_t kMostCgroups = 65'536;
constexpr std::size_t kMostGone = 8192;  // that are still known
constexpr std::size_t kLongestList = 1 << 20;

std::string folder_name(const std::string& path) {
  return path == "/" ? "." : path.substr(1);
}

/// cgroup2 as the process of that folder in /proc sees it; none: it does not, or does not let us look.
Fd cgroup2_of(const std::string& process) {
  const auto mount = cgroup2_mount(read_text(AT_FDCWD, (process + "/mountinfo").c_str(), kLongestList));
  if (!mount) return {};
  Fd folder = open_folder(AT_FDCWD, (process + "/root" + *mount).c_str());
  struct statfs kind {};
  if (!folder || ::fstatfs(folder.get(), &kind) != 0 || kind.f_type != CGROUP2_SUPER_MAGIC) return {};
  return folder;
}

/// `ip netns exec` hides what is mounted below /sys: then as the first process sees it that lets us look.
Fd open_cgroup2() {
  constexpr int kMostTried = 4'096;
  Fd folder = cgroup2_of("/proc/self");
  int tried = 0;
  for_each_entry(open_folder(AT_FDCWD, "/proc"), [&](const dirent& entry) {
    const std::string name = entry.d_name;
    if (!folder && parse_number<std::uint32_t>(name)) folder = cgroup2_of("/proc/" + name);
    return !folder && ++tried < kMostTried;
  });
  return folder;
}

}  // namespace

/// A line is `ID PARENT DEVICE ROOT MOUNT OPTIONS … - TYPE SOURCE OPTIONS`.
std::optional<std::string> cgroup2_mount(std::string_view mountinfo) {
  std::optional<std::string> best;
  std::string_view best_root;
  while (!mountinfo.empty()) {
    std::string_view line = take_line(mountinfo);
    const std::size_t type = line.find(" - ");
    if (type == std::string_view::npos || !line.substr(type).starts_with(" - cgroup2 ")) continue;
    for (int i = 0; i < 3; ++i) static_cast<void>(take_word(line));
    const std::string_view root = take_word(line);
    const std::string_view mount = take_word(line);
    if (best && root.size() >= best_root.size()) continue;
    best = mount;
    best_root = root;
  }
  return best;
}

CgroupTree::CgroupTree() : root_(open_cgroup2()) {}

const std::string* CgroupTree::path(std::uint64_t id) const {
  const auto found = known_.find(id);
  return found == known_.end() ? nullptr : &found->second.path;
}

void CgroupTree::visit(std::uint64_t id, const std::string& path) {
  known_.insert_or_assign(id, Known{path, walk_});
  paths_.push_back(path);
}

void CgroupTree::walk() {
  if (!mounted()) return;
  const Instant start = monotonic_now();
  ++walk_;
  paths_.clear();
  struct stat status {};
  if (::fstat(root_.get(), &status) == 0) visit(status.st_ino, "/");
  for (std::size_t at = 0; at < paths_.size() && paths_.size() < kMostCgroups; ++at) {
    const std::string parent = paths_[at];
    for_each_entry(open_folder(root_.get(), folder_name(parent).c_str()), [&](const dirent& entry) {
      if (entry.d_type == DT_DIR) visit(entry.d_ino, (parent == "/" ? "" : parent) + '/' + entry.d_name);
      return paths_.size() < kMostCgroups;
    });
  }
  forget_old();
  const Instant now = monotonic_now();
  pace_.over(now, now - start);
}

void CgroupTree::forget_old() {
  if (known_.size() <= paths_.size() + kMostGone) return;
  std::erase_if(known_, [&](const auto& entry) { return entry.second.walk != walk_; });
}

std::vector<std::uint32_t> CgroupTree::processes(const std::string& path) const {
  std::vector<std::uint32_t> all;
  if (!mounted()) return all;
  const std::string list = read_text(root_.get(), (folder_name(path) + "/cgroup.procs").c_str(), kLongestList);
  for (std::string_view rest = list; !rest.empty();) {
    const auto pid = parse_number<std::uint32_t>(take_line(rest));
    if (pid && *pid != 0) all.push_back(*pid);  // 0: of another pid namespace
  }
  return all;
}

}  // namespace shaper
