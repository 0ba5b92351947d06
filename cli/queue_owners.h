// Whose the kernel queues are that the daemon would have taken. The kernel tells the netlink port of an owner only; its
// process is looked for among those that have that socket open.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shaper::cli {

/// One line for each other program that has queues from kFirstQueue to `last`. `own` is a queue of ours, if we have
/// one. Nothing without the permission to read the kernel's table.
[[nodiscard]] std::vector<std::string> queues_of_others(std::uint16_t last, std::optional<std::uint16_t> own);

}  // namespace shaper::cli
