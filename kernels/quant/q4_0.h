// Q4_0: 32 weights, one half scale d, 4-bit q: w = d * (q - 8).
// Block, 18 bytes: [d: f16][16 bytes: q of element i in the low nibble of byte i, of element 16 + i in the high one].
// (GGUF tensor type 2.)
#pragma once

#include "kernels/quant/block_io.h"

namespace troupe::quant {

struct Q4_0 {
  static constexpr TypeTraits kTraits{DType::q4_0, "Q4_0", 2, 32, 18};
  static constexpr int kTermInputs = 32;
  static constexpr bool kHasMinimum = false;

  static void terms(const std::byte* block, std::int32_t* q, float* dw, float*) {
    *dw = load_half(block);
    for (int i = 0; i < 16; ++i) {
      q[i] = (u8(block[2 + i]) & 15) - 8;
      q[16 + i] = (u8(block[2 + i]) >> 4) - 8;
    }
  }
  static void pack(const float* values, std::byte* block) {
    float extreme = 0.0f;
    for (int i = 0; i < 32; ++i) {
      if (std::fabs(values[i]) > std::fabs(extreme)) extreme = values[i];
    }
    store_half(block, extreme / -8.0f);
    const float d = load_half(block);
    for (int i = 0; i < 16; ++i) {
      const int low = nearest(values[i], d, -8, 7) + 8;
      const int high = nearest(values[16 + i], d, -8, 7) + 8;
      block[2 + i] = static_cast<std::byte>(low | high << 4);
    }
  }
  static bool finite(const std::byte* block) { return finite_half(block); }
};

}  // namespace troupe::quant
