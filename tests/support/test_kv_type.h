// TROUPE_TEST_KV_TYPE=i8 (or f32): the same tests with other keys and values, where a test does not choose them itself.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "kernels/kv_layout.h"

namespace troupe::test {

inline KvType kv_type_under_test() {
  const char* wanted = std::getenv("TROUPE_TEST_KV_TYPE");
  if (wanted == nullptr) return KvType::f16;
  const auto found =
      std::ranges::find_if(kKvTypes, [&](KvType type) { return std::string_view(name(type)) == wanted; });
  if (found == std::end(kKvTypes)) throw std::runtime_error("TROUPE_TEST_KV_TYPE is none of f16, f32, i8");
  return *found;
}

}  // namespace troupe::test
