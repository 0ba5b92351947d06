// How containers are called: by podman's own list of them, which is there without its service, and by the local socket
// of an engine (docker, podman) where there is one.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "shaper/live/clock.h"
#include "shaper/live/scan_pace.h"

namespace shaper {

/// Names by id, from a list as podman keeps it (`id`, `names`) or an engine answers (`Id`, `Names`); what is none of
/// these is left out.
[[nodiscard]] std::map<std::string, std::string> parse_container_names(std::string_view json);

class ContainerNames {
 public:
  struct Sources {
    std::vector<std::string> engines{"/run/podman/podman.sock", "/var/run/docker.sock"};
    std::vector<std::string> lists{"/var/lib/containers/storage/overlay-containers/containers.json",
                                   "/var/lib/containers/storage/vfs-containers/containers.json"};
  };

  ContainerNames() : ContainerNames(Sources()) {}
  explicit ContainerNames(Sources sources) : sources_(std::move(sources)) {}

  /// The container's name, empty if it has none; nothing: learn() must find out.
  [[nodiscard]] std::optional<std::string> find(const std::string& id) const;

  [[nodiscard]] const ScanPace& pace() const { return pace_; }
  /// Asks for the names of all containers, `wanted` among them; waits for each engine 0.2 s at most.
  void learn(const std::set<std::string>& wanted);

 private:
  Sources sources_;
  std::map<std::string, std::string> names_;
  Instant learnt_{};
  std::set<std::string> unnamed_;  // that were wanted at the latest time
  ScanPace pace_;
};

}  // namespace shaper
