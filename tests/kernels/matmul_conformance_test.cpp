// Every phase with a matmul, every format, every path: the reference's bits; every row alone: its bits in the batch.
#include <gtest/gtest.h>
#include <limits>
#include <numeric>

#include "tests/kernels/backend_lab.h"
#include "tests/support/test_scale.h"

namespace troupe::test {
namespace {

class MatmulConformance : public testing::TestWithParam<DType> {
 protected:
  // A different format that fits the same inputs, for matrices of one phase that differ.
  static DType partner(DType type) {
    if (type == DType::q4_k) return DType::q6_k;
    if (type == DType::q8_0) return DType::f16;
    return DType::q8_0;
  }
  DType type = GetParam();
  Lab& lab = Lab::get();
  Random random{100 + static_cast<std::uint64_t>(GetParam())};
};

std::vector<std::int64_t> all_row_counts() {
  std::vector<std::int64_t> rows(small_scale() ? 20 : 71);
  std::iota(rows.begin(), rows.end(), 0);
  for (std::int64_t more : {127, 128, 129, 255, 256, 257}) rows.push_back(more);
  return rows;
}

const std::vector<std::int64_t> kSomeRowCounts{1, 2, 5, 6, 7, 12, 13, 16, 17, 32, 33};
const std::vector<std::int64_t> kRaggedOutputs{1, 15, 16, 17, 31, 33, 47};

TEST_P(MatmulConformance, project_add_at_every_row_count) {
  const std::int64_t outputs = 47, cols = traits(type).block == 256 ? 256 : 160;
  const FileMatrix w = random_matrix(type, outputs, cols, random);
  const RowInputs in = random_inputs(257, cols, random);
  const Output expected = run_project_add(lab.reference(), in, 257, w);
  for (NamedBackend& path : lab.paths()) {
    for (std::int64_t rows : all_row_counts()) {
      ASSERT_EQ(difference(first_rows(expected, rows, outputs), run_project_add(*path.backend, in, rows, w)), "")
          << path.name << ", " << rows << " rows";
    }
  }
}

TEST_P(MatmulConformance, project_add_at_every_ragged_shape) {
  for (std::int64_t outputs : kRaggedOutputs) {
    for (std::int64_t cols : ragged_cols(type)) {
      const FileMatrix w = random_matrix(type, outputs, cols, random);
      const RowInputs in = random_inputs(kSomeRowCounts.back(), cols, random);
      const Output expected = run_project_add(lab.reference(), in, in.rows, w);
      for (NamedBackend& path : lab.paths()) {
        for (std::int64_t rows : kSomeRowCounts) {
          ASSERT_EQ(difference(first_rows(expected, rows, outputs), run_project_add(*path.backend, in, rows, w)), "")
              << path.name << ", " << rows << " rows, " << outputs << " x " << cols;
        }
      }
    }
  }
}

TEST_P(MatmulConformance, gate_up_at_many_row_counts) {
  const std::int64_t outputs = 33, cols = ragged_cols(type)[2];
  const FileMatrix gate = random_matrix(type, outputs, cols, random), up = random_matrix(type, outputs, cols, random);
  const FileMatrix other = random_matrix(partner(type), outputs, cols, random);
  const RowInputs in = random_inputs(70, cols, random);
  const Output same = run_gate_up(lab.reference(), in, 70, gate, up);
  const Output mixed = run_gate_up(lab.reference(), in, 70, gate, other);
  for (NamedBackend& path : lab.paths()) {
    for (std::int64_t rows : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17, 31, 32, 64, 65, 70}) {
      ASSERT_EQ(difference(first_rows(same, rows, outputs), run_gate_up(*path.backend, in, rows, gate, up)), "")
          << path.name << ", " << rows << " rows";
      ASSERT_EQ(difference(first_rows(mixed, rows, outputs), run_gate_up(*path.backend, in, rows, gate, other)), "")
          << path.name << ", " << rows << " rows, up in another format";
    }
  }
}

TEST_P(MatmulConformance, qkv_with_three_widths_and_two_formats) {
  const std::int64_t cols = ragged_cols(type).back();
  for (const auto& [nq, nk] : {std::pair{48, 16}, std::pair{33, 15}, std::pair{1, 17}, std::pair{64, 31}}) {
    const FileMatrix wq = random_matrix(type, nq, cols, random), wk = random_matrix(type, nk, cols, random);
    const FileMatrix wv = random_matrix(partner(type), nk, cols, random);
    const RowInputs in = random_inputs(19, cols, random);
    for (std::int64_t rows : {0, 1, 2, 6, 7, 12, 16, 19}) {
      const Output expected = run_qkv(lab.reference(), in, rows, wq, wk, wv);
      for (NamedBackend& path : lab.paths()) {
        ASSERT_EQ(difference(expected, run_qkv(*path.backend, in, rows, wq, wk, wv)), "")
            << path.name << ", " << rows << " rows, " << nq << " and " << nk << " outputs";
      }
    }
  }
}

TEST_P(MatmulConformance, head_computes_the_wanted_rows_in_their_order) {
  const std::int64_t cols = ragged_cols(type)[1];
  const FileMatrix w = random_matrix(type, 147, cols, random);
  const RowInputs in = random_inputs(40, cols, random);
  std::vector<std::int32_t> all(40);
  std::iota(all.begin(), all.end(), 0);
  for (const std::vector<std::int32_t>& wanted :
       {std::vector<std::int32_t>{}, {39}, {3, 0, 17}, {7, 8, 9, 10, 11, 12, 13}, all}) {
    const Output expected = run_head(lab.reference(), in, 40, wanted, w);
    for (NamedBackend& path : lab.paths()) {
      ASSERT_EQ(difference(expected, run_head(*path.backend, in, 40, wanted, w)), "")
          << path.name << ", " << wanted.size() << " wanted rows";
    }
  }
}

TEST_P(MatmulConformance, down_add_is_the_same_operation_as_project_add) {
  const std::int64_t cols = ragged_cols(type).back();
  const FileMatrix w = random_matrix(type, 32, cols, random);
  const RowInputs in = random_inputs(9, cols, random);
  const Output expected = run_project_add(lab.reference(), in, 9, w);
  EXPECT_EQ(difference(expected, run_down_add(lab.reference(), in, 9, w)), "");
  for (NamedBackend& path : lab.paths()) {
    EXPECT_EQ(difference(expected, run_down_add(*path.backend, in, 9, w)), "") << path.name;
  }
}

TEST_P(MatmulConformance, down_add_that_was_announced_is_the_same) {
  const std::int64_t cols = ragged_cols(type)[1], width = traits(type).block == 256 ? 512 : 160;
  const FileMatrix down = random_matrix(type, 47, width, random);
  for (DType gate_type : {type, partner(type), DType::f32}) {
    const FileMatrix gate = random_matrix(gate_type, width, traits(gate_type).block == 256 ? 256 : cols, random);
    RowInputs in = random_inputs(70, gate.cols, random);
    in.h[static_cast<std::size_t>(3 * gate.cols + 1)] = std::numeric_limits<float>::infinity();
    for (std::int64_t rows : {0, 1, 2, 5, 6, 7, 12, 13, 16, 17, 32, 33, 70}) {
      const Output expected = run_feed_forward(lab.reference(), in, rows, gate, down, false);
      ASSERT_EQ(difference(expected, run_feed_forward(lab.reference(), in, rows, gate, down, true)), "");
      for (NamedBackend& path : lab.paths()) {
        ASSERT_EQ(difference(expected, run_feed_forward(*path.backend, in, rows, gate, down, true)), "")
            << path.name << ", " << rows << " rows, gate " << traits(gate_type).name;
      }
    }
  }
}

TEST_P(MatmulConformance, embed_gives_the_files_exact_values) {
  for (std::int64_t cols : ragged_cols(type)) {
    const FileMatrix table = wild_matrix(type, 37, cols, random);
    const std::vector<std::int32_t> tokens{36, 0, 15, 16, 17, 0, 31, 32, 33, 36};
    Output expected{{}, std::vector<std::uint8_t>(tokens.size())};
    const std::vector<float> values = table.values();
    for (std::int32_t token : tokens) {
      expected.values.insert(expected.values.end(), values.begin() + token * cols, values.begin() + (token + 1) * cols);
    }
    EXPECT_EQ(difference(expected, run_embed(lab.reference(), table, tokens)), "");
    for (NamedBackend& path : lab.paths()) {
      EXPECT_EQ(difference(expected, run_embed(*path.backend, table, tokens)), "") << path.name << ", cols " << cols;
    }
  }
}

// The same row, moved to other places of batches of other sizes, next to other rows.
TEST_P(MatmulConformance, a_row_alone_has_the_bits_it_has_in_a_batch) {
  const std::int64_t cols = ragged_cols(type)[1], outputs = 33, batch = small_scale() ? 15 : 65;
  const FileMatrix w = random_matrix(type, outputs, cols, random);
  const RowInputs in = random_inputs(batch, cols, random);
  std::vector<NamedBackend>& paths = lab.paths();
  const auto check = [&](Backend& backend, const std::string& name) {
    const Output together = run_gate_up(backend, in, batch, w, w);
    for (std::int64_t row = 0; row < batch; ++row) {
      RowInputs alone = in;
      std::copy_n(in.h.begin() + row * cols, cols, alone.h.begin());
      const Output one = run_gate_up(backend, alone, 1, w, w);
      const auto part = std::span(together.values).subspan(static_cast<std::size_t>(row * outputs), outputs);
      ASSERT_EQ(first_difference(part, one.values), -1) << name << ", row " << row;
    }
  };
  check(lab.reference(), "reference");
  for (NamedBackend& path : paths) check(*path.backend, path.name);
}

std::string format_name(const testing::TestParamInfo<DType>& info) {
  return std::string(traits(info.param).name);
}
INSTANTIATE_TEST_SUITE_P(Format, MatmulConformance, testing::ValuesIn(all_formats()), format_name);

}  // namespace
}  // namespace troupe::test
