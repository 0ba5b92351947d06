#include "shaper/live/name_lookup.h"

#include <grp.h>
#include <pwd.h>

#include <cerrno>
#include <vector>

namespace shaper {
namespace {

/// What one of the calls get..._r() finds, by as much memory as it wants. They may be called in any thread.
template <typename Entry, typename Call>
std::optional<Entry> find(Call&& call, std::vector<char>& memory) {
  constexpr std::size_t kFirst = 1024;
  constexpr std::size_t kMost = 1024 * 1024;  // a group with very many members
  for (std::size_t size = kFirst; size <= kMost; size *= 2) {
    memory.resize(size);
    Entry entry{};
    Entry* found = nullptr;
    const int error = call(&entry, memory.data(), memory.size(), &found);
    if (error != ERANGE) return found == nullptr ? std::nullopt : std::optional(entry);
  }
  return std::nullopt;
}

}  // namespace

NameLookup system_names() {
  return {[](const std::string& name) -> std::optional<std::uint32_t> {
            std::vector<char> memory;
            const auto entry =
                find<passwd>([&](auto... arguments) { return ::getpwnam_r(name.c_str(), arguments...); }, memory);
            return entry ? std::optional(entry->pw_uid) : std::nullopt;
          },
          [](const std::string& name) -> std::optional<std::uint32_t> {
            std::vector<char> memory;
            const auto entry =
                find<group>([&](auto... arguments) { return ::getgrnam_r(name.c_str(), arguments...); }, memory);
            return entry ? std::optional(entry->gr_gid) : std::nullopt;
          }};
}

std::optional<std::string> user_name(std::uint32_t user) {
  std::vector<char> memory;
  const auto entry = find<passwd>([&](auto... arguments) { return ::getpwuid_r(user, arguments...); }, memory);
  return entry ? std::optional(std::string(entry->pw_name)) : std::nullopt;
}

}  // namespace shaper
