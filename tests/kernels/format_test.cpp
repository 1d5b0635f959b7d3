// Tensor formats: exact values against blocks made by hand and against another program's decoder; packing; refusal.
#include <array>
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

#include "kernels/quant/formats.h"
#include "tests/support/random.h"

namespace troupe {
namespace {

std::vector<std::byte> to_bytes(const std::vector<int>& values) {
  std::vector<std::byte> bytes;
  for (int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

std::vector<float> decode(DType type, const std::vector<std::byte>& blocks) {
  const TypeTraits& t = traits(type);
  std::vector<float> values(blocks.size() / t.bytes * t.block);
  quant::dequantize(type, blocks.data(), static_cast<std::int64_t>(values.size()), values.data());
  return values;
}

struct FormatVector {
  DType type;
  std::vector<int> bytes;
  std::vector<std::uint32_t> bits;
};
const std::vector<FormatVector> kVectors{
#include "tests/kernels/format_vectors.inc"
};

TEST(Formats, values_equal_those_of_another_decoder_bit_for_bit) {
  EXPECT_EQ(kVectors.size(), 10u);
  for (const FormatVector& vector : kVectors) {
    const std::vector<float> values = decode(vector.type, to_bytes(vector.bytes));
    ASSERT_EQ(values.size(), vector.bits.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(values[i]), vector.bits[i])
          << traits(vector.type).name << " element " << i;
    }
  }
}

TEST(Formats, block_of_q4_0_made_by_hand) {
  std::vector<std::byte> block = to_bytes({0x00, 0x40});  // d = 2
  for (int i = 0; i < 16; ++i) block.push_back(static_cast<std::byte>(i | (15 - i) << 4));
  const std::vector<float> values = decode(DType::q4_0, block);
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(values[static_cast<std::size_t>(i)], 2.0f * static_cast<float>(i - 8));
    EXPECT_EQ(values[static_cast<std::size_t>(16 + i)], 2.0f * static_cast<float>(7 - i));
  }
}

TEST(Formats, fifth_bits_of_q5_1_made_by_hand) {
  std::vector<std::byte> block =
      to_bytes({0x00, 0x3c, 0x00, 0xc0, 0x01, 0x00, 0x00, 0x80});  // d = 1, m = -2, bits 0, 31
  block.resize(24, std::byte{0x21});
  const std::vector<float> values = decode(DType::q5_1, block);
  EXPECT_EQ(values[0], 17.0f - 2.0f);
  EXPECT_EQ(values[1], 1.0f - 2.0f);
  EXPECT_EQ(values[16], 2.0f - 2.0f);
  EXPECT_EQ(values[31], 18.0f - 2.0f);
}

TEST(Formats, six_bit_scales_of_q4_k_made_by_hand) {
  std::array<int, 8> scale{1, 2, 3, 63, 17, 33, 62, 48}, minimum{63, 0, 7, 9, 60, 16, 31, 1};
  std::vector<std::byte> block(144);
  block[1] = block[3] = std::byte{0x3c};  // d = dmin = 1
  quant::store_scales_6bit(scale.data(), minimum.data(), block.data() + 4);
  for (std::size_t i = 16; i < 144; ++i) block[i] = std::byte{0x21};  // even groups 1, odd groups 2
  const std::vector<float> values = decode(DType::q4_k, block);
  for (std::size_t g = 0; g < 8; ++g) {
    const int expected = scale[g] * (g % 2 == 0 ? 1 : 2) - minimum[g];
    EXPECT_EQ(values[32 * g], static_cast<float>(expected)) << "group " << g;
    EXPECT_EQ(values[32 * g + 31], static_cast<float>(expected)) << "group " << g;
  }
}

TEST(Formats, pack_stays_within_its_step) {
  test::Random random(7);
  const std::vector<float> values = random.bells(512);
  // The largest error relative to the largest value: half a step, and what the coarser scales of the K formats add.
  const std::vector<std::pair<DType, float>> bounds{{DType::f32, 0.0f},    {DType::f16, 5e-4f},  {DType::bf16, 4e-3f},
                                                    {DType::q4_0, 0.13f},  {DType::q4_1, 0.07f}, {DType::q5_0, 0.04f},
                                                    {DType::q5_1, 0.035f}, {DType::q8_0, 5e-3f}, {DType::q4_k, 0.1f},
                                                    {DType::q5_k, 0.03f},  {DType::q6_k, 0.02f}};
  for (const auto& [type, bound] : bounds) {
    std::vector<std::byte> blocks(512 / traits(type).block * traits(type).bytes);
    quant::pack(type, values.data(), 512, blocks.data());
    const std::vector<float> back = decode(type, blocks);
    float error = 0.0f, largest = 0.0f;
    for (std::size_t i = 0; i < values.size(); ++i) {
      error = std::max(error, std::fabs(back[i] - values[i]));
      largest = std::max(largest, std::fabs(values[i]));
    }
    EXPECT_LE(error, bound * largest) << traits(type).name;
    EXPECT_EQ(error > 0.0f, type != DType::f32) << traits(type).name;
  }
}

TEST(Formats, packing_zeros_gives_zeros) {
  const std::vector<float> zeros(256);
  for (int t = 0; t < 11; ++t) {
    const TypeTraits& one = traits(static_cast<DType>(t));
    std::vector<std::byte> blocks(256 / one.block * one.bytes, std::byte{0xff});
    quant::pack(one.type, zeros.data(), 256, blocks.data());
    for (float value : decode(one.type, blocks)) ASSERT_EQ(value, 0.0f) << one.name;
  }
}

TEST(Formats, a_non_finite_scale_or_value_is_found_in_its_block) {
  const std::vector<std::pair<DType, std::vector<std::size_t>>> halves{
      {DType::f16, {0}},  {DType::q4_0, {0}},    {DType::q4_1, {0, 2}}, {DType::q5_0, {0}},  {DType::q5_1, {0, 2}},
      {DType::q8_0, {0}}, {DType::q4_k, {0, 2}}, {DType::q5_k, {0, 2}}, {DType::q6_k, {208}}};
  for (const auto& [type, places] : halves) {
    const std::size_t bytes = traits(type).bytes;
    for (std::size_t place : places) {
      for (int high : {0x7c, 0xfc, 0x7e}) {
        std::vector<std::byte> blocks(5 * bytes);
        EXPECT_EQ(quant::find_non_finite(type, blocks.data(), 5), -1);
        blocks[3 * bytes + place + 1] = static_cast<std::byte>(high);
        EXPECT_EQ(quant::find_non_finite(type, blocks.data(), 5), 3) << traits(type).name << " at " << place;
      }
    }
  }
  const float values[3] = {0.0f, 1.0f, std::numeric_limits<float>::infinity()};
  EXPECT_EQ(quant::find_non_finite(DType::f32, reinterpret_cast<const std::byte*>(values), 3), 2);
  const std::uint16_t bf16[2] = {0x3f80, 0xffc0};
  EXPECT_EQ(quant::find_non_finite(DType::bf16, reinterpret_cast<const std::byte*>(bf16), 2), 1);
}

TEST(Formats, terms_give_the_values) {
  test::Random random(11);
  for (int t = 0; t < 11; ++t) {
    quant::visit_format(static_cast<DType>(t), [&]<class F>(F) {
      if constexpr (quant::Quantized<F>) {
        const std::vector<float> values = random.bells(256);
        std::vector<std::byte> blocks(256 / F::kTraits.block * F::kTraits.bytes);
        quant::pack(F::kTraits.type, values.data(), 256, blocks.data());
        std::int32_t q[256];
        float dw[16], mw[16] = {};
        F::terms(blocks.data(), q, dw, mw);
        const std::vector<float> exact = decode(F::kTraits.type, blocks);
        for (int i = 0; i < static_cast<int>(F::kTraits.block); ++i) {
          const double value = double{dw[i / F::kTermInputs]} * q[i] + (F::kHasMinimum ? mw[i / F::kTermInputs] : 0.0f);
          EXPECT_NEAR(exact[static_cast<std::size_t>(i)], value, 1e-6) << F::kTraits.name;
        }
      }
    });
  }
}

TEST(Formats, gguf_numbers_find_their_types) {
  EXPECT_EQ(find_gguf_type(14)->type, DType::q6_k);
  EXPECT_EQ(find_gguf_type(30)->name, "BF16");
  EXPECT_EQ(find_gguf_type(4), nullptr);
  for (int t = 0; t < 11; ++t) {
    const TypeTraits& one = traits(static_cast<DType>(t));
    EXPECT_EQ(find_gguf_type(one.gguf_type), &one);
    EXPECT_EQ(static_cast<int>(one.type), t);
  }
}

}  // namespace
}  // namespace troupe
