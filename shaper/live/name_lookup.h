// Users and groups of this host, by the name service.
#pragma once

#include "shaper/model/config.h"
#include "shaper/model/report.h"

namespace shaper {

/// getpwnam(3) and getgrnam(3).
[[nodiscard]] NameLookup system_names();

/// The name of a user, or nothing.
[[nodiscard]] std::optional<std::string> user_name(std::uint32_t user);

}  // namespace shaper
