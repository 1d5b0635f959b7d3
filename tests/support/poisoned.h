// PoisonedRows: an output matrix that starts as NaN everywhere and stands between two guards.
//
// What a kernel forgets to write stays NaN and differs; what it writes outside is found by intact().
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace troupe::test {

inline const float kPoison = std::bit_cast<float>(0x7fc0dead);

class PoisonedRows {
 public:
  explicit PoisonedRows(std::int64_t floats)
      : floats_(static_cast<std::size_t>(floats)), memory_(floats_ + 2 * kGuard, kPoison) {}

  float* data() { return memory_.data() + kGuard; }
  std::span<const float> values() const { return std::span(memory_).subspan(kGuard, floats_); }
  bool intact() const {
    const auto poisoned = [](float x) {
      return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(kPoison);
    };
    return std::all_of(memory_.begin(), memory_.begin() + kGuard, poisoned) &&
           std::all_of(memory_.end() - kGuard, memory_.end(), poisoned);
  }

 private:
  static constexpr std::size_t kGuard = 64;
  std::size_t floats_;
  std::vector<float> memory_;
};

// The index of the first pair with other bits, or -1. Any NaN equals any NaN: which one it is, is no part of the
// contract.
inline std::int64_t first_difference(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return static_cast<std::int64_t>(std::min(a.size(), b.size()));
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool both_nan = a[i] != a[i] && b[i] != b[i];
    if (!both_nan && std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i])) {
      return static_cast<std::int64_t>(i);
    }
  }
  return -1;
}

}  // namespace troupe::test
