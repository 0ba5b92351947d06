#include "cli/processes.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "shaper/model/plain_text.h"

namespace shaper::cli {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(pid_t process) {
  return fs::path("/proc") / std::to_string(process);
}

/// Processes and descriptors come and go meanwhile.
std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    entries.push_back(entry->path());
  }
  return entries;
}

}  // namespace

std::vector<pid_t> all_processes() {
  std::vector<pid_t> processes;
  for (const fs::path& entry : entries_of("/proc")) {
    if (const auto process = parse_number<pid_t>(entry.filename().string())) processes.push_back(*process);
  }
  return processes;
}

std::string file_of(pid_t process, std::string_view name) {
  std::ifstream file{folder_of(process) / name};
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> sockets_of(pid_t process) {
  constexpr std::string_view kSocket = "socket:[";
  std::vector<std::string> inodes;
  for (const fs::path& entry : entries_of(folder_of(process) / "fd")) {
    std::error_code ignored;
    const std::string target = fs::read_symlink(entry, ignored).string();
    if (target.starts_with(kSocket))
      inodes.push_back(target.substr(kSocket.size(), target.size() - kSocket.size() - 1));
  }
  return inodes;
}

}  // namespace shaper::cli
