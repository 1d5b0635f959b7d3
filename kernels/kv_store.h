// One element of a page's K or V, as every backend's scalar code reads and writes it.
#pragma once

#include <cstring>

#include "kernels/fp16.h"
#include "kernels/kv_layout.h"

namespace troupe {

inline void store_kv_element(KvType type, std::byte* head, std::int64_t index, float value) {
  if (type == KvType::f16) {
    const std::uint16_t half = float_to_half(value);
    std::memcpy(head + 2 * index, &half, 2);
  } else {
    std::memcpy(head + 4 * index, &value, 4);
  }
}

inline float load_kv_element(KvType type, const std::byte* head, std::int64_t index) {
  if (type == KvType::f16) {
    std::uint16_t half;
    std::memcpy(&half, head + 2 * index, 2);
    return half_to_float(half);
  }
  float value;
  std::memcpy(&value, head + 4 * index, 4);
  return value;
}

}  // namespace troupe
