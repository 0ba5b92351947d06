#include "cli/policy_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "cli/commands.h"
#include "shaper/live/fd.h"
#include "shaper/live/name_lookup.h"
#include "shaper/live/nfqueue.h"
#include "shaper/live/owner_abilities.h"
#include "shaper/model/event_names.h"
#include "shaper/model/owner_keys.h"

namespace shaper::cli {
namespace {

[[noreturn]] void fail(const std::string& path, std::string_view what) {
  throw CommandError(ExitCode::failed, fmt::format("{}: {}", path, what));
}

}  // namespace

std::string read_file(const std::string& path, std::size_t most) {
  // Not blocking: a FIFO without a writer must not hang us before we see what it is.
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) fail(path, std::strerror(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) fail(path, "not a regular file");
  if (static_cast<std::uint64_t>(status.st_size) > most) fail(path, fmt::format("larger than {} bytes", most));
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t length = 0;
  while (length < text.size()) {
    const ssize_t count = ::read(file.get(), text.data() + length, text.size() - length);
    if (count < 0) fail(path, std::strerror(errno));
    if (count == 0) break;
    length += static_cast<std::size_t>(count);
  }
  text.resize(length);
  return text;
}

LoadedPolicy load_policy(const std::string& path) {
  return check_policy(read_file(path, kLargestPolicy), path);
}

LoadedPolicy check_policy(const std::string& text, const std::string& name) {
  LoadedPolicy loaded{name, text, {}, {}, {}};
  const auto parsed = parse_policy(text, name, recording_lookup(system_names(), loaded.names));
  if (!parsed) throw PolicyError(parsed.error().text());
  for (const std::string& warning : parsed->warnings) std::fputs((warning + "\n").c_str(), stderr);
  loaded.policy = parsed->policy;
  loaded.host = parsed->host;
  return loaded;
}

void warn_of_owners(const Policy& policy) {
  if (!needs_owners(policy)) return;
  for (const std::string& limit : probe_permission() ? owner_limits() : kernel_owner_limits()) {
    std::fputs(fmt::format("warning: {}\n", limit).c_str(), stderr);
  }
}

}  // namespace shaper::cli
