// attend(): every path gives the reference's bits, writes only the new tokens' slots, and reads nothing beyond them.
#include <cmath>
#include <gtest/gtest.h>

#include "tests/kernels/attend_lab.h"
#include "tests/support/test_scale.h"

namespace troupe::test {
namespace {

void expect_same(const AttendResult& expected, const AttendResult& actual, const std::string& what) {
  ASSERT_EQ(difference(expected.output, actual.output), "") << what;
  ASSERT_TRUE(expected.pages == actual.pages) << what << ": other bytes in the pages";
}

void expect_conformance(const AttendCase& one, const std::string& what) {
  const AttendResult expected = run_attend(Lab::get().reference(), one);
  for (float value : expected.output.values) ASSERT_TRUE(std::isfinite(value)) << what << ": poison was read";
  for (NamedBackend& path : Lab::get().paths()) {
    expect_same(expected, run_attend(*path.backend, one), path.name + ", " + what);
    if (testing::Test::HasFatalFailure()) return;
  }
}

std::string words(const AttendCase& one) {
  return "head_dim " + std::to_string(one.layout.head_dim) + ", kv heads " + std::to_string(one.layout.kv_heads) +
         ", group " + std::to_string(one.group) + ", " + name(one.layout.type);
}

// Decode rows and prefill slices mixed, around the edges of pages (16) and splits (256).
const std::vector<Step> kMixed{{0, 1},  {1, 1},   {14, 1}, {0, 17},   {15, 1},
                               {16, 3}, {255, 1}, {0, 2},  {250, 12}, {256, 1}};
const std::vector<Step> kLong{{511, 1}, {512, 1}, {513, 1}, {600, 1}, {509, 7}, {255, 2}, {599, 2}};

TEST(AttendConformance, head_sizes_groups_and_element_types_with_decode_and_prefill_mixed) {
  for (KvType type : kKvTypes) {
    for (int head_dim : {32, 64, 96, 128}) {
      for (int group : {1, 3, 4}) {
        const AttendCase one{{.layers = 2, .kv_heads = 2, .head_dim = head_dim, .type = type}, group, kMixed};
        expect_conformance(one, words(one));
      }
    }
  }
}

TEST(AttendConformance, sequences_of_several_splits) {
  for (KvType type : kKvTypes) {
    for (int group : {1, 3, 8}) {
      const AttendCase one{{.layers = 1, .kv_heads = 1, .head_dim = 64, .type = type}, group, kLong};
      expect_conformance(one, words(one));
    }
  }
}

TEST(AttendConformance, prefill_slices_of_every_length_around_a_page) {
  for (std::int64_t rows = 1; rows <= (small_scale() ? 9 : 34); ++rows) {
    for (KvType type : {KvType::f16, KvType::i8}) {
      const AttendCase one{
          {.layers = 1, .kv_heads = 1, .head_dim = 32, .type = type}, 3, {{0, rows}, {13, rows}, {250, rows}}};
      expect_conformance(one, std::to_string(rows) + " rows, " + words(one));
    }
  }
}

TEST(AttendConformance, a_long_prefill_slice) {
  const std::int64_t rows = small_scale() ? 40 : 200;
  for (KvType type : {KvType::f16, KvType::i8}) {
    const AttendCase one{{.layers = 1, .kv_heads = 3, .head_dim = 64, .type = type}, 3, {{180, rows}, {77, 1}}};
    expect_conformance(one, std::to_string(rows) + " rows, " + words(one));
  }
}

TEST(AttendConformance, rope_of_part_of_a_head_and_both_kinds_of_pairs) {
  for (RopePairs pairs : {RopePairs::neighbours, RopePairs::halves}) {
    for (int rope_dim : {2, 8, 16, 24, 32, 48, 64}) {
      const KvLayout layout{.layers = 2, .kv_heads = 2, .head_dim = 64, .type = KvType::f32};
      expect_conformance({layout, 3, {{20, 3}, {0, 1}, {333, 1}}, rope_dim, pairs},
                         "rope over " + std::to_string(rope_dim));
    }
  }
}

TEST(AttendConformance, an_empty_launch_does_nothing) {
  expect_conformance({{.layers = 1, .kv_heads = 1, .head_dim = 32, .type = KvType::f16}, 1, {}}, "no rows");
}

TEST(AttendConformance, a_row_alone_has_the_bits_it_has_in_a_crowd) {
  for (KvType type : {KvType::f16, KvType::i8}) {
    const KvLayout layout{.layers = 1, .kv_heads = 2, .head_dim = 64, .type = type};
    const AttendCase one{layout, 3, {{300, 1}, {40, 5}, {0, 20}, {511, 1}, {254, 4}}};
    const AttendResult expected = run_attend(Lab::get().reference(), one);
    expect_same(expected, run_attend_alone(Lab::get().reference(), one), "reference, " + words(one));
    for (NamedBackend& path : Lab::get().paths()) {
      expect_same(expected, run_attend_alone(*path.backend, one), path.name + ", " + words(one));
    }
  }
}

}  // namespace
}  // namespace troupe::test
