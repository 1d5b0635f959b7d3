// Q4_K and Q5_K: 256 weights in 8 groups of 32; w = (d * scale[g]) * q - (dmin * min[g]), 6-bit scales and minima.
// Blocks: [d: f16][dmin: f16][12 bytes: scales and minima]([32 bytes: fifth bits])[128 bytes: nibbles].
//   nibbles: groups 2j and 2j+1 share bytes 32j .. 32j+31, group 2j in the low nibbles.
//   fifth bits: bit g of byte i is bit 4 of element i of group g.
//   scales and minima, g < 4: the low 6 bits of byte g, and of byte 4 + g;
//   g >= 4: scale = low nibble of byte 4 + g | top 2 bits of byte g - 4 << 4, min = high nibble of byte 4 + g | top 2
//   bits of byte g << 4.
// (GGUF tensor types 12 and 13; 144 and 176 bytes.) d * scale and dmin * min are exact in float32 (11 + 6 bits).
#pragma once

#include "kernels/quant/block_io.h"

namespace troupe::quant {

inline void load_scales_6bit(const std::byte* packed, int* scale, int* minimum) {
  for (int g = 0; g < 4; ++g) {
    scale[g] = u8(packed[g]) & 63;
    minimum[g] = u8(packed[4 + g]) & 63;
    scale[4 + g] = (u8(packed[8 + g]) & 15) | (u8(packed[g]) >> 6) << 4;
    minimum[4 + g] = (u8(packed[8 + g]) >> 4) | (u8(packed[4 + g]) >> 6) << 4;
  }
}

inline void store_scales_6bit(const int* scale, const int* minimum, std::byte* packed) {
  for (int g = 0; g < 4; ++g) {
    packed[g] = static_cast<std::byte>(scale[g] | (scale[4 + g] >> 4) << 6);
    packed[4 + g] = static_cast<std::byte>(minimum[g] | (minimum[4 + g] >> 4) << 6);
    packed[8 + g] = static_cast<std::byte>((scale[4 + g] & 15) | (minimum[4 + g] & 15) << 4);
  }
}

// Bits is 4 or 5.
template <int Bits>
struct QxK {
  static constexpr int kTermInputs = 32;
  static constexpr bool kHasMinimum = true;
  static constexpr int kLevels = (1 << Bits) - 1;
  static constexpr int kHighAt = 16;
  static constexpr int kNibblesAt = Bits == 5 ? 48 : 16;

  static void terms(const std::byte* block, std::int32_t* q, float* dw, float* mw) {
    int scale[8], minimum[8];
    load_scales_6bit(block + 4, scale, minimum);
    const float d = load_half(block), dmin = load_half(block + 2);
    for (int g = 0; g < 8; ++g) {
      dw[g] = d * static_cast<float>(scale[g]);
      mw[g] = -(dmin * static_cast<float>(minimum[g]));
      for (int i = 0; i < 32; ++i) q[32 * g + i] = level(block, g, i);
    }
  }

  static int level(const std::byte* block, int g, int i) {
    const int byte = u8(block[kNibblesAt + 32 * (g / 2) + i]);
    const int low = g % 2 == 0 ? byte & 15 : byte >> 4;
    if constexpr (Bits == 4) return low;
    return low | ((u8(block[kHighAt + i]) >> g) & 1) << 4;
  }

  static void pack(const float* values, std::byte* block) {
    std::memset(block, 0, kNibblesAt + 128);
    float step[8], offset[8];
    for (int g = 0; g < 8; ++g) {
      const auto [low, high] = std::minmax_element(values + 32 * g, values + 32 * g + 32);
      offset[g] = std::max(0.0f, -*low);
      step[g] = std::max(0.0f, *high + offset[g]) / kLevels;
    }
    store_half(block, *std::max_element(step, step + 8) / 63.0f);
    store_half(block + 2, *std::max_element(offset, offset + 8) / 63.0f);
    const float d = load_half(block), dmin = load_half(block + 2);
    int scale[8], minimum[8];
    for (int g = 0; g < 8; ++g) {
      scale[g] = nearest(step[g], d, 0, 63);
      minimum[g] = nearest(offset[g], dmin, 0, 63);
    }
    store_scales_6bit(scale, minimum, block + 4);
    for (int g = 0; g < 8; ++g) {
      for (int i = 0; i < 32; ++i) {
        const float shifted = values[32 * g + i] + dmin * static_cast<float>(minimum[g]);
        set_level(block, g, i, nearest(shifted, d * static_cast<float>(scale[g]), 0, kLevels));
      }
    }
  }

  static void set_level(std::byte* block, int g, int i, int q) {
    block[kNibblesAt + 32 * (g / 2) + i] |= static_cast<std::byte>((q & 15) << (g % 2 == 0 ? 0 : 4));
    if constexpr (Bits == 5) block[kHighAt + i] |= static_cast<std::byte>((q >> 4) << g);
  }

  static bool finite(const std::byte* block) { return finite_half(block) && finite_half(block + 2); }
};

struct Q4_K : QxK<4> {
  static constexpr TypeTraits kTraits{DType::q4_k, "Q4_K", 12, 256, 144};
};
struct Q5_K : QxK<5> {
  static constexpr TypeTraits kTraits{DType::q5_k, "Q5_K", 13, 256, 176};
};

}  // namespace troupe::quant
