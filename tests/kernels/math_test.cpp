// The contract's exp, log and silu against double arithmetic.
#include "kernels/math.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "tests/support/test_scale.h"

namespace troupe {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The size of one ulp of float32 at y.
double ulp(double y) {
  const double magnitude = std::max(std::fabs(y), 0x1p-126);
  return std::ldexp(1.0, std::ilogb(magnitude) - 23);
}

// Every stride-th float of [from, to], both positive: bit patterns are in the order of values.
template <class Visit>
void walk(float from, float to, std::uint32_t stride, Visit&& visit) {
  const std::uint32_t end = std::bit_cast<std::uint32_t>(to);
  for (std::uint32_t b = std::bit_cast<std::uint32_t>(from); b <= end; b += stride) visit(std::bit_cast<float>(b));
}

std::uint32_t stride() {
  return test::small_scale() ? 9973u : 499u;
}

TEST(Exp, is_within_two_ulp_everywhere) {
  double worst = 0.0;
  const auto check = [&](float x) {
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::fabs(exp_contract(x) - exact) / ulp(exact));
  };
  walk(0.0f, exp_constants::kHighest, stride(), check);
  walk(0.0f, -exp_constants::kLowest, stride(), [&](float x) { check(-x); });
  RecordProperty("worst_ulp_x1000", static_cast<int>(worst * 1000));
  EXPECT_LE(worst, 1.3);
  EXPECT_GT(worst, 0.4);
}

TEST(Exp, has_the_contracts_edges) {
  using namespace exp_constants;
  EXPECT_EQ(exp_contract(0.0f), 1.0f);
  EXPECT_EQ(exp_contract(-0.0f), 1.0f);
  EXPECT_GT(exp_contract(kLowest), 0.0f);
  EXPECT_EQ(exp_contract(std::nextafter(kLowest, -kInfinity)), 0.0f);
  EXPECT_TRUE(std::isfinite(exp_contract(kHighest)));
  EXPECT_EQ(exp_contract(std::nextafter(kHighest, kInfinity)), kInfinity);
  EXPECT_EQ(exp_contract(-kInfinity), 0.0f);
  EXPECT_EQ(exp_contract(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(exp_contract(std::numeric_limits<float>::quiet_NaN())));
}

TEST(Exp, never_falls_while_its_argument_grows) {
  float last = 0.0f;
  walk(0.0f, -exp_constants::kLowest, stride(), [&](float x) {
    const float y = exp_contract(-x);
    if (last != 0.0f) {
      ASSERT_LE(y, last * (1.0f + 0x1p-22f)) << -x;
    }
    last = y;
  });
}

TEST(Log, is_within_two_ulp_everywhere) {
  double worst = 0.0;
  walk(0x1p-126f, std::numeric_limits<float>::max(), stride(), [&](float x) {
    const double exact = std::log(static_cast<double>(x));
    worst = std::max(worst, std::fabs(log_contract(x) - exact) / ulp(exact));
  });
  EXPECT_LE(worst, 0.9);
  EXPECT_GT(worst, 0.4);
}

TEST(Log, has_the_contracts_edges) {
  EXPECT_EQ(log_contract(1.0f), 0.0f);
  EXPECT_EQ(log_contract(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(log_contract(std::numeric_limits<float>::quiet_NaN())));
}

TEST(Silu, follows_its_definition_over_the_whole_range) {
  EXPECT_EQ(silu_contract(0.0f), 0.0f);
  EXPECT_EQ(silu_contract(200.0f), 200.0f);
  EXPECT_EQ(silu_contract(-200.0f), 0.0f);
  for (float g = -80.0f; g < 80.0f; g += 0.37f) {
    const double exact = g / (1.0 + std::exp(-static_cast<double>(g)));
    EXPECT_NEAR(silu_contract(g), exact, std::fabs(exact) * 4e-7) << g;
  }
}

}  // namespace
}  // namespace troupe
