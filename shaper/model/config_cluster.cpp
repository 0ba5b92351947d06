// Limits over several hosts: the table [cluster], and what such a limit has beside the keys of every limit.
#include <algorithm>
#include <array>

#include "shaper/model/config_parts.h"
#include "shaper/model/plain_text.h"

namespace shaper {
namespace {

constexpr Range<std::uint32_t> kHosts{1, 100'000};
constexpr Nanos kShortestInterval = std::chrono::milliseconds{10};
constexpr Nanos kLongestInterval = std::chrono::milliseconds{500};  // above, slow limits starve hosts

constexpr std::array kWithoutRedisWords{Word<WithoutRedis>{"reject", WithoutRedis::reject},
                                        Word<WithoutRedis>{"allow", WithoutRedis::allow},
                                        Word<WithoutRedis>{"degrade", WithoutRedis::degrade}};

constexpr std::array kStrategyWords{Word<Strategy>{strategy_name(Strategy::grants), Strategy::grants},
                                    Word<Strategy>{strategy_name(Strategy::remote), Strategy::remote},
                                    Word<Strategy>{strategy_name(Strategy::poll), Strategy::poll},
                                    Word<Strategy>{strategy_name(Strategy::push), Strategy::push}};

constexpr std::array<std::string_view, 6> kKeysOfClusterLimits{"without_redis", "reserve",  "observe",
                                                               "local_rate",    "strategy", "max_rate"};

/// The server behind a URL as `HOST:PORT` or a path; complains where it is neither.
std::string read_server(const TableReader& reader, const NamedThing& url) {
  std::string_view text = url.name;
  const auto refuse = [&](std::string message) {
    reader.diagnostics().error(url.position, std::move(message));
    return std::string();
  };
  if (text.starts_with("rediss://")) {
    return refuse("TLS is not spoken here: name a unix socket or redis://, with a tunnel (stunnel) that speaks it");
  }
  if (text.starts_with("unix://")) text.remove_prefix(7);
  if (text.starts_with('/')) return std::string(text);
  if (text.starts_with("redis://")) text.remove_prefix(8);
  const std::size_t colon = text.rfind(':');
  const auto port =
      colon == std::string_view::npos ? std::nullopt : parse_number<std::uint16_t>(text.substr(colon + 1));
  const std::string_view host = text.substr(0, std::min(colon, text.size()));
  const bool bare_ipv6 = host.find(':') != std::string_view::npos && !host.starts_with('[');
  if (!port || *port == 0 || host.empty() || bare_ipv6 || host.find_first_of(" /@") != std::string_view::npos) {
    return refuse("a Redis is \"redis://HOST:PORT\", \"redis://[ADDRESS]:PORT\" or \"unix:///PATH\"");
  }
  return std::string(text);
}

}  // namespace

std::optional<ClusterPolicy> read_cluster(const TableReader& top) {
  const tree::Entry* entry = top.find("cluster");
  if (entry == nullptr) return std::nullopt;
  const auto* table = std::get_if<tree::Table>(&entry->node.value);
  if (table == nullptr) {
    top.diagnostics().error(entry->node.position, "\"cluster\" must be one table: [cluster]");
    return std::nullopt;
  }
  const TableReader reader(*table, entry->node.position, kClusterLevel, top.diagnostics());
  ClusterPolicy cluster;
  reader.require("redis");
  const std::vector<NamedThing> servers = reader.names("redis");
  if (servers.size() > 1) reader.not_in_this_version("redis", "several servers");
  if (!servers.empty()) cluster.redis = read_server(reader, servers.front());
  cluster.host = reader.text("host").value_or("");
  if (!cluster.host.empty() && !is_plain_name(cluster.host)) {
    reader.diagnostics().error(reader.position_of("host"), "a host's name has 1 to 32 characters of A-Z a-z 0-9 . _ -");
  }
  cluster.hosts = reader.integer("hosts", kHosts).value_or(0);
  cluster.interval = reader.time("interval").value_or(cluster.interval);
  if (cluster.interval < kShortestInterval || cluster.interval > kLongestInterval) {
    reader.diagnostics().error(reader.position_of("interval"), "\"interval\" must be between 10ms and 500ms");
  }
  cluster.user = reader.text("user").value_or("");
  cluster.password_file = reader.text("password_file").value_or("");
  if (!cluster.user.empty() && cluster.password_file.empty()) {
    reader.diagnostics().error(reader.position_of("user"), "a user needs a \"password_file\"");
  }
  return cluster;
}

ClusterRule read_cluster_rule(const TableReader& reader, const LimitPolicy& limit) {
  ClusterRule rule;
  if (limit.scope != Scope::cluster) {
    for (const std::string_view key : kKeysOfClusterLimits) {
      if (reader.find(key) == nullptr) continue;
      reader.diagnostics().error(reader.position_of(key), "only a limit with scope = \"cluster\" has this key");
    }
    return rule;
  }
  rule.strategy = reader.word<Strategy>("strategy", kStrategyWords).value_or(rule.strategy);
  rule.without_redis = reader.word<WithoutRedis>("without_redis", kWithoutRedisWords).value_or(rule.without_redis);
  rule.reserve = reader.boolean("reserve").value_or(false);
  rule.observe = reader.boolean("observe").value_or(false);
  if (rule.observe && rule.strategy != Strategy::grants) {
    reader.diagnostics().error(reader.position_of("observe"),
                               "what is observed is what \"grants\" would do: leave \"strategy\" out");
  }
  rule.local_rate = reader.rate("local_rate");
  rule.max_rate = reader.rate("max_rate");
  return rule;
}

}  // namespace shaper
