#include "cli/operator_ssh.h"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "cli/processes.h"
#include "shaper/model/plain_text.h"

namespace shaper::cli {
namespace {

// --- The connection that this command was called through -------------------------------------------------------------

/// "192.0.2.1 50000 192.0.2.2 22": the last one is ours.
std::optional<std::uint16_t> port_in(std::string_view environment) {
  constexpr std::string_view kKey = "SSH_CONNECTION=";
  while (!environment.empty()) {
    const std::string_view variable = environment.substr(0, environment.find('\0'));
    environment.remove_prefix(std::min(variable.size() + 1, environment.size()));
    if (variable.starts_with(kKey)) return parse_number<std::uint16_t>(variable.substr(variable.rfind(' ') + 1));
  }
  return std::nullopt;
}

/// The second field behind the process's name, which may hold anything.
pid_t parent_of(pid_t process) {
  const std::string text = file_of(process, "stat");
  std::istringstream fields{text.substr(text.rfind(')') + 1)};
  std::string state;
  pid_t parent = 0;
  fields >> state >> parent;
  return parent;
}

std::optional<std::uint16_t> port_called_through() {
  for (pid_t process = ::getpid(); process > 1; process = parent_of(process)) {
    if (const auto port = port_in(file_of(process, "environ"))) return port;
  }
  return std::nullopt;
}

// --- The sockets of servers -----------------------------------------------------------------------------------------

/// The TCP sockets of this network namespace.
struct Sockets {
  std::map<std::string, std::uint16_t> port;  // local, by inode
  std::set<std::uint16_t> listening;
};

/// Lines of /proc/net/tcp: `sl local_address rem_address st tx:rx tr:tm retrnsmt uid timeout inode …`, numbers in
/// hexadecimal, the port of an address behind its colon.
void add_sockets(const char* path, Sockets& sockets) {
  constexpr std::size_t kLocal = 1;
  constexpr std::size_t kState = 3;
  constexpr std::size_t kInode = 9;
  constexpr std::string_view kListens = "0A";
  std::ifstream file{path};
  std::string line;
  std::getline(file, line);  // the heading
  while (std::getline(file, line)) {
    std::istringstream words{line};
    const std::vector<std::string> field{std::istream_iterator<std::string>(words), {}};
    if (field.size() <= kInode) continue;
    const auto port = parse_number<std::uint16_t>("0x" + field[kLocal].substr(field[kLocal].rfind(':') + 1));
    if (!port) continue;
    sockets.port.emplace(field[kInode], *port);
    if (field[kState] == kListens) sockets.listening.insert(*port);
  }
}

/// Those that somebody listens on: an sshd has other sockets too, of what it forwards.
void add_ports_of(pid_t process, const Sockets& sockets, std::set<std::uint16_t>& ports) {
  for (const std::string& inode : sockets_of(process)) {
    const auto socket = sockets.port.find(inode);
    if (socket != sockets.port.end() && sockets.listening.contains(socket->second)) ports.insert(socket->second);
  }
}

/// OpenSSH, whose sessions are `sshd-session` since 9.8, and Dropbear.
bool is_ssh_server(std::string_view name) {
  return name.starts_with("sshd") || name.starts_with("dropbear");
}

}  // namespace

std::vector<std::uint16_t> ssh_ports() {
  std::set<std::uint16_t> ports;
  if (const auto port = port_called_through()) ports.insert(*port);
  Sockets sockets;
  for (const char* path : {"/proc/net/tcp", "/proc/net/tcp6"}) add_sockets(path, sockets);
  for (const pid_t process : all_processes()) {
    if (is_ssh_server(file_of(process, "comm"))) add_ports_of(process, sockets, ports);
  }
  return {ports.begin(), ports.end()};
}

}  // namespace shaper::cli
