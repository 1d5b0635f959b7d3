// Q4_1: 32 weights, half scale d and minimum m, 4-bit q: w = d * q + m.
// Block, 20 bytes: [d: f16][m: f16][16 bytes of nibbles, as in Q4_0]. (GGUF tensor type 3.)
#pragma once

#include "kernels/quant/block_io.h"

namespace troupe::quant {

struct Q4_1 {
  static constexpr TypeTraits kTraits{DType::q4_1, "Q4_1", 3, 32, 20};
  static constexpr int kTermInputs = 32;
  static constexpr bool kHasMinimum = true;

  static void terms(const std::byte* block, std::int32_t* q, float* dw, float* mw) {
    *dw = load_half(block);
    *mw = load_half(block + 2);
    for (int i = 0; i < 16; ++i) {
      q[i] = u8(block[4 + i]) & 15;
      q[16 + i] = u8(block[4 + i]) >> 4;
    }
  }
  static void pack(const float* values, std::byte* block) {
    const auto [low, high] = std::minmax_element(values, values + 32);
    store_half(block, (*high - *low) / 15.0f);
    store_half(block + 2, *low);
    const float d = load_half(block), m = load_half(block + 2);
    for (int i = 0; i < 16; ++i) {
      block[4 + i] =
          static_cast<std::byte>(nearest(values[i] - m, d, 0, 15) | nearest(values[16 + i] - m, d, 0, 15) << 4);
    }
  }
  static bool finite(const std::byte* block) { return finite_half(block) && finite_half(block + 2); }
};

}  // namespace troupe::quant
