// One element of a page's K or V, and one scale, as every backend's scalar code reads and writes them.
// An element of i8 is a whole number from -127 to 127; its value is the number times the scale of its token and head.
#pragma once

#include <cstring>

#include "kernels/fp16.h"
#include "kernels/kv_layout.h"

namespace troupe {

inline void store_kv_element(KvType type, std::byte* head, std::int64_t index, float value) {
  if (type == KvType::f16) {
    const std::uint16_t half = float_to_half(value);
    std::memcpy(head + 2 * index, &half, 2);
  } else if (type == KvType::f32) {
    std::memcpy(head + 4 * index, &value, 4);
  } else {
    head[index] = static_cast<std::byte>(static_cast<std::int8_t>(value));
  }
}

inline float load_kv_element(KvType type, const std::byte* head, std::int64_t index) {
  if (type == KvType::i8) return static_cast<float>(static_cast<std::int8_t>(head[index]));
  if (type == KvType::f16) {
    std::uint16_t half;
    std::memcpy(&half, head + 2 * index, 2);
    return half_to_float(half);
  }
  float value;
  std::memcpy(&value, head + 4 * index, 4);
  return value;
}

// Of a layout with scales only.
inline void store_kv_scale(const KvLayout& layout, std::byte* head, std::int64_t slot, float scale) {
  std::memcpy(head + layout.scales_at() + sizeof(float) * static_cast<std::size_t>(slot), &scale, sizeof scale);
}

// 1 where the layout has none.
inline float load_kv_scale(const KvLayout& layout, const std::byte* head, std::int64_t slot) {
  float scale = 1.0f;
  if (layout.scale_bytes() == 0) return scale;
  std::memcpy(&scale, head + layout.scales_at() + sizeof(float) * static_cast<std::size_t>(slot), sizeof scale);
  return scale;
}

}  // namespace troupe
