// Q8_0: 32 weights, one half scale, int8 q: w = d * q. Block, 34 bytes: [d: f16][32 x int8]. (GGUF tensor type 8.)
#pragma once

#include "kernels/quant/block_io.h"

namespace troupe::quant {

struct Q8_0 {
  static constexpr TypeTraits kTraits{DType::q8_0, "Q8_0", 8, 32, 34};
  static constexpr int kTermInputs = 32;
  static constexpr bool kHasMinimum = false;

  static void terms(const std::byte* block, std::int32_t* q, float* dw, float*) {
    *dw = load_half(block);
    for (int i = 0; i < 32; ++i) q[i] = i8(block[2 + i]);
  }
  static void pack(const float* values, std::byte* block) {
    store_half(block, largest_magnitude(values, 32) / 127.0f);
    const float d = load_half(block);
    for (int i = 0; i < 32; ++i) block[2 + i] = static_cast<std::byte>(nearest(values[i], d, -127, 127) & 0xff);
  }
  static bool finite(const std::byte* block) { return finite_half(block); }
};

}  // namespace troupe::quant
