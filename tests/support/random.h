// Random: the same values from a seed on every machine and library (the standard distributions promise no such thing).
#pragma once

#include <cstdint>
#include <vector>

namespace troupe::test {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  // SplitMix64 (Steele, Lea, Flood 2014).
  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15ull;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  // 0 .. bound-1.
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(bound));
  }
  // Uniform in [-1, 1), a multiple of 2^-23.
  float signed_unit() { return static_cast<float>(static_cast<std::int64_t>(next() >> 40) - (1 << 23)) * 0x1p-23f; }
  // Bell-shaped, standard deviation 1: no function of the C library, whose bits differ between versions.
  float bell() {
    float sum = 0.0f;
    for (int i = 0; i < 3; ++i) sum += signed_unit();
    return sum;
  }
  std::vector<float> bells(std::int64_t count, float deviation = 1.0f) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = bell() * deviation;
    return values;
  }

 private:
  std::uint64_t state_;
};

}  // namespace troupe::test
