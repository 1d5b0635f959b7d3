// The unquantized formats: F32, F16 and BF16. A block is one element.
#pragma once

#include "kernels/quant/block_io.h"

namespace troupe::quant {

struct F32 {
  static constexpr TypeTraits kTraits{DType::f32, "F32", 0, 1, 4};
  static float value(const std::byte* block) {
    float x;
    std::memcpy(&x, block, sizeof x);
    return x;
  }
  static void dequantize(const std::byte* block, float* out) { *out = value(block); }
  static void pack(const float* values, std::byte* block) { std::memcpy(block, values, sizeof(float)); }
  static bool finite(const std::byte* block) { return std::isfinite(value(block)); }
};

struct F16 {
  static constexpr TypeTraits kTraits{DType::f16, "F16", 1, 1, 2};
  static float value(const std::byte* block) { return load_half(block); }
  static void dequantize(const std::byte* block, float* out) { *out = value(block); }
  static void pack(const float* values, std::byte* block) { store_half(block, *values); }
  static bool finite(const std::byte* block) { return finite_half(block); }
};

struct Bf16 {
  static constexpr TypeTraits kTraits{DType::bf16, "BF16", 30, 1, 2};
  static float value(const std::byte* block) { return bfloat_to_float(load_u16(block)); }
  static void dequantize(const std::byte* block, float* out) { *out = value(block); }
  static void pack(const float* values, std::byte* block) { store_u16(block, float_to_bfloat(*values)); }
  static bool finite(const std::byte* block) { return std::isfinite(value(block)); }
};

}  // namespace troupe::quant
