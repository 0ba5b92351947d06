// The network interfaces of this namespace as they are now: name, index, MTU, up or down, bridges and
// their ports; and which of them changed.
//
// A notification only says that something changed: then all interfaces are read again and compared. So a lost
// notification costs nothing, and an interface that vanishes and returns with another index is seen as changed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct nl_sock;

namespace shaper {

struct LinkFacts {
  std::uint32_t index = 0;
  std::uint32_t mtu = 0;  ///< largest IP packet, bytes
  bool up = false;        ///< set up by the administrator; says nothing of a carrier
  bool bridge = false;
  std::string port_of;  ///< the bridge that it is a port of; empty: none

  friend bool operator==(const LinkFacts&, const LinkFacts&) = default;
};

class LinkWatch {
 public:
  /// Reads all interfaces and asks for notifications. Throws std::runtime_error with the call's name.
  LinkWatch();

  /// Readable when something changed; then call receive().
  [[nodiscard]] int fd() const;

  /// Never waits. Reads what changed and returns the names that appeared, vanished or have other facts now, sorted;
  /// a renamed interface gives both names. Throws nothing: if the kernel does not answer, stale() stays true.
  [[nodiscard]] std::vector<std::string> receive();

  /// Something changed that could not be read. Call receive() again, about once a second.
  [[nodiscard]] bool stale() const { return stale_; }

  [[nodiscard]] std::optional<LinkFacts> find(std::string_view name) const;

  /// Name by index, for what a packet says about its interfaces.
  [[nodiscard]] std::optional<std::string> name_of(std::uint32_t index) const;

 private:
  struct Close {
    void operator()(nl_sock* socket) const;
  };
  using Socket = std::unique_ptr<nl_sock, Close>;
  using Links = std::map<std::string, LinkFacts, std::less<>>;

  static Socket open();
  /// A libnl error code (negative) or 0.
  int read_links(Links& links);

  Socket notifications_;
  Socket questions_;
  Links links_;
  bool stale_ = false;
};

}  // namespace shaper
