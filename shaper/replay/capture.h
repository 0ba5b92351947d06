// A capture file (pcap or pcapng), packet by packet.
//
// Time stamps are nanoseconds since the Unix epoch, whatever precision the file has. The file is read as it comes; it
// may be larger than memory, or a pipe. Where it ends inside a packet, what stands before that counts.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tl/expected.hpp>

#include "shaper/core/units.h"
#include "shaper/replay/input.h"

struct pcap;

namespace shaper {

class Capture {
 public:
  /// `path` is for messages. The error is one line with the path in it.
  [[nodiscard]] static tl::expected<Capture, std::string> read(InputFile file, const std::string& path);

  /// A packet as it was captured, with its link's header.
  struct Frame {
    std::uint64_t number = 0;  ///< counted from 1
    Nanos time{0};
    std::span<const std::uint8_t> captured;  ///< valid until the next call
    std::uint32_t bytes = 0;                 ///< its length on the wire
  };

  /// The next packet; nothing at the end; an error if the file is damaged from here on.
  [[nodiscard]] tl::expected<std::optional<Frame>, std::string> next();

  /// DLT_*, one that is_known_link_type().
  [[nodiscard]] int link_type() const { return link_type_; }

  /// Whether the end was in the middle of a packet.
  [[nodiscard]] bool cut_short() const { return cut_short_; }

  /// How much of the file is read, 0 to 100; nothing for a pipe.
  [[nodiscard]] std::optional<int> percent() const;

 private:
  struct Close {
    void operator()(pcap* handle) const;
  };
  Capture(std::unique_ptr<pcap, Close> handle, std::string path);

  std::unique_ptr<pcap, Close> handle_;
  std::string path_;
  int link_type_;
  std::int64_t file_bytes_ = 0;  // zero: not known
  std::uint64_t frames_ = 0;
  bool cut_short_ = false;
};

}  // namespace shaper
