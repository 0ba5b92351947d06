// SipHash-1-3 of whole 64-bit words: a keyed hash, so that a stranger who chooses addresses cannot choose where they
// land in our tables. J.-P. Aumasson, D. J. Bernstein: "SipHash: a fast short-input PRF", 2012; one compression and
// three finalization rounds, as hash tables commonly use it.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace shaper {

/// The key of a keyed hash: random where strangers choose addresses, fixed in tests.
using HashKey = std::array<std::uint64_t, 2>;

template <std::size_t kWords>
[[nodiscard]] constexpr std::uint64_t siphash(const std::array<std::uint64_t, kWords>& words, const HashKey& key) {
  std::uint64_t v0 = key[0] ^ 0x736f6d6570736575;
  std::uint64_t v1 = key[1] ^ 0x646f72616e646f6d;
  std::uint64_t v2 = key[0] ^ 0x6c7967656e657261;
  std::uint64_t v3 = key[1] ^ 0x7465646279746573;
  const auto round = [&] {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  };
  const auto absorb = [&](std::uint64_t word) {
    v3 ^= word;
    round();
    v0 ^= word;
  };
  for (const std::uint64_t word : words) absorb(word);
  absorb(static_cast<std::uint64_t>(kWords * 8) << 56);
  v2 ^= 0xff;
  round();
  round();
  round();
  return v0 ^ v1 ^ v2 ^ v3;
}

}  // namespace shaper
