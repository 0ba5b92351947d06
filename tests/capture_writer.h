// Captures written byte by byte: packets, frames around them, and the files.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace shaper::captures {

using Bytes = std::string;

inline Bytes number(std::uint64_t value, int bytes, bool big_endian = true) {
  Bytes text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> 8 * (big_endian ? bytes - 1 - i : i));
  return text;
}

inline Bytes zeros(std::size_t count) {
  return Bytes(count, '\0');
}

inline Bytes udp(std::size_t payload) {
  return number(40'000, 2) + number(9, 2) + number(8 + payload, 2) + number(0, 2) + zeros(payload);
}

struct Ipv4 {
  Bytes options;               ///< whole words
  std::uint16_t fragment = 0;  ///< flags and offset
  int length = -1;             ///< in the header; -1: the true one
};

inline Bytes ipv4(const Bytes& payload, const Ipv4& odd = {}) {
  const std::size_t header = 20 + odd.options.size();
  const std::uint64_t length = odd.length < 0 ? header + payload.size() : static_cast<std::uint64_t>(odd.length);
  return number(0x40 | header / 4, 1) + number(0, 1) + number(length, 2) + number(1, 2) + number(odd.fragment, 2) +
         number(64, 1) + number(17, 1) + number(0, 2) + number(0x0a000001, 4) + number(0x0a000002, 4) + odd.options +
         payload;
}

/// `next` is the protocol of what `payload` begins with.
inline Bytes ipv6(int next, const Bytes& payload) {
  const Bytes network = number(0x20010db8, 4) + zeros(11);
  return number(6 << 28, 4) + number(payload.size(), 2) + number(static_cast<std::uint64_t>(next), 1) + number(64, 1) +
         network + number(1, 1) + network + number(2, 1) + payload;
}

inline Bytes ethernet(const Bytes& packet, const Bytes& tags = {}, std::size_t padding = 0) {
  return zeros(12) + tags + number(packet[0] >> 4 == 6 ? 0x86dd : 0x0800, 2) + packet + zeros(padding);
}

struct Record {
  Bytes captured;
  std::uint64_t time = 0;  ///< in the file's units, since 2023-11-14 22:13:20
  std::size_t length = 0;  ///< on the wire; 0: what was captured
  std::uint32_t interface = 0;
};

inline constexpr std::uint64_t kFirstSecond = 1'700'000'000;

struct Format {
  bool big_endian = false;
  bool nanoseconds = false;
};

/// `link_type` is a LINKTYPE_* of pcap-linktype(7).
inline Bytes pcap(std::uint32_t link_type, const std::vector<Record>& records, Format format = {}) {
  const auto put = [&](std::uint64_t value, int bytes) { return number(value, bytes, format.big_endian); };
  const std::uint64_t units = format.nanoseconds ? 1'000'000'000 : 1'000'000;
  Bytes file = put(format.nanoseconds ? 0xa1b23c4d : 0xa1b2c3d4, 4) + put(2, 2) + put(4, 2) + zeros(8) +
               put(262'144, 4) + put(link_type, 4);
  for (const Record& record : records) {
    file += put(kFirstSecond + record.time / units, 4) + put(record.time % units, 4) + put(record.captured.size(), 4) +
            put(record.length == 0 ? record.captured.size() : record.length, 4) + record.captured;
  }
  return file;
}

/// An interface of a pcapng file: its link type, and its time stamps' unit as a negative power of ten.
using Interface = std::pair<std::uint32_t, std::uint32_t>;

inline Bytes pcapng(const std::vector<Interface>& interfaces, const std::vector<Record>& records,
                    bool big_endian = false) {
  const auto put = [&](std::uint64_t value, int bytes) { return number(value, bytes, big_endian); };
  const auto block = [&](std::uint32_t type, Bytes body) {
    body.resize((body.size() + 3) / 4 * 4);
    const Bytes length = put(body.size() + 12, 4);
    return put(type, 4) + length + body + length;
  };
  Bytes file = block(0x0a0d0d0a, put(0x1a2b3c4d, 4) + put(1, 2) + put(0, 2) + Bytes(8, '\xff'));
  for (const auto& [link_type, power] : interfaces) {
    const Bytes resolution = put(9, 2) + put(1, 2) + number(power, 1) + zeros(3);
    file += block(1, put(link_type, 2) + put(0, 2) + put(262'144, 4) + resolution + zeros(4));
  }
  for (const Record& record : records) {
    std::uint64_t units = 1;
    for (std::uint32_t i = 0; i < interfaces.at(record.interface).second; ++i) units *= 10;
    const std::uint64_t time = kFirstSecond * units + record.time;
    file += block(6, put(record.interface, 4) + put(time >> 32, 4) + put(time & 0xffffffff, 4) +
                         put(record.captured.size(), 4) +
                         put(record.length == 0 ? record.captured.size() : record.length, 4) + record.captured);
  }
  return file;
}

}  // namespace shaper::captures
