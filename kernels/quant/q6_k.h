// Q6_K: 256 weights in 16 groups of 16; w = (d * scale[g]) * (q - 32), int8 scales.
// Block, 210 bytes: [128 bytes: low 4 bits][64 bytes: high 2 bits][16 x int8 scale][d: f16].
// Elements come in two halves of 128. In half h, quarter j (elements 128h + 32j + i, i < 32):
//   low 4 bits: byte 64h + i + 32 (j % 2), low nibble for j < 2, high nibble for j >= 2
//   high 2 bits: bits 2j, 2j+1 of byte 32h + i of the high part
// (GGUF tensor type 14.) d * scale is exact in float32 (11 + 8 bits).
#pragma once

#include "kernels/quant/block_io.h"

namespace troupe::quant {

struct Q6_K {
  static constexpr TypeTraits kTraits{DType::q6_k, "Q6_K", 14, 256, 210};
  static constexpr int kTermInputs = 16;
  static constexpr bool kHasMinimum = false;
  static constexpr int kHighAt = 128, kScalesAt = 192, kDeltaAt = 208;

  static int level(const std::byte* block, int element) {
    const int h = element / 128, j = element % 128 / 32, i = element % 32;
    const int low_byte = u8(block[64 * h + 32 * (j % 2) + i]);
    const int low = j < 2 ? low_byte & 15 : low_byte >> 4;
    return low | ((u8(block[kHighAt + 32 * h + i]) >> (2 * j)) & 3) << 4;
  }

  static void terms(const std::byte* block, std::int32_t* q, float* dw, float*) {
    const float d = load_half(block + kDeltaAt);
    for (int g = 0; g < 16; ++g) dw[g] = d * static_cast<float>(i8(block[kScalesAt + g]));
    for (int e = 0; e < 256; ++e) q[e] = level(block, e) - 32;
  }

  static void pack(const float* values, std::byte* block) {
    std::memset(block, 0, 210);
    float step[16];
    for (int g = 0; g < 16; ++g) step[g] = largest_magnitude(values + 16 * g, 16) / 31.0f;
    store_half(block + kDeltaAt, *std::max_element(step, step + 16) / 127.0f);
    const float d = load_half(block + kDeltaAt);
    for (int g = 0; g < 16; ++g) {
      const int scale = nearest(step[g], d, 0, 127);
      block[kScalesAt + g] = static_cast<std::byte>(scale);
      for (int i = 0; i < 16; ++i) {
        set_level(block, 16 * g + i, nearest(values[16 * g + i], d * static_cast<float>(scale), -32, 31) + 32);
      }
    }
  }

  static void set_level(std::byte* block, int element, int q) {
    const int h = element / 128, j = element % 128 / 32, i = element % 32;
    block[64 * h + 32 * (j % 2) + i] |= static_cast<std::byte>((q & 15) << (j < 2 ? 0 : 4));
    block[kHighAt + 32 * h + i] |= static_cast<std::byte>((q >> 4) << (2 * j));
  }

  static bool finite(const std::byte* block) { return finite_half(block + kDeltaAt); }
};

}  // namespace troupe::quant
