// Reading netlink messages of the kernel without trust in what they claim: nothing is read past the bytes that came,
// and nothing is taken to be aligned.
#pragma once

#include <linux/netlink.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace shaper::netlink {

using Bytes = std::span<const std::uint8_t>;

/// The wire structure at the start of `bytes`, which must be long enough.
template <typename Wire>
[[nodiscard]] Wire read(Bytes bytes) {
  Wire value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

/// Up to `size` bytes from the start.
[[nodiscard]] inline Bytes first(Bytes bytes, std::size_t size) {
  return bytes.first(std::min(size, bytes.size()));
}

/// What is left behind `size` bytes and the padding that follows them.
[[nodiscard]] inline Bytes behind(Bytes bytes, std::size_t size) {
  constexpr std::size_t kAlign = 4;  // of messages and attributes
  return bytes.subspan(std::min((size + kAlign - 1) / kAlign * kAlign, bytes.size()));
}

/// Calls visit(type, what is there of the value, length that it claims) for each attribute.
template <typename Visit>
void for_each_attribute(Bytes bytes, Visit&& visit) {
  while (bytes.size() >= sizeof(nlattr)) {
    const auto header = read<nlattr>(bytes);
    if (header.nla_len < sizeof header) return;
    const std::size_t claimed = header.nla_len - sizeof header;
    visit(header.nla_type & NLA_TYPE_MASK, first(bytes.subspan(sizeof header), claimed), claimed);
    bytes = behind(bytes, header.nla_len);
  }
}

/// Calls visit(type, body) for each message of a datagram while it returns true; false: it did not once.
template <typename Visit>
bool for_each_message(Bytes bytes, Visit&& visit) {
  while (bytes.size() >= sizeof(nlmsghdr)) {
    const auto header = read<nlmsghdr>(bytes);
    if (header.nlmsg_len < sizeof header) return true;
    if (!visit(header.nlmsg_type, first(bytes, header.nlmsg_len).subspan(sizeof header))) return false;
    bytes = behind(bytes, header.nlmsg_len);
  }
  return true;
}

}  // namespace shaper::netlink
