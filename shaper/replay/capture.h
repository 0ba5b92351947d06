// A capture file (pcap or pcapng), packet by packet.
//
// Time stamps are nanoseconds since the Unix epoch, whatever precision the file has. Frames that carry no IP are left
// out and counted. The file is read as it comes; it may be larger than memory.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <tl/expected.hpp>

#include "shaper/core/units.h"
#include "shaper/replay/frame.h"

struct pcap;

namespace shaper {

class Capture {
 public:
  /// Regular files only. The error is one line with the path in it.
  [[nodiscard]] static tl::expected<Capture, std::string> open(const std::string& path);

  /// Reads from an open file, which it closes. `path` is for messages.
  [[nodiscard]] static tl::expected<Capture, std::string> read(std::FILE* file, const std::string& path);

  struct Item {
    Nanos time{0};
    IpPacket ip;  ///< valid until the next call
  };

  /// The next IP packet; nothing at the end; an error if the file is damaged from here on.
  [[nodiscard]] tl::expected<std::optional<Item>, std::string> next();

  [[nodiscard]] std::uint64_t other_frames() const { return other_frames_; }

  /// How much of the file is read, 0 to 100.
  [[nodiscard]] int percent() const;

 private:
  struct Close {
    void operator()(pcap* handle) const;
  };
  Capture(std::unique_ptr<pcap, Close> handle, std::string path);

  std::unique_ptr<pcap, Close> handle_;
  std::string path_;
  int link_type_;
  std::int64_t file_bytes_ = 0;
  std::uint64_t frames_ = 0;
  std::uint64_t other_frames_ = 0;
};

}  // namespace shaper
