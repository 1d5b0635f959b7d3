// Philox 4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): a counter-based generator.
//
// Key: the 64-bit seed. Counter: (position, purpose, choice, 0). The same four numbers give the same word on every
// machine, whatever was drawn before.
#pragma once

#include <array>
#include <cstdint>

namespace troupe {

using PhiloxBlock = std::array<std::uint32_t, 4>;

inline PhiloxBlock philox(PhiloxBlock counter, std::uint64_t seed) {
  std::uint32_t key0 = static_cast<std::uint32_t>(seed), key1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key0, static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key1, static_cast<std::uint32_t>(a)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

enum class RandomPurpose : std::uint32_t { draw = 0, xtc = 1 };

// Uniform in [0, 1), a multiple of 2^-24.
inline float uniform(std::uint64_t seed, std::uint32_t position, RandomPurpose purpose, std::uint32_t choice = 0) {
  const PhiloxBlock block = philox({position, static_cast<std::uint32_t>(purpose), choice, 0}, seed);
  return static_cast<float>(block[0] >> 8) * 0x1p-24f;
}

}  // namespace troupe
