#include "shaper/live/name_lookup.h"

#include <grp.h>
#include <pwd.h>

namespace shaper {

NameLookup system_names() {
  return {[](const std::string& name) -> std::optional<std::uint32_t> {
            const passwd* entry = ::getpwnam(name.c_str());
            if (entry == nullptr) return std::nullopt;
            return entry->pw_uid;
          },
          [](const std::string& name) -> std::optional<std::uint32_t> {
            const group* entry = ::getgrnam(name.c_str());
            if (entry == nullptr) return std::nullopt;
            return entry->gr_gid;
          }};
}

std::optional<std::string> user_name(std::uint32_t user) {
  const passwd* entry = ::getpwuid(user);
  if (entry == nullptr) return std::nullopt;
  return entry->pw_name;
}

}  // namespace shaper
