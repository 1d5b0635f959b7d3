// Q5_0 and Q5_1: as Q4_0 and Q4_1 with a fifth bit: w = d * (q - 16) and w = d * q + m.
// Blocks, 22 and 24 bytes: [d: f16]([m: f16])[high: u32, bit i is bit 4 of element i][16 bytes of nibbles].
// (GGUF tensor types 6 and 7.)
#pragma once

#include "kernels/quant/block_io.h"

namespace troupe::quant {

inline void load_five_bits(const std::byte* high_bits, std::int32_t* q) {
  std::uint32_t high;
  std::memcpy(&high, high_bits, sizeof high);
  const std::byte* nibbles = high_bits + 4;
  for (int i = 0; i < 16; ++i) {
    q[i] = (u8(nibbles[i]) & 15) | static_cast<int>((high >> i) & 1u) << 4;
    q[16 + i] = (u8(nibbles[i]) >> 4) | static_cast<int>((high >> (16 + i)) & 1u) << 4;
  }
}

inline void store_five_bits(const int* q, std::byte* high_bits) {
  std::uint32_t high = 0;
  for (int i = 0; i < 32; ++i) high |= static_cast<std::uint32_t>((q[i] >> 4) & 1) << i;
  std::memcpy(high_bits, &high, sizeof high);
  for (int i = 0; i < 16; ++i) high_bits[4 + i] = static_cast<std::byte>((q[i] & 15) | (q[16 + i] & 15) << 4);
}

struct Q5_0 {
  static constexpr TypeTraits kTraits{DType::q5_0, "Q5_0", 6, 32, 22};
  static constexpr int kTermInputs = 32;
  static constexpr bool kHasMinimum = false;

  static void terms(const std::byte* block, std::int32_t* q, float* dw, float*) {
    *dw = load_half(block);
    load_five_bits(block + 2, q);
    for (int i = 0; i < 32; ++i) q[i] -= 16;
  }
  static void pack(const float* values, std::byte* block) {
    store_half(block, largest_magnitude(values, 32) / 15.0f);
    int q[32];
    for (int i = 0; i < 32; ++i) q[i] = nearest(values[i], load_half(block), -16, 15) + 16;
    store_five_bits(q, block + 2);
  }
  static bool finite(const std::byte* block) { return finite_half(block); }
};

struct Q5_1 {
  static constexpr TypeTraits kTraits{DType::q5_1, "Q5_1", 7, 32, 24};
  static constexpr int kTermInputs = 32;
  static constexpr bool kHasMinimum = true;

  static void terms(const std::byte* block, std::int32_t* q, float* dw, float* mw) {
    *dw = load_half(block);
    *mw = load_half(block + 2);
    load_five_bits(block + 4, q);
  }
  static void pack(const float* values, std::byte* block) {
    const auto [low, high] = std::minmax_element(values, values + 32);
    store_half(block, (*high - *low) / 31.0f);
    store_half(block + 2, *low);
    int q[32];
    for (int i = 0; i < 32; ++i) q[i] = nearest(values[i] - load_half(block + 2), load_half(block), 0, 31);
    store_five_bits(q, block + 4);
  }
  static bool finite(const std::byte* block) { return finite_half(block) && finite_half(block + 2); }
};

}  // namespace troupe::quant
