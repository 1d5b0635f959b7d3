// What every format file uses: unaligned access to a block's bytes, and the smallest and largest of some values.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/fp16.h"
#include "kernels/tensor.h"

namespace troupe::quant {

inline std::uint16_t load_u16(const std::byte* at) {
  std::uint16_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
inline void store_u16(std::byte* at, std::uint16_t value) {
  std::memcpy(at, &value, sizeof value);
}

inline float load_half(const std::byte* at) {
  return half_to_float(load_u16(at));
}
inline void store_half(std::byte* at, float value) {
  store_u16(at, float_to_half(value));
}
inline bool finite_half(const std::byte* at) {
  return (load_u16(at) & 0x7c00u) != 0x7c00u;
}

inline int u8(std::byte value) {
  return std::to_integer<int>(value);
}
inline int i8(std::byte value) {
  return static_cast<std::int8_t>(std::to_integer<unsigned char>(value));
}

inline float largest_magnitude(const float* values, int count) {
  float largest = 0.0f;
  for (int i = 0; i < count; ++i) largest = std::max(largest, std::fabs(values[i]));
  return largest;
}

// The integer nearest to value / step, kept in [low, high]; 0 steps give `low` clipped from 0.
inline int nearest(float value, float step, int low, int high) {
  const int q = step == 0.0f ? 0 : static_cast<int>(std::nearbyint(value / step));
  return std::clamp(q, low, high);
}

}  // namespace troupe::quant
