// What `shaper down` needs to know when no daemon is left to ask: data, never commands.
//
// A text file of `key = value` lines, 0600, replaced as a whole so that a crash leaves the old one or the new one. A
// record of this boot and this network namespace means that the last daemon ended without `down`, which removes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "shaper/live/iptables.h"
#include "shaper/model/rules.h"

namespace shaper {

struct UndoRecord {
  std::string boot;                ///< boot_id() at that time
  std::uint64_t cookie = 0;        ///< of the network namespace
  Backend backend = Backend::nft;  ///< never host
  std::vector<QueuePair> queues;
  std::string policy_file;  ///< absolute path; empty: a policy made on the spot

  /// The daemon that wrote it ended without `down`, here and since this boot.
  [[nodiscard]] bool tells_of_a_crash(std::string_view this_boot, std::uint64_t this_cookie) const {
    return boot == this_boot && cookie == this_cookie;
  }
  friend bool operator==(const UndoRecord&, const UndoRecord&) = default;
};

[[nodiscard]] std::string format_undo_record(const UndoRecord& record);

/// Keys that it does not know are passed over. Error: one line, with the number of the line in the record.
[[nodiscard]] tl::expected<UndoRecord, std::string> parse_undo_record(std::string_view text);

/// The kernel's name for this boot; empty if it does not tell.
[[nodiscard]] std::string boot_id();

/// Writes the record, then puts it in the place of the old one. Error: one line.
[[nodiscard]] tl::expected<void, std::string> write_undo_record(const std::string& path, const UndoRecord& record);

/// Nothing if there is none. Error, to be reported and lived with: it cannot be read, is not ours, or is broken.
[[nodiscard]] tl::expected<std::optional<UndoRecord>, std::string> read_undo_record(const std::string& path);

}  // namespace shaper
