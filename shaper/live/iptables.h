// Brings rules in and out by iptables-save and iptables-restore, of either back end, both families together.
//
// What the text says is decided in model/rules.h; here it is only carried: programs by argument list, a bounded wait
// for the xtables lock, the first family taken back when the second one fails. Errors and notices are one line each.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "shaper/live/child_process.h"
#include "shaper/model/rules.h"

namespace shaper {

/// Which iptables: the one that the host's `iptables` is, or one of the two by name.
enum class Backend : std::uint8_t { host, nft, legacy };

/// "host", "nft", "legacy".
[[nodiscard]] std::string_view name_of(Backend backend);

class Iptables {
 public:
  template <typename T>
  using Expected = tl::expected<T, std::string>;

  /// Asks `iptables --version` about the host's back end. `lock_file` takes the place of /run/xtables.lock where that
  /// cannot be written; empty: the usual one.
  [[nodiscard]] static Expected<Iptables> of(Backend backend, std::string lock_file = "");

  /// nft or legacy.
  [[nodiscard]] Backend backend() const { return backend_; }

  /// `iptables-save -t mangle`; empty where the table does not exist.
  [[nodiscard]] Expected<std::string> save(Family family) const;
  /// One transaction; an empty text does nothing.
  [[nodiscard]] Expected<void> restore(Family family, const std::string& text) const;

  /// Exactly one set of our rules in both families, none in the other back end; on an error, what was before. Returns
  /// notices for the operator: IPv6 left out, leftovers in the other back end, foreign rules that CE lets run twice.
  [[nodiscard]] Expected<std::vector<std::string>> install(const Policy& policy,
                                                           std::span<const QueuePair> queues) const;
  /// None of our rules in any family or back end. Goes on after an error and reports the first one; that the other back
  /// end does not work here is no error.
  [[nodiscard]] Expected<void> remove() const;

  /// The state over both families in this back end; a host without IPv6 counts as IPv4 alone.
  [[nodiscard]] Expected<RulesReport> inspect(const Policy& policy, std::span<const QueuePair> queues) const;

  /// What it means that others have rules in the other back end; nothing: they have none there, or it cannot be looked
  /// at. Asking makes no table.
  [[nodiscard]] std::optional<std::string> mixed() const;

  /// For --dry-run: what install() or remove() would run, changes only, with the full texts. Without the privilege to
  /// read the present rules, as on a host that has none of ours.
  [[nodiscard]] Expected<std::vector<Command>> plan_install(const Policy& policy,
                                                            std::span<const QueuePair> queues) const;
  [[nodiscard]] std::vector<Command> plan_remove() const;

 private:
  struct Step {
    Family family;
    std::string before;
    std::string text;
  };
  /// Of the back end that we do not use, it is no error that it does not work here: then it holds nothing.
  enum class Unreadable : std::uint8_t { is_error, is_empty };

  Iptables(Backend backend, std::string lock_file) : backend_(backend), lock_file_(std::move(lock_file)) {}

  [[nodiscard]] Command restore_command(Family family, std::string text) const;
  [[nodiscard]] Expected<std::vector<Step>> install_steps(const Policy& policy, std::span<const QueuePair> queues,
                                                          std::vector<std::string>& notices) const;
  [[nodiscard]] Expected<void> remove_own(Unreadable unreadable) const;
  [[nodiscard]] std::string take_back(std::span<const Step> done) const;
  [[nodiscard]] bool lacks_ce(const Policy& policy, std::span<const QueuePair> queues, const Step& failed) const;

  Backend backend_;
  std::string lock_file_;
};

}  // namespace shaper
