// Policy text (TOML) into a Policy, or an error with its place: docs/configuration.md is the reference.
//
// Pure: no file is opened and no user looked up here; the caller gives the text and the look-ups. Nothing is guessed:
// unknown keys, missing units and classes that can never match are errors. A message quotes keys, quantities and
// checked names, nothing else of the text: the file may be the wrong one, and a secret one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "shaper/core/policy.h"

namespace shaper {

/// Ids of user and group names. An absent function knows no name: a policy with names is refused.
struct NameLookup {
  std::function<std::optional<std::uint32_t>(const std::string&)> user;
  std::function<std::optional<std::uint32_t>(const std::string&)> group;
};

/// What is wrong with a policy; line and column count from 1.
struct ConfigError {
  std::string where;  ///< the file
  int line = 1;
  int column = 1;
  std::string message;

  /// "file:line:column: message"
  [[nodiscard]] std::string text() const;
};

/// `[cluster]`: where limits over several hosts are kept together.
struct ClusterPolicy {
  std::string redis;        ///< `HOST:PORT`, `[ADDRESS]:PORT` or the path of a unix socket
  std::string host;         ///< this host's name in the cluster; empty: made of machine and network namespace
  std::uint32_t hosts = 0;  ///< how many there are; 0: as many as were seen
  Nanos interval = std::chrono::milliseconds{40};  ///< how often a busy limit asks, at least
  std::string user;                                ///< of Redis; empty: the default one
  std::string password_file;                       ///< empty: none is needed

  friend bool operator==(const ClusterPolicy&, const ClusterPolicy&) = default;
};

/// What a policy says of the host and not of packets.
struct HostPolicy {
  bool repair = false;                     ///< rules of ours that are gone are put back
  std::optional<std::uint32_t> operators;  ///< the group whose members may change what is shaped, beside root
  std::optional<ClusterPolicy> cluster;

  friend bool operator==(const HostPolicy&, const HostPolicy&) = default;
};

struct ParsedPolicy {
  Policy policy;
  HostPolicy host;
  std::vector<std::string> warnings;  ///< "file:line:column: warning: message", in file order
};

/// Reads a policy. Of several errors the one that stands first in the file is told. The result is what the core trusts:
/// names unique in their link, exactly one default class for each link (made up, named "default", where the file has
/// none: it shares a link that has a rate, and only counts on one that has none).
[[nodiscard]] tl::expected<ParsedPolicy, ConfigError> parse_policy(std::string_view text, std::string_view file_name,
                                                                   const NameLookup& names = {});

/// The policy for one interface and one total rate, as a file that can be kept. The arguments are not checked here:
/// parse_policy() does that.
[[nodiscard]] std::string policy_for_interface(std::string_view interface, std::string_view rate_text);

}  // namespace shaper
