// Int8 keys and values: where they lie, and what every backend stores of ordinary, tiny, huge and broken rows
// (docs/numerics.md, "Keys and values").
#include <bit>
#include <cfloat>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>

#include "kernels/kv_store.h"
#include "tests/kernels/attend_lab.h"

namespace troupe::test {
namespace {

constexpr int kDim = 32;
constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();
const KvLayout kInt8{.layers = 1, .kv_heads = 2, .head_dim = kDim, .type = KvType::i8};

// Two sequences of one row each. The first's is token 0, where RoPE turns nothing; its keys and values of head 1 are
// `values`.
AttendCase case_of(const std::vector<float>& values) {
  const auto change = [values](std::span<float> k, std::span<float> v) {
    std::ranges::copy(values, k.begin() + kDim);
    std::ranges::copy(values, v.begin() + kDim);
  };
  return {kInt8, 1, {{0, 1}, {20, 1}}, 0, RopePairs::neighbours, change};
}

std::vector<float> row_of(std::vector<float> first) {
  first.resize(kDim, 0.0f);
  return first;
}

void on_every_backend(const std::vector<float>& values,
                      const std::function<void(const AttendResult&, const std::byte* k, const std::byte* v)>& check) {
  const auto run = [&](Backend& backend, const std::string& name) {
    SCOPED_TRACE(name);
    const AttendResult result = run_attend(backend, case_of(values));
    check(result, result.pages.data() + kInt8.k_offset(0, 1), result.pages.data() + kInt8.v_offset(0, 1));
  };
  run(Lab::get().reference(), "reference");
  for (NamedBackend& path : Lab::get().paths()) run(*path.backend, path.name);
}

void expect_stored(const std::vector<float>& values, float scale, const std::vector<float>& numbers) {
  on_every_backend(values, [&](const AttendResult&, const std::byte* k, const std::byte* v) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(load_kv_scale(kInt8, k, 0)), std::bit_cast<std::uint32_t>(scale));
    EXPECT_EQ(std::bit_cast<std::uint32_t>(load_kv_scale(kInt8, v, 0)), std::bit_cast<std::uint32_t>(scale));
    for (std::size_t d = 0; d < numbers.size(); ++d) {
      EXPECT_EQ(load_kv_element(KvType::i8, k, static_cast<std::int64_t>(d) * 16), numbers[d]) << "key, " << d;
      EXPECT_EQ(load_kv_element(KvType::i8, v, static_cast<std::int64_t>(d)), numbers[d]) << "value, " << d;
    }
  });
}

TEST(KvInt8, keys_values_and_scales_stand_at_multiples_of_64_bytes) {
  for (KvType type : kKvTypes) {
    for (int dim = 16; dim <= 256; dim += 16) {
      const KvLayout layout{.layers = 3, .kv_heads = 3, .head_dim = dim, .type = type};
      for (std::size_t at : {layout.k_offset(1, 1), layout.v_offset(1, 1), layout.scales_at(), layout.page_bytes()}) {
        EXPECT_EQ(at % 64, 0u) << name(type) << ", head_dim " << dim;
      }
    }
  }
}

TEST(KvInt8, a_token_takes_a_byte_an_element_and_one_float_a_head) {
  KvLayout layout{.layers = 30, .kv_heads = 3, .head_dim = 64, .type = KvType::f16};
  EXPECT_EQ(layout.bytes_per_token(), 30u * 2 * 3 * 128);
  layout.type = KvType::i8;
  EXPECT_EQ(layout.bytes_per_token(), 30u * 2 * 3 * (64 + 4));
}

TEST(KvInt8, a_row_is_rounded_to_multiples_of_its_own_scale_ties_to_even) {
  expect_stored(row_of({254.0f, -254.0f, 1.0f, 3.0f, 5.0f, -1.0f, -3.0f, 2.1f, -252.9f}), 2.0f,
                row_of({127, -127, 0, 2, 2, 0, -2, 1, -126}));
}

TEST(KvInt8, a_row_of_one_value_has_the_largest_number_everywhere) {
  for (float value : {1.0f, 0x1p-100f, FLT_MAX, 3.3e-5f}) {
    expect_stored(std::vector<float>(kDim, -value), value / 127.0f, std::vector<float>(kDim, -127.0f));
  }
}

TEST(KvInt8, a_row_of_zeros_or_of_less_than_two_to_the_minus_100_is_zero) {
  for (float value : {0.0f, -0.0f, 0x1.fffffep-101f, FLT_TRUE_MIN}) {
    expect_stored(std::vector<float>(kDim, value), 0.0f, std::vector<float>(kDim, 0.0f));
  }
}

// The results of one head of one row are no numbers; every other bit is what it is beside an ordinary row.
TEST(KvInt8, a_value_that_is_not_finite_makes_its_own_rows_results_no_numbers_and_no_others) {
  for (float broken : {kNoNumber, HUGE_VALF, -HUGE_VALF}) {
    std::vector<float> values(kDim, 1.0f);
    const AttendResult ordinary = run_attend(Lab::get().reference(), case_of(values));
    values[17] = broken;
    expect_stored(values, kNoNumber, std::vector<float>(kDim, 0.0f));
    on_every_backend(values, [&](const AttendResult& result, const std::byte*, const std::byte*) {
      for (std::size_t i = 0; i < 4 * kDim; ++i) {
        const bool guilty = i / kDim == 1;  // row 0, head 1
        const float one = result.output.values[i];
        EXPECT_TRUE(guilty ? std::isnan(one) : one == ordinary.output.values[i]) << i << ": " << one;
      }
    });
  }
}

// A key alone is enough: the row's weight is no number either.
TEST(KvInt8, a_key_that_is_not_finite_is_found_too) {
  AttendCase one = case_of({});
  one.change = [](std::span<float> k, std::span<float>) { k[0] = HUGE_VALF; };
  for (NamedBackend& path : Lab::get().paths()) {
    const AttendResult result = run_attend(*path.backend, one);
    EXPECT_TRUE(std::isnan(result.output.values[0])) << path.name;
    EXPECT_TRUE(std::isfinite(result.output.values[kDim])) << path.name;
  }
}

}  // namespace
}  // namespace troupe::test
