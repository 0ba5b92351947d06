// The TCP ports of this host by which people work on it over SSH.
#pragma once

#include <cstdint>
#include <vector>

namespace shaper::cli {

/// Local ports of all sockets that an SSH server of this network namespace listens on or has a session on, and the one
/// that this command was called through: by the SSH_CONNECTION of the nearest ancestor that has one, so sudo, tmux and
/// the like do not hide it. Sorted. What cannot be read is left out.
[[nodiscard]] std::vector<std::uint16_t> ssh_ports();

}  // namespace shaper::cli
