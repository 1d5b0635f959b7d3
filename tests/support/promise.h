// promise("C15", "..."): the figure by which a test has kept a promise of docs/promises.md. It must be the same on
// every machine (a count, a bound that was checked), and is compared with the page (tests/promises/promises.py).
#pragma once

#include <cstdint>
#include <gtest/gtest.h>
#include <string>

namespace troupe::test {

inline void promise(const std::string& row, const std::string& figure) {
  testing::Test::RecordProperty("promise_" + row, figure);
}

// 12,345
inline std::string with_commas(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (auto at = std::ssize(digits) - 3; at > 0; at -= 3) digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

}  // namespace troupe::test
