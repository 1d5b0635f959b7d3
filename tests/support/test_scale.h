// TROUPE_TEST_SCALE=small: a tenth of the work, for sanitizer builds.
#pragma once

#include <cstdlib>
#include <string_view>

namespace troupe::test {

inline bool small_scale() {
  const char* scale = std::getenv("TROUPE_TEST_SCALE");
  return scale != nullptr && std::string_view(scale) == "small";
}

}  // namespace troupe::test
