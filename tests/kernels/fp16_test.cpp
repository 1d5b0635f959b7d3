// binary16 and bfloat16: every value, and every rounding edge, against arithmetic in double and the processor's own.
#include "kernels/fp16.h"

#include <cmath>
#include <gtest/gtest.h>
#include <immintrin.h>

#include "kernels/backend.h"
#include "tests/support/random.h"

namespace troupe {
namespace {

constexpr std::uint32_t kHalves = 1u << 16;

double value_of_half(std::uint32_t half) {
  const int exponent = static_cast<int>((half >> 10) & 31u);
  const double fraction = half & 1023u;
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024.0 + fraction, exponent - 25);
  return (half & 0x8000u) != 0 ? -magnitude : magnitude;
}

bool finite_half(std::uint32_t half) {
  return (half & 0x7c00u) != 0x7c00u;
}
std::uint32_t bits(float x) {
  return std::bit_cast<std::uint32_t>(x);
}

[[gnu::target("f16c")]] std::uint16_t processor_to_half(float x) {
  const __m128i halves = _mm_cvtps_ph(_mm_set_ss(x), _MM_FROUND_TO_NEAREST_INT);
  return static_cast<std::uint16_t>(_mm_extract_epi16(halves, 0));
}
[[gnu::target("f16c")]] float processor_from_half(std::uint16_t x) {
  return _cvtsh_ss(x);
}

TEST(Half, every_value_is_exact_and_comes_back) {
  for (std::uint32_t half = 0; half < kHalves; ++half) {
    const float value = half_to_float(static_cast<std::uint16_t>(half));
    if (finite_half(half)) {
      ASSERT_EQ(static_cast<double>(value), value_of_half(half));
      ASSERT_EQ(std::signbit(value), half >> 15 != 0);
      ASSERT_EQ(float_to_half(value), half);
    } else if ((half & 0x3ffu) == 0) {
      ASSERT_TRUE(std::isinf(value));
      ASSERT_EQ(float_to_half(value), half);
    } else {
      ASSERT_TRUE(std::isnan(value));
      ASSERT_EQ(float_to_half(value), half | 0x200u);
    }
  }
}

TEST(Half, between_two_values_the_nearest_wins_and_a_tie_goes_to_the_even_one) {
  for (std::uint32_t half = 0; half + 1 < 0x7c00u; ++half) {
    // Neighbouring halves and their midpoint are exact in float.
    const float low = half_to_float(static_cast<std::uint16_t>(half));
    const float high = half_to_float(static_cast<std::uint16_t>(half + 1));
    const float middle = low + (high - low) / 2.0f;
    ASSERT_EQ(float_to_half(middle), half % 2 == 0 ? half : half + 1);
    ASSERT_EQ(float_to_half(std::nextafter(middle, 0.0f)), half);
    ASSERT_EQ(float_to_half(std::nextafter(middle, high)), half + 1);
    ASSERT_EQ(float_to_half(-std::nextafter(middle, high)), (half + 1) | 0x8000u);
  }
  EXPECT_EQ(float_to_half(65519.996f), 0x7bffu);
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00u);
  EXPECT_EQ(float_to_half(-1e30f), 0xfc00u);
}

TEST(Half, conversions_equal_the_processors) {
  if (!supported(Isa::avx2)) GTEST_SKIP() << "no F16C";
  for (std::uint32_t half = 0; half < kHalves; ++half) {
    const auto h = static_cast<std::uint16_t>(half);
    ASSERT_EQ(bits(half_to_float(h)), bits(processor_from_half(h)));
  }
  test::Random random(3);
  for (int i = 0; i < 4'000'000; ++i) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(random.next()));
    ASSERT_EQ(float_to_half(x), processor_to_half(x)) << std::hex << bits(x);
  }
}

TEST(Bfloat, every_value_comes_back_and_ties_go_to_even) {
  for (std::uint32_t b = 0; b < kHalves; ++b) {
    const float value = bfloat_to_float(static_cast<std::uint16_t>(b));
    ASSERT_EQ(bits(value), b << 16);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(bfloat_to_float(float_to_bfloat(value))));
      continue;
    }
    ASSERT_EQ(float_to_bfloat(value), b);
    if (std::isinf(value)) continue;
    ASSERT_EQ(float_to_bfloat(std::bit_cast<float>(b << 16 | 0x7fffu)), b);
    ASSERT_EQ(float_to_bfloat(std::bit_cast<float>(b << 16 | 0x8000u)), b % 2 == 0 ? b : b + 1);
    ASSERT_EQ(float_to_bfloat(std::bit_cast<float>(b << 16 | 0x8001u)), b + 1);
  }
  EXPECT_TRUE(std::isnan(bfloat_to_float(float_to_bfloat(std::bit_cast<float>(0x7f800001u)))));
}

}  // namespace
}  // namespace troupe
