// The reference backend and the RoPE table against the same equations in double.
#include <cmath>
#include <gtest/gtest.h>

#include "kernels/kv_store.h"
#include "kernels/reference/rows.h"
#include "tests/kernels/attend_lab.h"

namespace troupe::test {
namespace {

Backend& reference() {
  return Lab::get().reference();
}

std::vector<double> normed(const RowInputs& in, std::int64_t row) {
  double squares = 0.0;
  for (std::int64_t i = 0; i < in.cols; ++i) squares += std::pow(in.h[static_cast<std::size_t>(row * in.cols + i)], 2);
  const double r = 1.0 / std::sqrt(squares / static_cast<double>(in.cols) + 1e-5);
  std::vector<double> n;
  for (std::int64_t i = 0; i < in.cols; ++i) {
    n.push_back(in.h[static_cast<std::size_t>(row * in.cols + i)] * r * in.norm[static_cast<std::size_t>(i)]);
  }
  return n;
}

double dot(const std::vector<double>& x, const std::vector<float>& w, std::int64_t output) {
  double sum = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * w[static_cast<std::size_t>(output) * x.size() + i];
  return sum;
}

TEST(Reference, gate_up_with_float_weights_is_the_equation) {
  Random random(31);
  const RowInputs in = random_inputs(3, 160, random);
  const FileMatrix gate = random_matrix(DType::f32, 20, 160, random), up = random_matrix(DType::f32, 20, 160, random);
  const Output out = run_gate_up(reference(), in, 3, gate, up);
  for (std::int64_t row = 0; row < 3; ++row) {
    const std::vector<double> n = normed(in, row);
    for (std::int64_t o = 0; o < 20; ++o) {
      const double g = dot(n, gate.values(), o);
      const double expected = g / (1.0 + std::exp(-g)) * dot(n, up.values(), o);
      EXPECT_NEAR(out.values[static_cast<std::size_t>(row * 20 + o)], expected, 3e-6 * (1.0 + std::fabs(expected)));
    }
  }
}

// int8 activations: each differs from its float by at most half a step of its group.
TEST(Reference, quantized_matmul_is_within_the_error_of_int8_activations) {
  for (DType type : all_formats()) {
    Random random(32);
    const std::int64_t cols = ragged_cols(type).back();
    const FileMatrix w = random_matrix(type, 16, cols, random);
    const RowInputs in = random_inputs(2, cols, random);
    const std::vector<std::int32_t> wanted{0, 1};
    const Output out = run_head(reference(), in, 2, wanted, w);
    const std::vector<float> values = w.values();
    for (std::int64_t row = 0; row < 2; ++row) {
      const std::vector<double> n = normed(in, row);
      for (std::int64_t o = 0; o < 16; ++o) {
        double bound = 1e-4;
        for (std::size_t i = 0; i < n.size(); ++i) {
          double amax = 0.0;
          for (std::size_t j = i / 32 * 32; j < i / 32 * 32 + 32; ++j) amax = std::max(amax, std::fabs(n[j]));
          bound += 0.5 * amax / 127.0 * std::fabs(values[static_cast<std::size_t>(o) * n.size() + i]);
        }
        const double error = std::fabs(out.values[static_cast<std::size_t>(row * 16 + o)] - dot(n, values, o));
        EXPECT_LE(error, bound) << traits(type).name;
      }
    }
  }
}

// Powers of two: every product and sum is exact, so the value is known whatever the order.
TEST(Reference, a_quantized_matmul_with_exact_numbers) {
  FileMatrix w{DType::q4_1, 1, 64, std::vector<std::byte>(40)};
  for (std::size_t block : {std::size_t{0}, std::size_t{20}}) {
    w.bytes[block + 1] = std::byte{0x3c};                                       // d = 1
    w.bytes[block + 3] = std::byte{0xc0};                                       // m = -2
    for (std::size_t i = 4; i < 20; ++i) w.bytes[block + i] = std::byte{0x53};  // 3 and 5
  }
  RowInputs in{std::vector<float>(64, 127.0f), std::vector<float>(64, 1.0f), 1, 64};
  for (std::size_t i = 32; i < 64; ++i) in.h[i] = -254.0f;
  const Output base = run_project_add(reference(), {std::vector<float>(64), in.norm, 1, 64}, 1, w);
  const Output out = run_project_add(reference(), in, 1, w);
  // Weights 3 - 2 and 5 - 2: 16 * (1 + 3) = 64 a block.
  EXPECT_FLOAT_EQ(out.values[0], base.values[0] + 64.0f * 127.0f - 64.0f * 254.0f);
}

// What the pages hold is taken as it stands: of i8 the numbers times their scales.
void expect_softmax(const KvLayout& layout) {
  const AttendCase one{layout, 2, {{600, 3}}};
  const AttendResult result = run_attend(reference(), one);
  const float* q = result.output.values.data() + 3 * 64;  // rotated
  const auto element = [&](std::int64_t token, bool key, std::int64_t d) {
    const std::byte* page = result.pages.data() + static_cast<std::size_t>(token / 16) * layout.page_bytes();
    const std::byte* head = page + (key ? layout.k_offset(0, 0) : layout.v_offset(0, 0));
    const std::int64_t slot = token % 16;
    return static_cast<double>(load_kv_element(layout.type, head, key ? d * 16 + slot : slot * 32 + d)) *
           static_cast<double>(load_kv_scale(layout, head, slot));
  };
  for (std::int64_t row = 0; row < 3; ++row) {
    for (std::int64_t head = 0; head < 2; ++head) {
      std::vector<double> weight;
      double total = 0.0;
      for (std::int64_t t = 0; t <= 600 + row; ++t) {
        double score = 0.0;
        for (std::int64_t d = 0; d < 32; ++d) score += q[(row * 2 + head) * 32 + d] * element(t, true, d);
        weight.push_back(std::exp(score / std::sqrt(32.0)));
        total += weight.back();
      }
      for (std::int64_t d = 0; d < 32; ++d) {
        double expected = 0.0;
        for (std::size_t t = 0; t < weight.size(); ++t)
          expected += weight[t] / total * element(static_cast<std::int64_t>(t), false, d);
        EXPECT_NEAR(result.output.values[static_cast<std::size_t>((row * 2 + head) * 32 + d)], expected, 3e-6);
      }
    }
  }
}

TEST(Reference, attention_is_softmax_of_all_visible_tokens) {
  for (KvType type : {KvType::f32, KvType::i8}) {
    SCOPED_TRACE(name(type));
    expect_softmax({.layers = 1, .kv_heads = 1, .head_dim = 32, .type = type});
  }
}

TEST(RopeTable, angles_follow_base_factor_and_frequency_factors) {
  const std::vector<float> factors{1.0f, 2.0f, 4.0f, 8.0f};
  const RopeTable table =
      RopeTable::create({.dim = 8, .base = 500000.0, .linear_factor = 2.0, .frequency_factors = factors}, 50);
  for (int i = 0; i < 4; ++i) {
    const double angle = 37.0 * std::pow(500000.0, -2.0 * i / 8.0) / 2.0 / factors[static_cast<std::size_t>(i)];
    EXPECT_FLOAT_EQ(table.cos[static_cast<std::size_t>(37 * 4 + i)], static_cast<float>(std::cos(angle)));
    EXPECT_FLOAT_EQ(table.sin[static_cast<std::size_t>(37 * 4 + i)], static_cast<float>(std::sin(angle)));
  }
  EXPECT_EQ(table.cos[0], 1.0f);
  EXPECT_EQ(table.sin[3], 0.0f);
}

TEST(RopeTable, its_hash_tells_other_angles_apart) {
  const std::uint64_t hash = rope_hash({.dim = 8});
  const float factors[4] = {1.0f, 1.0f, 1.0f, 2.0f};
  EXPECT_EQ(hash, rope_hash({.dim = 8}));
  EXPECT_NE(hash, rope_hash({.dim = 8, .base = 10001.0}));
  EXPECT_NE(hash, rope_hash({.dim = 8, .linear_factor = 2.0}));
  EXPECT_NE(hash, rope_hash({.dim = 8, .frequency_factors = factors}));
  EXPECT_NE(hash, rope_hash({.dim = 8, .pairs = RopePairs::halves}));
}

// The pair (1, 0) becomes (cos, sin), (0, 1) becomes (-sin, cos); what stands past the rotated part is unchanged.
TEST(Reference, rope_turns_pairs_and_leaves_the_rest) {
  for (RopePairs pairs : {RopePairs::neighbours, RopePairs::halves}) {
    const RopeTable table = RopeTable::create({.dim = 8, .pairs = pairs}, 10);
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t a = pairs == RopePairs::neighbours ? 2 * i : i;
      const std::size_t b = pairs == RopePairs::neighbours ? a + 1 : a + 4;
      const double angle = 9.0 * std::pow(10000.0, -static_cast<double>(i) / 4.0);
      std::vector<float> head(12, 0.5f);
      head[a] = 1.0f;
      head[b] = 0.0f;
      reference::rope(head.data(), table, 9);
      EXPECT_FLOAT_EQ(head[a], static_cast<float>(std::cos(angle)));
      EXPECT_FLOAT_EQ(head[b], static_cast<float>(std::sin(angle)));
      head[a] = 0.0f;
      head[b] = 1.0f;
      reference::rope(head.data(), table, 9);
      EXPECT_FLOAT_EQ(head[a], static_cast<float>(-std::sin(angle)));
      EXPECT_FLOAT_EQ(head[b], static_cast<float>(std::cos(angle)));
      for (std::size_t rest = 8; rest < 12; ++rest) EXPECT_EQ(head[rest], 0.5f);
    }
  }
}

}  // namespace
}  // namespace troupe::test
